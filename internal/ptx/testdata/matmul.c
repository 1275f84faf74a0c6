// Tiled matrix products in float32: shared memory and barriers, registers and vectors, dynamic shared memory.
#include "common.h"

static SHARED float As[16][17], Bs[16][17];

KERNEL matmul(GLOBAL float *c, const GLOBAL float *a, const GLOBAL float *b, int m, int n, int k) {
	int row = BY * 16 + TY, col = BX * 16 + TX;
	float s = 0;
	for (int i = 0; i < k; i += 16) {
		As[TY][TX] = row < m && i + TX < k ? a[row * k + i + TX] : 0;
		Bs[TY][TX] = col < n && i + TY < k ? b[(i + TY) * n + col] : 0;
		SYNC;
		for (int j = 0; j < 16; j++) s = __builtin_fmaf(As[TY][j], Bs[j][TX], s);
		SYNC;
	}
	if (row < m && col < n) c[row * n + col] = s;
}

extern SHARED float dyn[];

// 64 x 64 tile, 256 threads, 4 x 4 values a thread; sizes are multiples of 64 and 8.
KERNEL matmul4(GLOBAL float *c, const GLOBAL float *a, const GLOBAL float *b, int n, int k) {
	SHARED float *sa = dyn, *sb = dyn + 8 * 64;
	int t = TX, tr = t / 16, tc = t % 16;
	f4 acc[4] = {0, 0, 0, 0};
	for (int i = 0; i < k; i += 8) {
		for (int x = t; x < 512; x += 256) {
			sa[x % 8 * 64 + x / 8] = a[(BY * 64 + x / 8) * k + i + x % 8];
			sb[x] = b[(i + x / 64) * n + BX * 64 + x % 64];
		}
		SYNC;
#pragma unroll
		for (int j = 0; j < 8; j++) {
			f4 av = *(SHARED f4 *)&sa[j * 64 + tr * 4], bv = *(SHARED f4 *)&sb[j * 64 + tc * 4];
			for (int x = 0; x < 4; x++)
				for (int y = 0; y < 4; y++) acc[x][y] = __builtin_fmaf(av[x], bv[y], acc[x][y]);
		}
		SYNC;
	}
	for (int x = 0; x < 4; x++) *(GLOBAL f4 *)&c[(BY * 64 + tr * 4 + x) * n + BX * 64 + tc * 4] = acc[x];
}
