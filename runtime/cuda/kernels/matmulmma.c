/* MatMul of f16 (-DF16) and bf16 (-DBF16) on tensor cores: tiles of 128 by 128, 32 deep, double-buffered through shared memory; eight warps with 64 by 32 elements each, as 4
 * by 4 products of 16x8x16 with sums in f32.
 *
 * An operand lies in shared memory as it lies in global memory: [rows][k] or, transposed, [k][rows]; ldmatrix turns it where needed. Rows of global memory
 * begin at multiples of 16 bytes and have multiples of 8 elements (the caller sees to it), so that a copy is inside or outside as a whole. b may be codes of
 * 8 or 4 bits, which become halves on their way into shared memory. */
#include "dequantize.h"
#include "epilogue.h"
#include "tile.h"

/* A thread brings two of the 512 pieces of 8 elements of each tile: where from, where to, how far along k, and whether the piece is inside along rows. */
typedef struct {
	const u16 G *from[2];
	u32 to[2];
	int k[2];
	quad data[2];
} pieces;

INLINE pieces begin(const S u16 *to, const u16 G *from, i64 row0, i64 rows, i64 lead, int turned) {
	pieces p;
#pragma unroll
	for (u32 e = 0; e < 2; e++) {
		u32 c = TID + e * 256;
		u32 r = turned ? c >> 4 : c >> 2, x = turned ? (c & 15) * 8 : (c & 3) * 8;
		i64 row = turned ? r : row0 + r, col = turned ? row0 + x : x;
		int inside = (turned ? col : row) < rows;
		p.from[e] = inside ? from + row * lead + col : from;
		p.to[e] = address(to) + 2 * (r * (turned ? TURNED : PITCH) + x);
		p.k[e] = inside ? (int)(turned ? r : x) : 0x40000000; /* beyond every end */
	}
	return p;
}

/* starts the copies of a tile that has `left` steps of k; what lies outside becomes zeros */
INLINE void fetch(pieces *p, u32 buffer, int left, i64 step) {
#pragma unroll
	for (u32 e = 0; e < 2; e++) {
#if defined(SM_75)
		p->data[e] = p->k[e] < left ? *(const quad G *)p->from[e] : (quad){};
#else
		copy16(p->to[e] + buffer, p->from[e], p->k[e] < left);
#endif
		p->from[e] += step;
	}
}

/* puts down what fetch has loaded */
INLINE void land(const pieces *p, u32 buffer) {
#if defined(SM_75)
#pragma unroll
	for (u32 e = 0; e < 2; e++) {
		*(quad S *)(u64)(p->to[e] + buffer) = p->data[e];
	}
#endif
}

/* The same for codes: row and column in the stored matrix, and eight codes. Neighbours in a piece have one scale, or scales that follow
 * one another (cb 1). */
typedef struct {
	const u8 G *from;
	u32 to[2], row[2], col[2], down, right;
	int k[2], there[2];
	u64 data[2];
} codes;

INLINE codes begin_codes(const S u16 *to, const u8 G *from, i64 row0, i64 rows, int turned) {
	codes p;
	p.from = from;
	p.down = turned ? DEEP : 0;
	p.right = turned ? 0 : DEEP;
#pragma unroll
	for (u32 e = 0; e < 2; e++) {
		u32 c = TID + e * 256;
		u32 r = turned ? c >> 4 : c >> 2, x = turned ? (c & 15) * 8 : (c & 3) * 8;
		p.row[e] = (turned ? 0 : (u32)row0) + r;
		p.col[e] = (turned ? (u32)row0 : 0) + x;
		p.to[e] = address(to) + 2 * (r * (turned ? TURNED : PITCH) + x);
		p.k[e] = (turned ? p.col[e] : p.row[e]) < rows ? (int)(turned ? r : x) : 0x40000000;
	}
	return p;
}

INLINE void fetch_codes(codes *p, int left, i64 lead, int format) {
#pragma unroll
	for (u32 e = 0; e < 2; e++) {
		i64 at = p->row[e] * lead + p->col[e];
		p->there[e] = p->k[e] < left;
		p->data[e] = !p->there[e] ? 0 : format >= INT4 ? *(const u32 G *)(p->from + at / 2) : *(const u64 G *)(p->from + at);
	}
}

/* Eight halves of a piece that has one scale and no zero: what most weights are. */
#define EIGHT(code)                                                                          \
	{                                                                                    \
		quad h;                                                                      \
		for (u32 i = 0; i < 4; i++) {                                                \
			h[i] = both(code(2 * i) * s, code(2 * i + 1) * s);                   \
		}                                                                            \
		*(quad S *)(u64)(to) = h;                                                    \
	}
#define BYTE(i) (float)(i8)(half[(i) / 4] >> (i) % 4 * 8)
#define NIBBLE(i) table[half[0] >> (i) * 4 & 15]

static S float table[16]; /* nf4, where threads find different entries at once */

INLINE void land_codes(codes *p, u32 buffer, GROUPS, SCALE) {
	u32 bits = format >= INT4 ? 4 : 8, mask = format >= INT4 ? 15 : 255, step = cb == 1 ? cs : 0;
	int quick = step == 0 && zero == 0 && (format == INT8 || format == NF4);
#pragma nounroll
	for (u32 e = 0; e < 2; e++) {
		u64 data = e ? p->data[1] : p->data[0];
		i64 g = (i64)((e ? p->row[1] : p->row[0]) / rb) * rs + (i64)((e ? p->col[1] : p->col[0]) / cb) * cs;
		u32 to = (e ? p->to[1] : p->to[0]) + buffer;
		int there = e ? p->there[1] : p->there[0];
		if (quick) {
			float s = there ? scaled(1, g, SCALE_PASS) : 0;
			u32 half[2] = {(u32)data, (u32)(data >> 32)};
			if (format == INT8) {
				EIGHT(BYTE)
			} else {
				EIGHT(NIBBLE)
			}
			continue;
		}
#pragma nounroll
		for (u32 i = 0; i < 8; i += 2) {
			float low = there ? scaled(meaning((u32)data & mask, format), g, SCALE_PASS) : 0;
			float high = there ? scaled(meaning((u32)(data >> bits) & mask, format), g + step, SCALE_PASS) : 0;
			data >>= 2 * bits;
			g += 2 * step;
			*(u32 S *)(u64)(to + 2 * i) = both(low, high);
		}
	}
#pragma unroll
	for (u32 e = 0; e < 2; e++) {
		p->row[e] += p->down;
		p->col[e] += p->right;
	}
}

enum { PLAIN, FUSED, QUANTIZED };

INLINE void product(int kind, int turn_a, int turn_b, T G *y, const T G *a, const T G *b, i64 m, i64 n, i64 k, i64 lead_a, i64 lead_b, EPILOGUE, GROUPS, SCALE) {
	i64 row0 = (i64)BID * SIDE, col0 = (i64)BIDY * SIDE;
	u32 lane = TID & 31, warp = TID >> 5, r = lane & 7, q = lane >> 3;
	u32 wr = (warp & 1) * 64, wc = (warp >> 1) * 32;
	float sum[4][4][4] = {};
	pieces pa = begin(room, a, row0, m, lead_a, turn_a), pb;
	codes pc;
	i64 step_a = turn_a ? DEEP * lead_a : DEEP, step_b = turn_b ? DEEP * lead_b : DEEP;
	int left = (int)k;
	u32 buffer = 0; /* of the tile that is multiplied, in bytes */
	fetch(&pa, 0, left, step_a);
	land(&pa, 0);
	if (kind == QUANTIZED) {
		if (TID < 16) {
			table[TID] = nf4[TID];
		}
		SYNC();
		pc = begin_codes(room + BUFFER, (const u8 G *)b, col0, n, turn_b);
		fetch_codes(&pc, left, lead_b, format);
		land_codes(&pc, 0, GROUPS_PASS, SCALE_PASS);
	} else {
		pb = begin(room + BUFFER, b, col0, n, lead_b, turn_b);
		fetch(&pb, 0, left, step_b);
		land(&pb, 0);
	}
	copies_begun();
	for (; left > 0; left -= DEEP) {
		u32 as = address(room) + buffer, bs = as + 2 * BUFFER;
		buffer ^= 4 * BUFFER;
		if (left > DEEP) {
			fetch(&pa, buffer, left - DEEP, step_a);
			if (kind == QUANTIZED) {
				fetch_codes(&pc, left - DEEP, lead_b, format);
			} else {
				fetch(&pb, buffer, left - DEEP, step_b);
			}
		}
		copies_begun();
		COPIES_LANDED(1);
		SYNC();
		if (kind == QUANTIZED) { /* decoding between the steps of a tile would only get into the way */
#pragma nounroll
			for (u32 kk = 0; kk < DEEP; kk += 16) {
				advance(sum, as, bs, kk, wr, wc, r, q, turn_a, turn_b);
			}
		} else {
#pragma unroll
			for (u32 kk = 0; kk < DEEP; kk += 16) {
				advance(sum, as, bs, kk, wr, wc, r, q, turn_a, turn_b);
			}
		}
		if (left > DEEP) {
			land(&pa, buffer);
			if (kind == QUANTIZED) {
				land_codes(&pc, buffer, GROUPS_PASS, SCALE_PASS);
			} else {
				land(&pb, buffer);
			}
		}
		SYNC();
	}
	if (kind != PLAIN) {
		gather(sum, wr, wc, lane);
		SYNC();
#pragma nounroll
		for (u32 t = TID; t < SIDE * SIDE; t += 256) {
			i64 row = row0 + (t >> 7), col = col0 + (t & 127);
			if (row < m && col < n) {
				y[row * n + col] = finished(room[(t >> 7) * TURNED + (t & 127)], add, row * add_row + col * add_col, act, alpha, beta);
			}
		}
		return;
	}
#pragma unroll
	for (u32 i = 0; i < 4; i++) {
#pragma unroll
		for (u32 j = 0; j < 4; j++) {
#pragma unroll
			for (u32 h = 0; h < 2; h++) {
				i64 row = row0 + wr + i * 16 + h * 8 + (lane >> 2), col = col0 + wc + j * 8 + (lane & 3) * 2;
				u32 two = both(sum[i][j][2 * h], sum[i][j][2 * h + 1]);
				if (row < m && col < n) {
					y[row * n + col] = (u16)two;
				}
				if (row < m && col + 1 < n) {
					y[row * n + col + 1] = (u16)(two >> 16);
				}
			}
		}
	}
}

#define ARGS                                                                                                                                 \
	T G *y, const T G *a, const T G *b, i64 m, i64 n, i64 k, i64 lead_a, i64 lead_b, u32 e1, u32 e2, u32 e3, i64 x0, i64 x1, i64 x2, i64 x3, \
		i64 z0, i64 z1, i64 z2, i64 z3

#define BATCH                                                           \
	u32 batch = BIDZ, c3 = batch % e3, w = batch / e3, c2 = w % e2; \
	w /= e2;                                                        \
	u32 c1 = w % e1, c0 = w / e1;                                   \
	a += c0 * x0 + c1 * x1 + c2 * x2 + c3 * x3;                     \
	b += c0 * z0 + c1 * z1 + c2 * z2 + c3 * z3;                     \
	y += (i64)batch * m * n;

#define MATMUL(name, turn_a, turn_b)                                                                                                            \
	KERNEL name(ARGS) {                                                                                                                     \
		BATCH                                                                                                                           \
		product(PLAIN, turn_a, turn_b, y, a, b, m, n, k, lead_a, lead_b, 0, 0, 0, 0, -1, 0, 0, 1, 0, 1, 0, 0, 0, 0, 0, 0, 0);           \
	}                                                                                                                                       \
	KERNEL name##_fused(ARGS, EPILOGUE) {                                                                                                   \
		BATCH                                                                                                                           \
		product(FUSED, turn_a, turn_b, y, a, b, m, n, k, lead_a, lead_b, add ? add + batch * add_batch : add, add_batch, add_row, add_col, act, \
			alpha, beta, 1, 0, 1, 0, 0, 0, 0, 0, 0, 0);                                                                             \
	}

/* named by how the operands lie: n as [rows][k], t as [k][rows] */
MATMUL(matmul_nn, 0, 0)
MATMUL(matmul_nt, 0, 1)
MATMUL(matmul_tn, 1, 0)
MATMUL(matmul_tt, 1, 1)

#define CODED(name, turn_b)                                                                                                                      \
	KERNEL name(ARGS, EPILOGUE, GROUPS, SCALE) {                                                                                             \
		BATCH                                                                                                                            \
		product(QUANTIZED, 0, turn_b, y, a, b, m, n, k, lead_a, lead_b, add ? add + batch * add_batch : add, add_batch, add_row, add_col, act, \
			alpha, beta, GROUPS_PASS, SCALE_PASS);                                                                                   \
	}

/* b holds codes, and is the same for the whole batch */
CODED(matmul_nn_coded, 0)
CODED(matmul_nt_coded, 1)
