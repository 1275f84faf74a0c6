/* The body of a kernel that multiplies two matrices which are read element by element: ROWS x DEPTH by DEPTH x COLS, extents of 32 bits. What a step k of the
 * sum means is worked out once a block: TABLE(kk, k) fills row kk of the tables below, from which A(row, kk) and B(kk) read, the latter at the
 * thread's own column, which exists if `inside`. PUT(row, col, value) is a statement that stores; row0 and col0 are the corner of the block's tile. matmul.c says how
 * sums are taken. */
{
	static S C as[DEEP][SIDE + 4], bs[DEEP][SIDE + 4];
	u32 tx = TID & 15, ty = TID >> 4;
	C sum[4][4] = {}, part[4][4] = {};
	if (TID < DEEP && TID < DEPTH) {
		TABLE(TID, TID)
	}
	SYNC();
	for (u32 base = 0, tile = 1; base < DEPTH; base += DEEP, tile++) {
#pragma nounroll
		for (u32 t = TID; t < DEEP * SIDE; t += 256) {
			u32 kk = t & 15, row = row0 + (t >> 4);
			as[kk][t >> 4] = row < ROWS && base + kk < DEPTH ? A(row, kk) : (C)0;
		}
#pragma nounroll
		for (u32 t = TID; t < DEEP * SIDE; t += 256) {
			u32 kk = t >> 6;
			bs[kk][t & 63] = inside && base + kk < DEPTH ? B(kk) : (C)0;
		}
		SYNC();
		u32 next = base + DEEP + TID;
		if (TID < DEEP && next < DEPTH) {
			TABLE(TID, next)
		}
#pragma unroll 4
		for (u32 kk = 0; kk < DEEP; kk++) {
			C av[4], bv[4];
#pragma unroll
			for (u32 i = 0; i < 4; i++) {
				av[i] = as[kk][ty * 4 + i];
				bv[i] = bs[kk][tx * 4 + i];
			}
#pragma unroll
			for (u32 i = 0; i < 16; i++) {
				part[i / 4][i % 4] = BUILTIN(fma)(av[i / 4], bv[i % 4], part[i / 4][i % 4]);
			}
		}
		if (tile % FLUSH == 0) {
#pragma unroll
			for (u32 i = 0; i < 16; i++) {
				sum[i / 4][i % 4] += part[i / 4][i % 4];
				part[i / 4][i % 4] = 0;
			}
		}
		SYNC();
	}
#pragma unroll
	for (u32 i = 0; i < 16; i++) {
		sum[i / 4][i % 4] += part[i / 4][i % 4];
	}
	/* by way of shared memory, so that the store's address is worked out in one place */
#pragma unroll
	for (u32 j = 0; j < 4; j++) {
#pragma unroll
		for (u32 i = 0; i < 4; i++) {
			as[ty][tx * 4 + i] = sum[j][i];
		}
		SYNC();
#pragma nounroll
		for (u32 t = TID; t < 16 * SIDE; t += 256) {
			u32 row = row0 + (t >> 6) * 4 + j, c = col0 + (t & 63);
			if (row < ROWS && c < COLS) {
				PUT(row, c, as[t >> 6][t & 63])
			}
		}
		SYNC();
	}
}
#undef ROWS
#undef COLS
#undef DEPTH
#undef TABLE
#undef A
#undef B
#undef PUT
