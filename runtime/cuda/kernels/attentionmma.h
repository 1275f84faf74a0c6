/* Attention and its gradients of halves on tensor cores, for rows of up to DIM elements (a multiple of 8 of them): what attention.c does, tile by tile, with scores and their
 * slopes as halves where they are multiplied again, and sums in f32.
 *
 * A block has a warp for each 16 of ROWS queries (attention, attention_dq) or keys (attention_dkv), which stay in shared memory; 32 keys or queries at a time come by. attention
 * goes over the keys once and scales down what it has whenever a greater score turns up (Dao et al., FlashAttention, 2022; Milakov and Gimelshein, 2018). Memory does not
 * grow with the product of lengths. */
#include "math.h"
#include "mma.h"

#if DIM == 64
enum { WARPS = 4 };
#else
enum { WARPS = 2 };
#endif
enum { ROWS = 16 * WARPS, STEP = 32, WIDE = DIM + 8, NARROW = STEP + 8, COLS = DIM / 8 };

/* rows that stay, rows that come by, scores and slopes as halves, and what is added to scores */
static S u16 stay[2][ROWS * WIDE] __attribute__((aligned(16))), pass[2][STEP * WIDE] __attribute__((aligned(16))), tile[2][ROWS * NARROW] __attribute__((aligned(16)));
static S float added[ROWS][STEP + 1], lses[ROWS > STEP ? ROWS : STEP], deltas[ROWS > STEP ? ROWS : STEP], parts[32 * WARPS];

#define SHAPE i64 heads, i64 groups, i64 queries, i64 keys, i64 size, i64 width, float scale, int guard, const void G *mask, int mask_type, i64 m0, i64 m1, i64 m2, i64 m3

INLINE float mask_at(const void G *p, i64 i, int d) {
	switch (d) {
	case DF64:
		return (float)((const double G *)p)[i];
	case DF32:
		return ((const float G *)p)[i];
	case DF16:
		return half_to_float(((const u16 G *)p)[i]);
	}
	return bf_to_float(((const u16 G *)p)[i]);
}

INLINE float above(float x, float y) { return x > y || x != x ? x : y; }

/* e to the x: scores are differences from their greatest one here, and p is rounded to a half */
INLINE float power(float x) { return __nvvm_ex2_approx_f(x * 1.4426950408889634f); }

/* starts the copies of n rows of dims elements, of which `there` are there */
INLINE void bring(S u16 *to, const T G *from, u32 n, i64 there, i64 dims) {
#pragma nounroll
	for (u32 t = TID; t < n * (DIM / 8); t += 32 * WARPS) {
		u32 r = t / (DIM / 8), x = t % (DIM / 8) * 8;
		int inside = r < there && x < dims;
		copy16(address(to) + 2 * (r * WIDE + x), inside ? from + r * dims + x : from, inside);
	}
}

/* s = a*b transposed: a warp's 16 rows by STEP, rows of dims elements */
INLINE void dots(float s[4][4], const S u16 *a, const S u16 *b, i64 dims) {
	u32 lane = TID & 31, r = lane & 7, q = lane >> 3;
	u32 at_a = address(a) + 2 * (((TID >> 5) * 16 + (q & 1) * 8 + r) * WIDE + (q >> 1) * 8), at_b = address(b) + 2 * (((q >> 1) * 8 + r) * WIDE + (q & 1) * 8);
#pragma unroll
	for (u32 i = 0; i < 16; i++) {
		s[i / 4][i % 4] = 0;
	}
#pragma nounroll
	for (int d = 0; d < (int)dims; d += 32) { /* beyond dims there are zeros, up to a multiple of 64 */
#pragma unroll
		for (u32 e = 0; e < 2; e++) {
			u32 x[4], z[2][4];
			load4(x, at_a + 32 * e, 0);
#pragma unroll
			for (u32 j = 0; j < 2; j++) {
				load4(z[j], at_b + 32 * e + 2 * 16 * WIDE * j, 0);
			}
#pragma unroll
			for (u32 j = 0; j < 4; j++) {
				multiply(s[j], x, z[j >> 1] + (j & 1) * 2);
			}
		}
		at_a += 64;
		at_b += 64;
	}
}

/* acc += a*b: a warp's 16 rows of STEP halves of a tile, STEP rows of DIM */
INLINE void accumulate(float acc[COLS][4], const S u16 *a, const S u16 *b) {
	u32 lane = TID & 31, r = lane & 7, q = lane >> 3;
	u32 at_a = address(a) + 2 * (((TID >> 5) * 16 + (q & 1) * 8 + r) * NARROW + (q >> 1) * 8), at_b = address(b) + 2 * (((q & 1) * 8 + r) * WIDE + (q >> 1) * 8);
#pragma nounroll
	for (u32 k = 0; k < STEP; k += 16) {
		u32 x[4];
		load4(x, at_a, 0);
#pragma unroll
		for (u32 c = 0; c < COLS; c += 2) {
			u32 z[4];
			load4(z, at_b + 2 * 8 * c, 1);
			multiply(acc[c], x, z);
			multiply(acc[c + 1], x, z + 2);
		}
		at_a += 2 * 16;
		at_b += 2 * 16 * WIDE;
	}
}

/* where element e of s[j] lies in the block's tile */
#define ROW(e) ((TID >> 5) * 16 + ((e) >> 1) * 8 + ((TID & 31) >> 2))
#define COL(j, e) ((j) * 8 + (TID & 3) * 2 + ((e) & 1))

/* scores as halves into a tile; the warp that writes rows is the one that reads them */
INLINE void keep(S u16 *to, float s[4][4]) {
#pragma unroll
	for (u32 j = 0; j < 4; j++) {
		*(S u32 *)(to + ROW(0) * NARROW + COL(j, 0)) = both(s[j][0], s[j][1]);
		*(S u32 *)(to + ROW(2) * NARROW + COL(j, 0)) = both(s[j][2], s[j][3]);
	}
}

/* What is added to scores of rows from r0 and columns from c0: the mask, -inf beyond the last key. turned: rows are keys. */
INLINE void add_up(i64 b, i64 h, i64 r0, i64 c0, int turned, SHAPE) {
#pragma nounroll
	for (u32 t = TID; t < ROWS * STEP; t += 32 * WARPS) {
		i64 r = r0 + t / STEP, c = c0 + t % STEP, i = turned ? c : r, j = turned ? r : c;
		float v = j < keys ? 0 : -__builtin_inff();
		if (mask && i < queries && j < keys) {
			v = mask_at(mask, b * m0 + h * m1 + i * m2 + j * m3, mask_type);
		}
		added[t / STEP][t % STEP] = v;
	}
}

/* lse and dy*y of n queries, for the gradients */
INLINE void rows_of(u32 n, const T G *y, const T G *dy, const float G *lse, i64 rows, i64 width) {
	u32 per = 32 * WARPS / n, r = TID / per;
	float sum = 0;
	if (r < rows) {
#pragma nounroll
		for (i64 c = TID % per; c < width; c += per) {
			sum += LOADC(y[r * width + c]) * LOADC(dy[r * width + c]);
		}
	}
	parts[TID] = sum;
	SYNC();
	if (TID < n) {
		sum = 0;
		for (u32 k = 0; k < per; k++) {
			sum += parts[TID * per + k];
		}
		deltas[TID] = sum;
		lses[TID] = TID < rows ? lse[TID] : 0;
	}
}

/* p and the gradient of the scores, p * (dy*v - dy*y), from products; both zero where there is no query or no key. turned: rows are keys. */
INLINE void slopes(float p[4][4], float ds[4][4], i64 r0, i64 c0, int turned, i64 queries, i64 keys, float scale) {
#pragma unroll
	for (u32 e = 0; e < 16; e++) {
		u32 r = ROW(e & 3), c = COL(e >> 2, e & 3), i = turned ? c : r;
		int there = turned ? r0 + r < keys && c0 + c < queries : r0 + r < queries && c0 + c < keys;
		float l = lses[i], v = p[e >> 2][e & 3] * scale + added[r][c];
		v = there && l != -__builtin_inff() ? power(v - l) : 0;
		p[e >> 2][e & 3] = v;
		ds[e >> 2][e & 3] = there ? v * (ds[e >> 2][e & 3] - deltas[i]) : 0;
	}
}

INLINE void put(T G *to, float acc[COLS][4], const float factor[2], i64 rows, i64 dims) {
#pragma unroll
	for (u32 c = 0; c < COLS; c++) {
#pragma unroll
		for (u32 h = 0; h < 2; h++) {
			if (ROW(2 * h) < rows && COL(c, 0) < dims) { /* dims is even */
				*(G u32 *)(to + ROW(2 * h) * dims + COL(c, 0)) = both(acc[c][2 * h] * factor[h], acc[c][2 * h + 1] * factor[h]);
			}
		}
	}
}

#define SHUFFLED(x, d) __nvvm_shfl_sync_bfly_f32(-1, x, d, 31)

KERNEL attention(T G *y, float G *lse, const T G *q, const T G *k, const T G *v, SHAPE) {
	i64 tiles = (queries + ROWS - 1) / ROWS, at = BID / tiles, b = at / heads, h = at % heads, i0 = BID % tiles * ROWS;
	i64 group = b * groups + h / (heads / groups);
	q += at * queries * size;
	k += group * keys * size;
	v += group * keys * width;
	const float low = -__builtin_inff();
	float top[2] = {low, low}, total[2] = {0, 0}, acc[COLS][4] = {}, s[4][4];
	bring(stay[0], q + i0 * size, ROWS, queries - i0, size);
	bring(pass[0], k, STEP, keys, size);
	copies_begun();
	bring(pass[1], v, STEP, keys, width);
	copies_begun();
#pragma nounroll
	for (i64 j0 = 0; j0 < keys; j0 += STEP) {
		add_up(b, h, i0, j0, 0, heads, groups, queries, keys, size, width, scale, guard, mask, mask_type, m0, m1, m2, m3);
		COPIES_LANDED(1);
		SYNC();
		dots(s, stay[0], pass[0], size);
		SYNC();
		if (j0 + STEP < keys) {
			bring(pass[0], k + (j0 + STEP) * size, STEP, keys - j0 - STEP, size);
		}
		copies_begun();
		float m[2] = {top[0], top[1]}, down[2];
#pragma unroll
		for (u32 e = 0; e < 16; e++) {
			s[e >> 2][e & 3] = s[e >> 2][e & 3] * scale + added[ROW(e & 3)][COL(e >> 2, e & 3)];
			m[(e & 3) >> 1] = above(m[(e & 3) >> 1], s[e >> 2][e & 3]);
		}
#pragma unroll
		for (u32 i = 0; i < 2; i++) { /* four lanes share a row */
			m[i] = above(m[i], SHUFFLED(m[i], 1));
			m[i] = above(m[i], SHUFFLED(m[i], 2));
			down[i] = m[i] == low ? 1 : power(top[i] - m[i]);
			top[i] = m[i];
			total[i] *= down[i];
		}
#pragma unroll
		for (u32 e = 0; e < 16; e++) {
			float x = m[(e & 3) >> 1];
			x = x == low ? 0 : power(s[e >> 2][e & 3] - x);
			s[e >> 2][e & 3] = x;
			total[(e & 3) >> 1] += x;
		}
		keep(tile[0], s);
#pragma unroll
		for (u32 c = 0; c < COLS; c++) {
#pragma unroll
			for (u32 e = 0; e < 4; e++) {
				acc[c][e] *= down[e >> 1];
			}
		}
		COPIES_LANDED(1);
		SYNC();
		accumulate(acc, tile[0], pass[1]);
		SYNC();
		if (j0 + STEP < keys) {
			bring(pass[1], v + (j0 + STEP) * width, STEP, keys - j0 - STEP, width);
		}
		copies_begun();
	}
	float factor[2];
#pragma unroll
	for (u32 i = 0; i < 2; i++) {
		total[i] += SHUFFLED(total[i], 1);
		total[i] += SHUFFLED(total[i], 2);
		float none = guard ? low : __builtin_nanf("");
		if ((TID & 3) == 0 && i0 + ROW(2 * i) < queries) {
			lse[at * queries + i0 + ROW(2 * i)] = top[i] == low ? none : top[i] + log_f(total[i]);
		}
		factor[i] = top[i] == low ? (guard ? 0 : none) : 1 / total[i];
	}
	put(y + (at * queries + i0) * width, acc, factor, queries - i0, width);
}

#define OPERANDS const T G *q, const T G *k, const T G *v, const T G *y, const float G *lse, const T G *dy

KERNEL attention_dq(T G *dq, OPERANDS, SHAPE) {
	i64 tiles = (queries + ROWS - 1) / ROWS, at = BID / tiles, b = at / heads, h = at % heads, i0 = BID % tiles * ROWS;
	i64 group = b * groups + h / (heads / groups);
	q += (at * queries + i0) * size;
	k += group * keys * size;
	v += group * keys * width;
	y += (at * queries + i0) * width;
	dy += (at * queries + i0) * width;
	float p[4][4], ds[4][4], acc[COLS][4] = {};
	bring(stay[0], q, ROWS, queries - i0, size);
	bring(stay[1], dy, ROWS, queries - i0, width);
	rows_of(ROWS, y, dy, lse + at * queries + i0, queries - i0, width);
#pragma nounroll
	for (i64 j0 = 0; j0 < keys; j0 += STEP) {
		bring(pass[0], k + j0 * size, STEP, keys - j0, size);
		bring(pass[1], v + j0 * width, STEP, keys - j0, width);
		copies_begun();
		add_up(b, h, i0, j0, 0, heads, groups, queries, keys, size, width, scale, guard, mask, mask_type, m0, m1, m2, m3);
		COPIES_LANDED(0);
		SYNC();
		dots(p, stay[0], pass[0], size);
		dots(ds, stay[1], pass[1], width);
		slopes(p, ds, i0, j0, 0, queries, keys, scale);
		keep(tile[0], ds);
		SYNC();
		accumulate(acc, tile[0], pass[0]);
		SYNC();
	}
	const float factor[2] = {scale, scale};
	put(dq + (at * queries + i0) * size, acc, factor, queries - i0, size);
}

KERNEL attention_dkv(T G *dk, T G *dv, OPERANDS, SHAPE) {
	i64 tiles = (keys + ROWS - 1) / ROWS, group = BID / tiles, b = group / groups, per = heads / groups, j0 = BID % tiles * ROWS;
	k += (group * keys + j0) * size;
	v += (group * keys + j0) * width;
	float p[4][4], ds[4][4], acc_k[COLS][4] = {}, acc_v[COLS][4] = {};
	bring(stay[0], k, ROWS, keys - j0, size);
	bring(stay[1], v, ROWS, keys - j0, width);
#pragma nounroll
	for (i64 h = group % groups * per; h < (group % groups + 1) * per; h++) {
		i64 at = b * heads + h;
#pragma nounroll
		for (i64 i0 = 0; i0 < queries; i0 += STEP) {
			const T G *dyh = dy + (at * queries + i0) * width;
			bring(pass[0], q + (at * queries + i0) * size, STEP, queries - i0, size);
			bring(pass[1], dyh, STEP, queries - i0, width);
			copies_begun();
			add_up(b, h, j0, i0, 1, heads, groups, queries, keys, size, width, scale, guard, mask, mask_type, m0, m1, m2, m3);
			rows_of(STEP, y + (at * queries + i0) * width, dyh, lse + at * queries + i0, queries - i0, width);
			COPIES_LANDED(0);
			SYNC();
			dots(p, stay[0], pass[0], size);
			dots(ds, stay[1], pass[1], width);
			slopes(p, ds, j0, i0, 1, queries, keys, scale);
			keep(tile[0], p);
			keep(tile[1], ds);
			SYNC();
			accumulate(acc_v, tile[0], pass[1]);
			accumulate(acc_k, tile[1], pass[0]);
			SYNC();
		}
	}
	const float one[2] = {1, 1}, factor[2] = {scale, scale};
	put(dv + (group * keys + j0) * width, acc_v, one, keys - j0, width);
	put(dk + (group * keys + j0) * size, acc_k, factor, keys - j0, size);
}
