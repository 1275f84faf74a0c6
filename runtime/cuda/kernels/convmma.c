/* Conv, ConvGradInput and ConvGradWeight of halves on tensor cores: the products of conv.c, in the tiles of tile.h.
 *
 * a: weights or dy. A lane takes the same step of k in sixteen rows; weights of Conv that lie in pieces of 16 bytes are copied asynchronously instead. b: x or dy, gathered. A
 * thread takes sixteen steps of k for one column. Both are loaded into registers while the tile before is multiplied, and put down after it.
 *
 * In Conv and ConvGradInput the place of an element is that of the column plus that of the step, and a column knows for which kernel cells it is inside: 63 at most. For a
 * stride s, (q-m)/s is q/s - m/s where q and m leave the same remainder, else there is nothing. In ConvGradWeight coordinates are compared. */
#include "tile.h"
#include "window.h"

#define ARGS u32 samples, u32 channels, u32 outs, u32 groups, WINDOW
#define ARGS_PASS samples, channels, outs, groups, in0, in1, in2, out0, out1, out2, k0, k1, k2, s0, s1, s2, d0, d1, d2, p0, p1, p2

enum { FORWARD, INPUT, WEIGHT };

/* steps of two tiles: where in a (-1: beyond the end), where in b; kernel cell, or coordinates */
static S int place_a[2][DEEP], place_b[2][DEEP], at0[2][DEEP], at1[2][DEEP], at2[2][DEEP];

INLINE void steps(int kind, u32 half, u32 k, u32 end, ARGS) {
	u32 cells = (u32)(in0 * in1 * in2), positions = (u32)(out0 * out1 * out2), taps = (u32)TAPS, t = TID;
	if (kind == WEIGHT) {
		u32 s = k / positions, pos = k % positions;
		int i2 = (int)(pos % (u32)out2) * s2 - p2, i1 = (int)(pos / (u32)out2 % (u32)out1) * s1 - p1, i0 = (int)(pos / (u32)(out1 * out2)) * s0 - p0;
		place_a[half][t] = k < end ? (int)(s * groups * outs * positions + pos) : -1;
		place_b[half][t] = (int)(s * groups * channels * cells) + (i0 * in1 + i1) * in2 + i2;
		at0[half][t] = k < end ? i0 : -0x40000000;
		at1[half][t] = i1;
		at2[half][t] = i2;
		return;
	}
	u32 c = k / taps, tap = k % taps;
	int m2 = (int)(tap % (u32)k2) * d2, m1 = (int)(tap / (u32)k2 % (u32)k1) * d1, m0 = (int)(tap / (u32)(k1 * k2)) * d0;
	if (kind == FORWARD) {
		place_a[half][t] = k < end ? (int)k : -1;
		place_b[half][t] = (int)(c * cells) + (m0 * in1 + m1) * in2 + m2;
	} else {
		place_a[half][t] = k < end ? (int)(c * channels * taps + tap) : -1;
		place_b[half][t] = (int)(c * positions) - ((m0 / s0 * out1 + m1 / s1) * out2 + m2 / s2);
	}
	at0[half][t] = k < end ? (int)tap : 63;
}

/* the kernel cells for which a column is inside, q: its position */
INLINE u64 inside_cells(int kind, int q0, int q1, int q2, ARGS) {
	u64 mask = 0;
	u32 tap = 0;
#pragma nounroll
	for (int a = 0; a < k0; a++) {
#pragma nounroll
		for (int b = 0; b < k1; b++) {
#pragma nounroll
			for (int c = 0; c < k2; c++, tap++) {
				int inside;
				if (kind == FORWARD) {
					inside = (u32)(q0 + a * d0) < (u32)in0 && (u32)(q1 + b * d1) < (u32)in1 && (u32)(q2 + c * d2) < (u32)in2;
				} else {
					int o0 = q0 - a * d0, o1 = q1 - b * d1, o2 = q2 - c * d2;
					inside = o0 >= 0 && o1 >= 0 && o2 >= 0 && o0 % s0 == 0 && o1 % s1 == 0 && o2 % s2 == 0 && o0 / s0 < out0 && o1 / s1 < out1 && o2 / s2 < out2;
				}
				mask |= (u64)inside << tap;
			}
		}
	}
	return mask;
}

/* what a thread has loaded and not yet put down */
typedef struct {
	u32 a[8], b[8];
} loaded;

/* a and b begin where rows and columns of this block do not matter; rows are row_step apart in a. Sums go to y, or in f32 to partial. */
INLINE void product(int kind, int pieces, T G *y, float G *partial, const T G *a, const T G *b, u32 rows, u32 cols, u32 begin, u32 end, u32 row_step, ARGS) {
	u32 cells = (u32)(in0 * in1 * in2), positions = (u32)(out0 * out1 * out2), taps = (u32)TAPS, g = BIDZ % groups;
	u32 row0 = BIDY * SIDE, col0 = BID * SIDE, col = col0 + (TID & 127), each = kind == FORWARD ? positions : kind == INPUT ? cells : taps;
	u32 lane = TID & 31, warp = TID >> 5, r = lane & 7, q = lane >> 3, wr = (warp & 1) * 64, wc = (warp >> 1) * 32, kb = TID >> 7 << 4;
	u32 at = col % each, outer = col / each;
	u64 mask = 0;
	int m0 = -0x20000000, m1 = 0, m2 = 0;
	const T G *from = b;
	T G *to = y;
	if (col < cols && kind == FORWARD) {
		int q2 = (int)(at % (u32)out2) * s2 - p2, q1 = (int)(at / (u32)out2 % (u32)out1) * s1 - p1, q0 = (int)(at / (u32)(out1 * out2)) * s0 - p0;
		mask = inside_cells(kind, q0, q1, q2, ARGS_PASS);
		from += (i64)((outer * groups + g) * channels) * cells + (i64)((q0 * in1 + q1) * in2 + q2);
		to += (i64)((outer * groups + g) * outs) * positions + at;
	}
	if (col < cols && kind == INPUT) {
		int q2 = (int)(at % (u32)in2) + p2, q1 = (int)(at / (u32)in2 % (u32)in1) + p1, q0 = (int)(at / (u32)(in1 * in2)) + p0;
		mask = inside_cells(kind, q0, q1, q2, ARGS_PASS);
		from += (i64)((outer * groups + g) * outs) * positions + (i64)((q0 / s0 * out1 + q1 / s1) * out2 + q2 / s2);
		to += (i64)((outer * groups + g) * channels) * cells + at;
	}
	if (col < cols && kind == WEIGHT) {
		m2 = (int)(at % (u32)k2) * d2, m1 = (int)(at / (u32)k2 % (u32)k1) * d1, m0 = (int)(at / (u32)(k1 * k2)) * d0;
		from += (i64)(g * channels + outer) * cells + (i64)((m0 * in1 + m1) * in2 + m2);
	}
	/* a by steps: lane is the step, warp the first of every eighth row */
	const T G *own = a + (i64)(row0 + warp) * row_step;
	float sum[4][4][4] = {};
	loaded l;
	if (TID < DEEP) {
		steps(kind, 0, begin + TID, end, ARGS_PASS);
		steps(kind, 1, begin + DEEP + TID, end, ARGS_PASS);
	}
	SYNC();

#define FETCH(half, k)                                                                                                                        \
	{                                                                                                                                     \
		if (pieces) {                                                                                                                 \
			_Pragma("unroll") for (u32 e = 0; e < 2; e++) {                                                                       \
				u32 c_ = TID + e * 256, row_ = c_ >> 2, x_ = (c_ & 3) * 8;                                                    \
				int there_ = row0 + row_ < rows && (k) + x_ < end;                                                            \
				copy16(address(room) + (half) * 4 * BUFFER + 2 * (row_ * PITCH + x_), there_ ? a + (i64)(row0 + row_) * row_step + (k) + x_ : a, there_); \
			}                                                                                                                     \
		} else {                                                                                                                      \
			int p_ = place_a[half][lane];                                                                                         \
			_Pragma("unroll") for (u32 i = 0; i < 16; i++) {                                                                      \
				u32 v_ = p_ >= 0 && row0 + warp + 8 * i < rows ? own[p_ + (i64)(8 * i) * row_step] : 0;                        \
				l.a[i / 2] = i & 1 ? l.a[i / 2] | v_ << 16 : v_;                                                              \
			}                                                                                                                     \
		}                                                                                                                             \
		_Pragma("unroll") for (u32 i = 0; i < 16; i++) {                                                                              \
			u32 kk_ = kb + i;                                                                                                     \
			int there_;                                                                                                           \
			if (kind == WEIGHT) {                                                                                                 \
				there_ = (u32)(at0[half][kk_] + m0) < (u32)in0 && (u32)(at1[half][kk_] + m1) < (u32)in1 && (u32)(at2[half][kk_] + m2) < (u32)in2; \
			} else {                                                                                                              \
				there_ = (int)(mask >> at0[half][kk_]) & 1;                                                                   \
			}                                                                                                                     \
			u32 v_ = there_ ? from[place_b[half][kk_]] : 0;                                                                       \
			l.b[i / 2] = i & 1 ? l.b[i / 2] | v_ << 16 : v_;                                                                      \
		}                                                                                                                             \
		copies_begun();                                                                                                               \
	}
#define LAND(half)                                                                                                                            \
	{                                                                                                                                     \
		S u16 *as_ = room + (half) * 2 * BUFFER, *bs_ = as_ + BUFFER + (TID & 127) * PITCH + kb;                                       \
		if (!pieces) {                                                                                                                \
			_Pragma("unroll") for (u32 i = 0; i < 16; i++) { as_[(warp + 8 * i) * PITCH + lane] = (u16)(l.a[i / 2] >> (i & 1) * 16); } \
		}                                                                                                                             \
		*(quad S *)bs_ = (quad){l.b[0], l.b[1], l.b[2], l.b[3]};                                                                       \
		*(quad S *)(bs_ + 8) = (quad){l.b[4], l.b[5], l.b[6], l.b[7]};                                                                 \
	}

	FETCH(0, begin)
	LAND(0)
	u32 half = 0;
	for (u32 k = begin; k < end; k += DEEP) {
		COPIES_LANDED(0);
		SYNC();
		if (k + DEEP < end) {
			FETCH(half ^ 1, k + DEEP)
		}
		u32 as = address(room) + half * 4 * BUFFER;
#pragma nounroll
		for (u32 kk = 0; kk < DEEP; kk += 16) {
			advance(sum, as, as + 2 * BUFFER, kk, wr, wc, r, q, 0, 0);
		}
		if (k + DEEP < end) {
			LAND(half ^ 1)
		}
		if (TID < DEEP) {
			steps(kind, half, k + 2 * DEEP + TID, end, ARGS_PASS);
		}
		half ^= 1;
	}
	if (kind == WEIGHT && partial) {
#pragma unroll
		for (u32 i = 0; i < 64; i++) {
			u32 row = row0 + wr + i / 16 * 16 + (i / 2 & 1) * 8 + (lane >> 2), c = col0 + wc + i / 4 % 4 * 8 + (lane & 3) * 2 + (i & 1);
			if (row < rows && c < cols) {
				partial[(i64)row * cols + c] = sum[i / 16][i / 4 % 4][i & 3];
			}
		}
		return;
	}
	SYNC();
	gather(sum, wr, wc, lane);
	SYNC();
	if (col < cols) {
		for (u32 t = TID >> 7; t < SIDE && row0 + t < rows; t += 2) {
			T v = room[t * TURNED + (TID & 127)];
			if (kind == WEIGHT) {
				y[(i64)(row0 + t) * cols + col] = v;
			} else {
				to[(i64)(row0 + t) * each] = v;
			}
		}
	}
}

#define DEPTH (u32)(channels * (u32)TAPS)

KERNEL conv(T G *y, const T G *x, const T G *w, ARGS) {
	product(FORWARD, 0, y, 0, w + (i64)(BIDZ * outs) * DEPTH, x, outs, samples * (u32)POSITIONS, 0, DEPTH, DEPTH, ARGS_PASS);
}

/* weights in pieces of 16 bytes */
KERNEL conv_pieces(T G *y, const T G *x, const T G *w, ARGS) {
	product(FORWARD, 1, y, 0, w + (i64)(BIDZ * outs) * DEPTH, x, outs, samples * (u32)POSITIONS, 0, DEPTH, DEPTH, ARGS_PASS);
}

KERNEL conv_grad_input(T G *dx, const T G *w, const T G *dy, ARGS) {
	product(INPUT, 0, dx, 0, w + (i64)(BIDZ * outs) * DEPTH, dy, channels, samples * (u32)CELLS, 0, outs * (u32)TAPS, (u32)TAPS, ARGS_PASS);
}

/* Blocks along z are stretches of the sum, then groups. With several stretches their sums go to scratch, [stretch][group][row][column], for conv_join. */
KERNEL conv_grad_weight(T G *dw, const T G *x, const T G *dy, float G *scratch, u32 stretch, ARGS) {
	u32 g = BIDZ % groups, part = BIDZ / groups, depth = samples * (u32)POSITIONS, begin = part * stretch, end = begin + stretch < depth ? begin + stretch : depth;
	i64 each = (i64)outs * DEPTH;
	product(WEIGHT, 0, dw + g * each, scratch ? scratch + (i64)BIDZ * each : scratch, dy + (i64)(g * outs) * (u32)POSITIONS, x, outs, DEPTH, begin, end, (u32)POSITIONS,
		ARGS_PASS);
}
