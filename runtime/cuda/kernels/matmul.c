/* MatMul on the ordinary units: tiles of 64 by 64, 256 threads with 4 by 4 elements each, 16 deep through shared memory. Sums of f32 are kept over 32
 * products and then added to a second sum, which halves the digits that a long sum loses. Every element sums its products in index order of k,
 * whatever the tile. am, ak, bk, bn are the distances between neighbours along m, k and n; batches are walked over along four axes. */
#include "dequantize.h"
#include "epilogue.h"

enum { SIDE = 64, DEEP = 16, FLUSH = 2 };

enum { PLAIN, FUSED, QUANTIZED };

/* the element at a row and column of stored codes */
INLINE C weight(const u8 G *q, i64 at, u32 row, u32 col, GROUPS, SCALE HALF_ARG) {
	float v = scaled(value(q, at, format), (i64)(row / rb) * rs + (i64)(col / cb) * cs, SCALE_PASS);
#if defined(H16)
	return LOADC(STOREC(v));
#else
	return (C)v;
#endif
}

INLINE void product(int kind, T G *y, const T G *a, const T G *b, i64 m, i64 n, i64 k, i64 am, i64 ak, i64 bk, i64 bn, EPILOGUE, GROUPS, SCALE HALF_ARG) {
	static S C as[DEEP][SIDE + 4], bs[DEEP][SIDE + 4];
	i64 row0 = (i64)BID * SIDE, col0 = (i64)BIDY * SIDE;
	u32 tx = TID & 15, ty = TID >> 4;
	C sum[4][4] = {}, part[4][4] = {};
	for (i64 k0 = 0, tile = 1; k0 < k; k0 += DEEP, tile++) {
#pragma unroll 2
		for (u32 e = 0; e < 4; e++) { /* neighbours in memory go to neighbouring threads */
			u32 t = TID + e * 256;
			u32 kk = ak == 1 ? t & 15 : t >> 6, mm = ak == 1 ? t >> 4 : t & 63;
			as[kk][mm] = row0 + mm < m && k0 + kk < k ? LOADC(a[(row0 + mm) * am + (k0 + kk) * ak]) : (C)0;
			kk = bk == 1 ? t & 15 : t >> 6;
			u32 nn = bk == 1 ? t >> 4 : t & 63;
			int there = col0 + nn < n && k0 + kk < k;
			i64 at = (k0 + kk) * bk + (col0 + nn) * bn;
			if (kind == QUANTIZED) {
				bs[kk][nn] = there ? weight((const u8 G *)b, at, bk == 1 ? (u32)(col0 + nn) : (u32)(k0 + kk), bk == 1 ? (u32)(k0 + kk) : (u32)(col0 + nn), GROUPS_PASS, SCALE_PASS HALF_PASS) : (C)0;
			} else {
				bs[kk][nn] = there ? LOADC(b[at]) : (C)0;
			}
		}
		SYNC();
#pragma unroll 4
		for (u32 kk = 0; kk < DEEP; kk++) {
			C av[4], bv[4];
#pragma unroll
			for (u32 i = 0; i < 4; i++) {
				av[i] = as[kk][ty * 4 + i];
				bv[i] = bs[kk][tx * 4 + i];
			}
#pragma unroll
			for (u32 i = 0; i < 4; i++) {
#pragma unroll
				for (u32 j = 0; j < 4; j++) {
					part[i][j] = BUILTIN(fma)(av[i], bv[j], part[i][j]);
				}
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
	if (kind != PLAIN) { /* by way of shared memory, so that the code for an element stands once */
#pragma unroll
		for (u32 j = 0; j < 4; j++) {
#pragma unroll
			for (u32 i = 0; i < 4; i++) {
				as[ty][tx * 4 + i] = sum[j][i] + part[j][i];
			}
			SYNC();
#pragma nounroll
			for (u32 t = TID; t < 16 * SIDE; t += 256) {
				i64 r = row0 + (t >> 6) * 4 + j, c = col0 + (t & 63);
				if (r < m && c < n) {
					y[r * n + c] = finished(STOREC(as[t >> 6][t & 63]), add, r * add_row + c * add_col, act, alpha, beta HALF_PASS);
				}
			}
			SYNC();
		}
		return;
	}
#pragma unroll
	for (u32 i = 0; i < 4; i++) {
#pragma unroll
		for (u32 j = 0; j < 4; j++) {
			i64 r = row0 + ty * 4 + i, c = col0 + tx * 4 + j;
			if (r < m && c < n) {
				y[r * n + c] = STOREC(sum[i][j] + part[i][j]);
			}
		}
	}
}

#define ARGS                                                                                                                                     \
	T G *y, const T G *a, const T G *b, i64 m, i64 n, i64 k, i64 am, i64 ak, i64 bk, i64 bn, u32 e1, u32 e2, u32 e3, i64 x0, i64 x1, i64 x2, \
		i64 x3, i64 z0, i64 z1, i64 z2, i64 z3

#define BATCH                                                           \
	u32 batch = BIDZ, c3 = batch % e3, w = batch / e3, c2 = w % e2; \
	w /= e2;                                                        \
	u32 c1 = w % e1, c0 = w / e1;                                   \
	a += c0 * x0 + c1 * x1 + c2 * x2 + c3 * x3;                     \
	b += c0 * z0 + c1 * z1 + c2 * z2 + c3 * z3;                     \
	y += (i64)batch * m * n;

KERNEL matmul(ARGS HALF_ARG) {
	BATCH
	product(PLAIN, y, a, b, m, n, k, am, ak, bk, bn, 0, 0, 0, 0, -1, 0, 0, 1, 0, 1, 0, 0, 0, 0, 0, 0, 0 HALF_PASS);
}

KERNEL matmul_fused(ARGS, EPILOGUE HALF_ARG) {
	BATCH
	product(FUSED, y, a, b, m, n, k, am, ak, bk, bn, add ? add + batch * add_batch : add, add_batch, add_row, add_col, act, alpha, beta, 1, 0, 1, 0, 0, 0, 0, 0, 0,
		0 HALF_PASS);
}

/* b holds codes, and is the same for the whole batch */
KERNEL matmul_coded(ARGS, EPILOGUE, GROUPS, SCALE HALF_ARG) {
	BATCH
	product(QUANTIZED, y, a, b, m, n, k, am, ak, bk, bn, add ? add + batch * add_batch : add, add_batch, add_row, add_col, act, alpha, beta, GROUPS_PASS,
		SCALE_PASS HALF_PASS);
}
