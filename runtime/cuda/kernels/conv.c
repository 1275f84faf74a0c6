/* Conv, ConvGradInput and ConvGradWeight as one product of matrices each, whose operands are read from where they lie (implicit GEMM).
 *
 *   conv               rows: output channels   columns: (sample, position)     sum over (channel, kernel cell)
 *   conv_grad_input    rows: input channels    columns: (sample, cell)         sum over (output channel, kernel cell)
 *   conv_grad_weight   rows: output channels   columns: (channel, kernel cell)  sum over (sample, position)
 *
 * Channels are those of a group; blocks along z are groups. */
#include "math.h"
#include "window.h"

enum { SIDE = 64, DEEP = 16, FLUSH = 2 };

/* channels and outs are those of a group */
#define ARGS i64 samples, i64 channels, i64 outs, i64 groups, WINDOW HALF_ARG

INLINE int inside_x(int i0, int i1, int i2, int in0, int in1, int in2) {
	return i0 >= 0 && i0 < in0 && i1 >= 0 && i1 < in1 && i2 >= 0 && i2 < in2;
}

KERNEL conv(T G *y, const T G *x, const T G *w, ARGS) {
	i64 cols = samples * POSITIONS, depth = channels * TAPS, g = BIDZ;
	i64 row0 = (i64)BIDY * SIDE, col0 = (i64)BID * SIDE, col = col0 + (TID & 63), pos = col % POSITIONS;
	int inside = col < cols;
	int q2 = (int)(pos % out2) * s2 - p2, q1 = (int)(pos / out2 % out1) * s1 - p1, q0 = (int)(pos / ((i64)out1 * out2)) * s0 - p0;
	const T G *from = x + (col / POSITIONS * groups + g) * channels * CELLS;
	const T G *weights = w + g * outs * depth;
#define ROWS outs
#define COLS cols
#define DEPTH depth
#define A(row, k) LOADC(weights[(row) * depth + (k)])
#define B(k)                                                                                                           \
	({                                                                                                             \
		int cell = (int)((k) % TAPS);                                                                          \
		int i2 = q2 + cell % k2 * d2, i1 = q1 + cell / k2 % k1 * d1, i0 = q0 + cell / (k1 * k2) * d0;          \
		inside_x(i0, i1, i2, in0, in1, in2) ? LOADC(from[(k) / TAPS * CELLS + ((i64)i0 * in1 + i1) * in2 + i2]) : (C)0; \
	})
#define PUT(row, c, v) y[((c) / POSITIONS * groups + g) * outs * POSITIONS + (row) * POSITIONS + (c) % POSITIONS] = STOREC(v)
#include "product.h"
}

KERNEL conv_grad_input(T G *dx, const T G *w, const T G *dy, ARGS) {
	i64 cols = samples * CELLS, depth = outs * TAPS, g = BIDZ;
	i64 row0 = (i64)BIDY * SIDE, col0 = (i64)BID * SIDE, col = col0 + (TID & 63), at = col % CELLS;
	int inside = col < cols;
	int q2 = (int)(at % in2) + p2, q1 = (int)(at / in2 % in1) + p1, q0 = (int)(at / ((i64)in1 * in2)) + p0;
	const T G *from = dy + (col / CELLS * groups + g) * outs * POSITIONS;
	const T G *weights = w + g * outs * channels * TAPS;
#define ROWS channels
#define COLS cols
#define DEPTH depth
#define A(row, k) LOADC(weights[((k) / TAPS * channels + (row)) * TAPS + (k) % TAPS])
#define B(k)                                                                                                           \
	({                                                                                                             \
		int cell = (int)((k) % TAPS);                                                                          \
		int o2 = q2 - cell % k2 * d2, o1 = q1 - cell / k2 % k1 * d1, o0 = q0 - cell / (k1 * k2) * d0;          \
		int whole = o0 >= 0 && o1 >= 0 && o2 >= 0 && o0 % s0 == 0 && o1 % s1 == 0 && o2 % s2 == 0;             \
		o0 /= s0;                                                                                              \
		o1 /= s1;                                                                                              \
		o2 /= s2;                                                                                              \
		whole && o0 < out0 && o1 < out1 && o2 < out2 ? LOADC(from[(k) / TAPS * POSITIONS + ((i64)o0 * out1 + o1) * out2 + o2]) : (C)0; \
	})
#define PUT(row, c, v) dx[((c) / CELLS * groups + g) * channels * CELLS + (row) * CELLS + (c) % CELLS] = STOREC(v)
#include "product.h"
}

KERNEL conv_grad_weight(T G *dw, const T G *x, const T G *dy, ARGS) {
	i64 cols = channels * TAPS, depth = samples * POSITIONS, g = BIDZ;
	i64 row0 = (i64)BIDY * SIDE, col0 = (i64)BID * SIDE, col = col0 + (TID & 63);
	int inside = col < cols, cell = (int)(col % TAPS);
	int q2 = cell % k2 * d2 - p2, q1 = cell / k2 % k1 * d1 - p1, q0 = cell / (k1 * k2) * d0 - p0;
	const T G *from = x + (g * channels + col / TAPS) * CELLS;
#define ROWS outs
#define COLS cols
#define DEPTH depth
#define A(row, k) LOADC(dy[((k) / POSITIONS * groups + g) * outs * POSITIONS + (row) * POSITIONS + (k) % POSITIONS])
#define B(k)                                                                                                           \
	({                                                                                                             \
		i64 pos = (k) % POSITIONS;                                                                             \
		int i2 = (int)(pos % out2) * s2 + q2, i1 = (int)(pos / out2 % out1) * s1 + q1, i0 = (int)(pos / ((i64)out1 * out2)) * s0 + q0; \
		inside_x(i0, i1, i2, in0, in1, in2) ? LOADC(from[(k) / POSITIONS * groups * channels * CELLS + ((i64)i0 * in1 + i1) * in2 + i2]) : (C)0; \
	})
#define PUT(row, c, v) dw[(g * outs + (row)) * cols + (c)] = STOREC(v)
#include "product.h"
}
