/* Tiles of 128 by 128, 32 deep, as matmulmma.c and convmma.c multiply them: eight warps with 64 by 32 elements each, as 4 by 4 products of 16x8x16. */
#ifndef AITK_TILE_H
#define AITK_TILE_H
#include "mma.h"

enum { SIDE = 128, DEEP = 32, PITCH = DEEP + 8, TURNED = SIDE + 8, BUFFER = SIDE * PITCH };

static S u16 room[4 * BUFFER] __attribute__((aligned(16))); /* a and b, twice; then the result where it goes on from shared memory */

/* 16 steps of k, from kk on */
INLINE void advance(float sum[4][4][4], u32 as, u32 bs, u32 kk, u32 wr, u32 wc, u32 r, u32 q, int turn_a, int turn_b) {
	u32 x[4][4], z[2][4];
#pragma unroll
	for (u32 i = 0; i < 4; i++) { /* 16 rows by 16: quarters ordered rows first */
		u32 row = wr + i * 16 + (q & 1) * 8, col = kk + (q >> 1) * 8;
		load4(x[i], as + 2 * (turn_a ? (col + r) * TURNED + row : (row + r) * PITCH + col), turn_a);
	}
#pragma unroll
	for (u32 j = 0; j < 2; j++) { /* 16 columns by 16: quarters ordered k first */
		u32 row = wc + j * 16 + (q >> 1) * 8, col = kk + (q & 1) * 8;
		load4(z[j], bs + 2 * (turn_b ? (col + r) * TURNED + row : (row + r) * PITCH + col), turn_b);
	}
#pragma unroll
	for (u32 i = 0; i < 4; i++) {
#pragma unroll
		for (u32 j = 0; j < 4; j++) {
			multiply(sum[i][j], x[i], z[j >> 1] + (j & 1) * 2);
		}
	}
}

/* the sums as halves to room, rows TURNED apart */
INLINE void gather(float sum[4][4][4], u32 wr, u32 wc, u32 lane) {
#pragma unroll
	for (u32 i = 0; i < 4; i++) {
#pragma unroll
		for (u32 j = 0; j < 4; j++) {
#pragma unroll
			for (u32 h = 0; h < 2; h++) {
				*(S u32 *)(room + (wr + i * 16 + h * 8 + (lane >> 2)) * TURNED + wc + j * 8 + (lane & 3) * 2) = both(sum[i][j][2 * h], sum[i][j][2 * h + 1]);
			}
		}
	}
}

#endif
