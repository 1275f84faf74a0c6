/* The body of a kernel that multiplies two matrices which are read element by element: ROWS x DEPTH by DEPTH x COLS. The includer defines these, A(row, k) and
 * B(k), whose column is the thread's own and exists if `inside`, and PUT(row, col, value); row0 and col0 are the corner of the block's tile. matmul.c says
 * how sums are taken. */
{
	static S C as[DEEP][SIDE + 4], bs[DEEP][SIDE + 4];
	u32 tx = TID & 15, ty = TID >> 4;
	C sum[4][4] = {}, part[4][4] = {};
	for (i64 base = 0, tile = 1; base < DEPTH; base += DEEP, tile++) {
#pragma unroll
		for (u32 e = 0; e < 4; e++) {
			u32 t = TID + e * 256;
			i64 row = row0 + (t >> 4), k = base + (t & 15);
			as[t & 15][t >> 4] = row < ROWS && k < DEPTH ? A(row, k) : (C)0;
			k = base + (t >> 6);
			bs[t >> 6][t & 63] = inside && k < DEPTH ? B(k) : (C)0;
		}
		SYNC();
#pragma unroll
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
		i64 row = row0 + ty * 4 + i / 4, c = col0 + tx * 4 + i % 4;
		if (row < ROWS && c < COLS) {
			PUT(row, c, sum[i / 4][i % 4] + part[i / 4][i % 4]);
		}
	}
}
#undef ROWS
#undef COLS
#undef DEPTH
#undef A
#undef B
#undef PUT
