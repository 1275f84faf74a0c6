/* Attention and its gradients, tile by tile: 32 queries by 32 keys, never the whole matrix of scores. Scores are computed again wherever they are needed; a
 * block makes CHUNK columns of its result. 256 threads hold 2 by 2 scores each (thread rows ty, columns tx), or 2 rows of CHUNK/16 columns.
 *
 *   attention            a block for 32 queries of a head: once over the keys for lse, once more for y
 *   attention_dq         a block for 32 queries of a head
 *   attention_dkv        a block for 32 keys of a group: its heads in order, their queries in order
 *   attention_dmask      a block for 32 by 32 scores: the heads that share the mask in order */
#include "math.h"

enum { SIDE = 32 };
#if defined(F64)
enum { CHUNK = 64 };
#else
enum { CHUNK = 128 };
#endif
#define WIDE (CHUNK / 16)

static S C as[SIDE][SIDE + 1], bs[SIDE][SIDE + 1], ps[SIDE][SIDE + 1], vs[SIDE][CHUNK];
static S C top[SIDE], total[SIDE], lses[SIDE], deltas[SIDE];

#define TX (TID & 15)
#define TY (TID >> 4)

/* what all kernels take: extents, the scale, and where mask elements lie; m0 to m3 are its steps along batch, head, query and key */
#define SHAPE i64 heads, i64 groups, i64 queries, i64 keys, i64 size, i64 width, C scale, int guard, const void G *mask, int mask_type, i64 m0, i64 m1, i64 m2, i64 m3 HALF_ARG
#define SHAPE_PASS heads, groups, queries, keys, size, width, scale, guard, mask, mask_type, m0, m1, m2, m3 HALF_PASS

INLINE C mask_at(const void G *p, i64 i, int d) {
	switch (d) {
	case DF64:
		return (C)((const double G *)p)[i];
	case DF32:
		return (C)((const float G *)p)[i];
	case DF16:
		return (C)half_to_float(((const u16 G *)p)[i]);
	}
	return (C)bf_to_float(((const u16 G *)p)[i]);
}

INLINE C above(C x, C y) { return x > y || x != x ? x : y; }

/* products of rows of a and rows of b, `dims` long, of which a_rows and b_rows are there */
INLINE void dots(C out[2][2], const T G *a, i64 a_rows, const T G *b, i64 b_rows, i64 dims HALF_ARG) {
	out[0][0] = out[0][1] = out[1][0] = out[1][1] = 0;
	for (i64 d0 = 0; d0 < dims; d0 += SIDE) {
#pragma nounroll
		for (u32 t = TID; t < SIDE * SIDE; t += 256) {
			u32 r = t >> 5, c = t & 31;
			as[r][c] = r < a_rows && d0 + c < dims ? LOADC(a[r * dims + d0 + c]) : (C)0;
			bs[r][c] = r < b_rows && d0 + c < dims ? LOADC(b[r * dims + d0 + c]) : (C)0;
		}
		SYNC();
#pragma unroll 8
		for (u32 c = 0; c < SIDE; c++) {
			C x0 = as[TY * 2][c], x1 = as[TY * 2 + 1][c], z0 = bs[TX * 2][c], z1 = bs[TX * 2 + 1][c];
			out[0][0] = BUILTIN(fma)(x0, z0, out[0][0]);
			out[0][1] = BUILTIN(fma)(x0, z1, out[0][1]);
			out[1][0] = BUILTIN(fma)(x1, z0, out[1][0]);
			out[1][1] = BUILTIN(fma)(x1, z1, out[1][1]);
		}
		SYNC();
	}
}

/* scores of queries from i0 and keys from j0 of a head; -inf beyond the last key */
INLINE void scores(C s[2][2], const T G *q, const T G *k, i64 b, i64 h, i64 i0, i64 j0, SHAPE) {
	dots(s, q + i0 * size, queries - i0, k + j0 * size, keys - j0, size HALF_PASS);
#pragma unroll
	for (u32 e = 0; e < 4; e++) {
		i64 i = i0 + TY * 2 + e / 2, j = j0 + TX * 2 + e % 2;
		C v = s[e / 2][e % 2] * scale;
		if (mask && i < queries && j < keys) {
			v += mask_at(mask, b * m0 + h * m1 + i * m2 + j * m3, mask_type);
		}
		s[e / 2][e % 2] = j < keys ? v : -(C)__builtin_inf();
	}
}

/* the softmax of scores, by the rows' lse */
INLINE void soften(C s[2][2]) {
#pragma unroll
	for (u32 e = 0; e < 4; e++) {
		C l = lses[TY * 2 + e / 2];
		s[e / 2][e % 2] = l == -(C)__builtin_inf() ? (C)0 : FN(exp)(s[e / 2][e % 2] - l);
	}
}

INLINE void keep(C s[2][2]) { /* to ps */
#pragma unroll
	for (u32 e = 0; e < 4; e++) {
		ps[TY * 2 + e / 2][TX * 2 + e % 2] = s[e / 2][e % 2];
	}
}

/* 32 rows of CHUNK columns from column c0 on, of rows of n elements */
INLINE void columns(const T G *from, i64 rows, i64 n, i64 c0 HALF_ARG) {
#pragma nounroll
	for (u32 t = TID; t < SIDE * CHUNK; t += 256) {
		u32 r = t / CHUNK, c = t % CHUNK;
		vs[r][c] = r < rows && c0 + c < n ? LOADC(from[r * n + c0 + c]) : (C)0;
	}
}

/* acc += ps * vs, or transposed ps */
INLINE void accumulate(C acc[2][WIDE], int turned) {
#pragma unroll 4
	for (u32 j = 0; j < SIDE; j++) {
		C x0 = turned ? ps[j][TY * 2] : ps[TY * 2][j], x1 = turned ? ps[j][TY * 2 + 1] : ps[TY * 2 + 1][j];
#pragma unroll
		for (u32 c = 0; c < WIDE; c++) {
			C v = vs[j][TX + 16 * c];
			acc[0][c] = BUILTIN(fma)(x0, v, acc[0][c]);
			acc[1][c] = BUILTIN(fma)(x1, v, acc[1][c]);
		}
	}
}

INLINE void store(T G *to, C acc[2][WIDE], i64 rows, i64 n, i64 c0, C factor HALF_ARG) {
#pragma unroll
	for (u32 i = 0; i < 2; i++) {
#pragma unroll
		for (u32 c = 0; c < WIDE; c++) {
			i64 col = c0 + TX + 16 * c;
			if (TY * 2 + i < rows && col < n) {
				to[(TY * 2 + i) * n + col] = STOREC(acc[i][c] * factor);
			}
		}
	}
}

/* lse and dy*y of 32 queries, for the gradients */
INLINE void rows_of(const T G *y, const T G *dy, const C G *lse, i64 rows, i64 width HALF_ARG) {
	u32 r = TID >> 3;
	C sum = 0;
	if (r < rows) {
		for (i64 c = TID & 7; c < width; c += 8) {
			sum += LOADC(y[r * width + c]) * LOADC(dy[r * width + c]);
		}
	}
	ps[r][TID & 7] = sum;
	SYNC();
	if (TID < SIDE) {
		sum = 0;
		for (u32 k = 0; k < 8; k++) {
			sum += ps[TID][k];
		}
		deltas[TID] = sum;
		lses[TID] = TID < rows ? lse[TID] : (C)0;
	}
	SYNC();
}

/* p and the gradient of the scores, p * (dy*v - dy*y), both zero beyond the last query */
INLINE void slopes(C p[2][2], C ds[2][2], const T G *q, const T G *k, const T G *v, const T G *dy, i64 b, i64 h, i64 i0, i64 j0, SHAPE) {
	scores(p, q, k, b, h, i0, j0, SHAPE_PASS);
	soften(p);
	dots(ds, dy + i0 * width, queries - i0, v + j0 * width, keys - j0, width HALF_PASS);
#pragma unroll
	for (u32 e = 0; e < 4; e++) {
		u32 r = TY * 2 + e / 2;
		int there = i0 + r < queries && j0 + TX * 2 + e % 2 < keys;
		p[e / 2][e % 2] = there ? p[e / 2][e % 2] : (C)0;
		ds[e / 2][e % 2] = there ? p[e / 2][e % 2] * (ds[e / 2][e % 2] - deltas[r]) : (C)0;
	}
}

KERNEL attention(T G *y, C G *lse, const T G *q, const T G *k, const T G *v, SHAPE) {
	i64 tiles = (queries + SIDE - 1) / SIDE, at = BID / tiles, b = at / heads, h = at % heads, i0 = BID % tiles * SIDE, c0 = (i64)BIDY * CHUNK;
	i64 group = b * groups + h / (heads / groups), rows = queries - i0;
	q += at * queries * size;
	k += group * keys * size;
	v += group * keys * width;
	const C low = -(C)__builtin_inf();
	if (TID < SIDE) {
		top[TID] = low;
		total[TID] = 0;
	}
	SYNC();
	C s[2][2], acc[2][WIDE] = {};
	for (i64 j0 = 0; j0 < keys; j0 += SIDE) {
		scores(s, q, k, b, h, i0, j0, SHAPE_PASS);
		keep(s);
		SYNC();
		if (TID < SIDE) {
			C m = top[TID];
			for (u32 j = 0; j < SIDE; j++) {
				m = above(m, ps[TID][j]);
			}
			total[TID] *= m == low ? (C)0 : FN(exp)(top[TID] - m);
			top[TID] = m;
		}
		SYNC();
#pragma unroll
		for (u32 e = 0; e < 4; e++) {
			C m = top[TY * 2 + e / 2];
			s[e / 2][e % 2] = m == low ? (C)0 : FN(exp)(s[e / 2][e % 2] - m);
		}
		keep(s);
		SYNC();
		if (TID < SIDE) {
			C sum = total[TID];
			for (u32 j = 0; j < SIDE; j++) {
				sum += ps[TID][j];
			}
			total[TID] = sum;
		}
		SYNC();
	}
	if (TID < SIDE) {
		C l = top[TID] == low ? (guard ? low : (C)__builtin_nan("")) : top[TID] + FN(log)(total[TID]);
		lses[TID] = l;
		if (c0 == 0 && TID < rows) {
			lse[at * queries + i0 + TID] = l;
		}
	}
	SYNC();
	for (i64 j0 = 0; j0 < keys; j0 += SIDE) {
		scores(s, q, k, b, h, i0, j0, SHAPE_PASS);
		soften(s);
		keep(s);
		columns(v + j0 * width, keys - j0, width, c0 HALF_PASS);
		SYNC();
		accumulate(acc, 0);
		SYNC();
	}
	store(y + (at * queries + i0) * width, acc, rows, width, c0, (C)1 HALF_PASS);
}

#define OPERANDS const T G *q, const T G *k, const T G *v, const T G *y, const C G *lse, const T G *dy

KERNEL attention_dq(T G *dq, OPERANDS, SHAPE) {
	i64 tiles = (queries + SIDE - 1) / SIDE, at = BID / tiles, b = at / heads, h = at % heads, i0 = BID % tiles * SIDE, c0 = (i64)BIDY * CHUNK;
	i64 group = b * groups + h / (heads / groups);
	q += at * queries * size;
	k += group * keys * size;
	v += group * keys * width;
	y += at * queries * width;
	dy += at * queries * width;
	C p[2][2], ds[2][2], acc[2][WIDE] = {};
	rows_of(y + i0 * width, dy + i0 * width, lse + at * queries + i0, queries - i0, width HALF_PASS);
	for (i64 j0 = 0; j0 < keys; j0 += SIDE) {
		slopes(p, ds, q, k, v, dy, b, h, i0, j0, SHAPE_PASS);
		keep(ds);
		columns(k + j0 * size, keys - j0, size, c0 HALF_PASS);
		SYNC();
		accumulate(acc, 0);
		SYNC();
	}
	store(dq + (at * queries + i0) * size, acc, queries - i0, size, c0, scale HALF_PASS);
}

/* chunks of dv along y first, then those of dk */
KERNEL attention_dkv(T G *dk, T G *dv, OPERANDS, SHAPE) {
	i64 tiles = (keys + SIDE - 1) / SIDE, group = BID / tiles, b = group / groups, per = heads / groups, j0 = BID % tiles * SIDE;
	i64 chunks = (width + CHUNK - 1) / CHUNK, c0 = ((i64)BIDY < chunks ? BIDY : BIDY - chunks) * CHUNK;
	int values = (i64)BIDY < chunks;
	k += group * keys * size;
	v += group * keys * width;
	C p[2][2], ds[2][2], acc[2][WIDE] = {};
	for (i64 h = group % groups * per; h < (group % groups + 1) * per; h++) {
		i64 at = b * heads + h;
		const T G *qh = q + at * queries * size, *yh = y + at * queries * width, *dyh = dy + at * queries * width;
		for (i64 i0 = 0; i0 < queries; i0 += SIDE) {
			rows_of(yh + i0 * width, dyh + i0 * width, lse + at * queries + i0, queries - i0, width HALF_PASS);
			slopes(p, ds, qh, k, v, dyh, b, h, i0, j0, SHAPE_PASS);
			if (values) {
				keep(p);
				columns(dyh + i0 * width, queries - i0, width, c0 HALF_PASS);
			} else {
				keep(ds);
				columns(qh + i0 * size, queries - i0, size, c0 HALF_PASS);
			}
			SYNC();
			accumulate(acc, 1);
			SYNC();
		}
	}
	if (values) {
		store(dv + (group * keys + j0) * width, acc, keys - j0, width, c0, (C)1 HALF_PASS);
	} else {
		store(dk + (group * keys + j0) * size, acc, keys - j0, size, c0, scale HALF_PASS);
	}
}

INLINE void store_mask(void G *p, i64 i, int d, C v) {
	switch (d) {
	case DF64:
		((double G *)p)[i] = (double)v;
		break;
	case DF32:
		((float G *)p)[i] = (float)v;
		break;
	case DF16:
		((u16 G *)p)[i] = float_to_half((float)v);
		break;
	case DBF16:
		((u16 G *)p)[i] = float_to_bf((float)v);
		break;
	}
}

/* of a mask with mb batches and mh heads, each one or all */
KERNEL attention_dmask(void G *dm, OPERANDS, i64 batch, i64 mb, i64 mh, SHAPE) {
	i64 across = (keys + SIDE - 1) / SIDE, down = (queries + SIDE - 1) / SIDE;
	i64 j0 = BID % across * SIDE, i0 = BID / across % down * SIDE, own = BID / (across * down);
	C p[2][2], ds[2][2], sum[2][2] = {};
	for (i64 b = own / mh; b < batch; b += mb) {
		for (i64 h = own % mh; h < heads; h += mh) {
			i64 at = b * heads + h, group = b * groups + h / (heads / groups);
			rows_of(y + (at * queries + i0) * width, dy + (at * queries + i0) * width, lse + at * queries + i0, queries - i0, width HALF_PASS);
			slopes(p, ds, q + at * queries * size, k + group * keys * size, v + group * keys * width, dy + at * queries * width, b, h, i0, j0, SHAPE_PASS);
#pragma unroll
			for (u32 e = 0; e < 4; e++) {
				sum[e / 2][e % 2] += ds[e / 2][e % 2];
			}
		}
	}
#pragma unroll
	for (u32 e = 0; e < 4; e++) {
		i64 i = i0 + TY * 2 + e / 2, j = j0 + TX * 2 + e % 2;
		if (i < queries && j < keys) {
			store_mask(dm, (own * queries + i) * keys + j, mask_type, sum[e / 2][e % 2]);
		}
	}
}
