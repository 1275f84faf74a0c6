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

/* channels and outs are those of a group; rows, columns, steps and the elements of a sample fit 31 bits */
#define ARGS u32 samples, u32 channels, u32 outs, u32 groups, WINDOW HALF_ARG
#define CELLS32 (u32)(in0 * in1 * in2)
#define POSITIONS32 (u32)(out0 * out1 * out2)
#define TAPS32 (u32)(k0 * k1 * k2)

/* what a step of the sum means: elements to add to the place in each operand, and cells to add to the position */
static S i64 aoff[DEEP], boff[DEEP];
static S int move0[DEEP], move1[DEEP], move2[DEEP];

INLINE int inside_x(int i0, int i1, int i2, int in0, int in1, int in2) {
	return i0 >= 0 && i0 < in0 && i1 >= 0 && i1 < in1 && i2 >= 0 && i2 < in2;
}

#define CELL_MOVES(kk, cell)                     \
	move2[kk] = (int)((cell) % (u32)k2) * d2; \
	move1[kk] = (int)((cell) / (u32)k2 % (u32)k1) * d1; \
	move0[kk] = (int)((cell) / (u32)(k1 * k2)) * d0;

KERNEL conv(T G *y, const T G *x, const T G *w, ARGS) {
	u32 cells = CELLS32, positions = POSITIONS32, taps = TAPS32, cols = samples * positions, depth = channels * taps, g = BIDZ;
	u32 row0 = BIDY * SIDE, col0 = BID * SIDE, col = col0 + (TID & 63), pos = col % positions;
	int inside = col < cols;
	int q2 = (int)(pos % (u32)out2) * s2 - p2, q1 = (int)(pos / (u32)out2 % (u32)out1) * s1 - p1, q0 = (int)(pos / (u32)(out1 * out2)) * s0 - p0;
	const T G *from = x + (i64)(col / positions * groups + g) * channels * cells;
	const T G *weights = w + (i64)g * outs * depth;
	T G *to = y + (i64)g * outs * positions;
#define ROWS outs
#define COLS cols
#define DEPTH depth
#define TABLE(kk, k)                            \
	{                                       \
		boff[kk] = (i64)((k) / taps) * cells; \
		CELL_MOVES(kk, (k) % taps)      \
	}
#define A(row, kk) LOADC(weights[(i64)(row) * depth + base + (kk)])
#define B(kk)                                                                                                                   \
	({                                                                                                                      \
		int i2 = q2 + move2[kk], i1 = q1 + move1[kk], i0 = q0 + move0[kk];                                              \
		inside_x(i0, i1, i2, in0, in1, in2) ? LOADC(from[boff[kk] + (i0 * in1 + i1) * in2 + i2]) : (C)0;                \
	})
#define PUT(row, c, v) to[((i64)((c) / positions) * groups * outs + (row)) * positions + (c) % positions] = STOREC(v);
#include "product.h"
}

KERNEL conv_grad_input(T G *dx, const T G *w, const T G *dy, ARGS) {
	u32 cells = CELLS32, positions = POSITIONS32, taps = TAPS32, cols = samples * cells, depth = outs * taps, g = BIDZ;
	u32 row0 = BIDY * SIDE, col0 = BID * SIDE, col = col0 + (TID & 63), at = col % cells;
	int inside = col < cols, single = s0 == 1 && s1 == 1 && s2 == 1;
	int q2 = (int)(at % (u32)in2) + p2, q1 = (int)(at / (u32)in2 % (u32)in1) + p1, q0 = (int)(at / (u32)(in1 * in2)) + p0;
	const T G *from = dy + (i64)(col / cells * groups + g) * outs * positions;
	const T G *weights = w + (i64)g * outs * channels * taps;
	T G *to = dx + (i64)g * channels * cells;
#define ROWS channels
#define COLS cols
#define DEPTH depth
#define TABLE(kk, k)                                                            \
	{                                                                       \
		boff[kk] = (i64)((k) / taps) * positions;                       \
		aoff[kk] = (i64)((k) / taps) * channels * taps + (k) % taps;    \
		CELL_MOVES(kk, (k) % taps)                                      \
	}
#define A(row, kk) LOADC(weights[aoff[kk] + (i64)(row) * taps])
#define B(kk)                                                                                                                   \
	({                                                                                                                      \
		int o2 = q2 - move2[kk], o1 = q1 - move1[kk], o0 = q0 - move0[kk], whole = o0 >= 0 && o1 >= 0 && o2 >= 0;       \
		if (!single) {                                                                                                  \
			whole = whole && o0 % s0 == 0 && o1 % s1 == 0 && o2 % s2 == 0;                                          \
			o0 /= s0;                                                                                               \
			o1 /= s1;                                                                                               \
			o2 /= s2;                                                                                               \
		}                                                                                                               \
		whole && o0 < out0 && o1 < out1 && o2 < out2 ? LOADC(from[boff[kk] + (o0 * out1 + o1) * out2 + o2]) : (C)0;     \
	})
#define PUT(row, c, v) to[((i64)((c) / cells) * groups * channels + (row)) * cells + (c) % cells] = STOREC(v);
#include "product.h"
}

/* Blocks along z are stretches of the sum, then groups. With several stretches their sums go to scratch, [stretch][group][row][column], for conv_join. */
KERNEL conv_grad_weight(T G *dw, const T G *x, const T G *dy, C G *scratch, u32 stretch, ARGS) {
	u32 cells = CELLS32, positions = POSITIONS32, taps = TAPS32, cols = channels * taps, depth = samples * positions, g = BIDZ % groups;
	u32 first = BIDZ / groups * stretch, steps = depth - first < stretch ? depth - first : stretch;
	u32 row0 = BIDY * SIDE, col0 = BID * SIDE, col = col0 + (TID & 63), cell = col % taps;
	int inside = col < cols;
	int q2 = (int)(cell % (u32)k2) * d2 - p2, q1 = (int)(cell / (u32)k2 % (u32)k1) * d1 - p1, q0 = (int)(cell / (u32)(k1 * k2)) * d0 - p0;
	const T G *from = x + (i64)(g * channels + col / taps) * cells;
	const T G *slopes = dy + (i64)g * outs * positions;
#define ROWS outs
#define COLS cols
#define DEPTH steps
#define TABLE(kk, k)                                                                              \
	{                                                                                         \
		u32 k_ = first + (k), pos_ = k_ % positions;                                      \
		boff[kk] = (i64)(k_ / positions) * groups * channels * cells;                    \
		aoff[kk] = (i64)(k_ / positions) * groups * outs * positions + pos_;             \
		move2[kk] = (int)(pos_ % (u32)out2) * s2;                                         \
		move1[kk] = (int)(pos_ / (u32)out2 % (u32)out1) * s1;                             \
		move0[kk] = (int)(pos_ / (u32)(out1 * out2)) * s0;                                \
	}
#define A(row, kk) LOADC(slopes[aoff[kk] + (i64)(row) * positions])
#define B(kk)                                                                                                                   \
	({                                                                                                                      \
		int i2 = q2 + move2[kk], i1 = q1 + move1[kk], i0 = q0 + move0[kk];                                              \
		inside_x(i0, i1, i2, in0, in1, in2) ? LOADC(from[boff[kk] + (i0 * in1 + i1) * in2 + i2]) : (C)0;                \
	})
#define PUT(row, c, v)                                                                    \
	if (scratch) {                                                                    \
		scratch[(i64)(BIDZ * outs + (row)) * cols + (c)] = v;                     \
	} else {                                                                          \
		dw[(i64)(g * outs + (row)) * cols + (c)] = STOREC(v);                     \
	}
#include "product.h"
}

/* the sums of stretches, in order */
KERNEL conv_join(T G *dw, const C G *scratch, i64 n, i64 stretches HALF_ARG) {
	EACH(i, n) {
		C sum = scratch[i];
		for (i64 s = 1; s < stretches; s++) {
			sum += scratch[s * n + i];
		}
		dw[i] = STOREC(sum);
	}
}
