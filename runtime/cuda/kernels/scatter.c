/* ScatterAdd, GatherNDGrad, ScatterElements, ScatterND, always in row-major order of the indices.
 *
 * The sums sort the rows of indices by the place that they name (bucket_*): count a place's rows, turn counts into offsets, put each row anywhere among those of its place
 * (integer atomics; offsets become ends), and give it its rank, the number of smaller rows there. What comes out does not depend on who was first. Then one
 * thread adds up each element of the result. */
#include "math.h"
#include "tuples.h"

#if defined(F32) || defined(F64) || defined(H16)
#define IN const T G *
#define OUT T G *
#define TAIL HALF_ARG
#define PASS HALF_PASS
#else
#define IN const void G *
#define OUT void G *
#define TAIL , int type
#define PASS , type
#endif

KERNEL bucket_count(u64 G *offsets, const void G *idx, i64 rows, int wide, void G *record, TUPLES) {
	EACH(r, rows) { __atomic_fetch_add(&offsets[PLACE(idx, r, wide, record)], 1ul, __ATOMIC_RELAXED); }
}

/* counts become offsets; one block */
KERNEL bucket_scan(u64 G *offsets, i64 n) {
	static S u64 room[256];
	i64 each = (n + NT - 1) / NT, lo = TID * each, hi = lo + each < n ? lo + each : n;
	u64 sum = 0;
	for (i64 i = lo; i < hi; i++) {
		sum += offsets[i];
	}
	room[TID] = sum;
	SYNC();
	u64 at = 0;
	for (u32 k = 0; k < TID; k++) {
		at += room[k];
	}
	for (i64 i = lo; i < hi; i++) {
		u64 c = offsets[i];
		offsets[i] = at;
		at += c;
	}
}

/* rows in no order, those of a place together; their number fits 32 bits */
KERNEL bucket_place(u32 G *loose, u64 G *offsets, const void G *idx, i64 rows, int wide, void G *record, TUPLES) {
	EACH(r, rows) { loose[__atomic_fetch_add(&offsets[PLACE(idx, r, wide, record)], 1ul, __ATOMIC_RELAXED)] = (u32)r; }
}

KERNEL bucket_order(u32 G *order, const u32 G *loose, const u64 G *ends, const void G *idx, i64 rows, int wide, void G *record, TUPLES) {
	EACH(q, rows) {
		u32 r = loose[q];
		i64 p = PLACE(idx, r, wide, record);
		u64 begin = p ? ends[p - 1] : 0, end = ends[p], rank = 0;
		for (u64 j = begin; j < end; j++) {
			rank += loose[j] < r;
		}
		order[begin + rank] = r;
	}
}

/* result [outer, places, inner] of dy [outer, rows, inner] */
KERNEL bucket_sum(OUT y, IN dy, const u64 G *ends, const u32 G *order, i64 total, i64 places, i64 rows, i64 inner TAIL) {
	EACH(i, total) {
		i64 p = i / inner % places, o = i / (inner * places), c = i % inner;
		u64 begin = p ? ends[p - 1] : 0, end = ends[p];
#if defined(F32) || defined(F64) || defined(H16)
		double sum = 0;
		for (u64 q = begin; q < end; q++) {
			sum += (double)LOADC(dy[(o * rows + order[q]) * inner + c]);
		}
		y[i] = STORED(sum);
#else
		u64 sum = 0;
		for (u64 q = begin; q < end; q++) {
			sum += (u64)load_int(dy, (o * rows + order[q]) * inner + c, type);
		}
		store_int(y, i, type, (i64)sum);
#endif
	}
}

enum { SET, ADD, MUL, LEAST, MOST };

INLINE void combine(OUT y, i64 to, IN u, i64 from, int f TAIL) {
#if defined(F32) || defined(F64) || defined(H16)
	if (f == SET) {
		y[to] = u[from];
		return;
	}
	C a = LOADC(y[to]), b = LOADC(u[from]);
	switch (f) {
	case ADD:
		a = a + b;
		break;
	case MUL:
		a = a * b;
		break;
	case LEAST:
		a = a < b || a != a ? a : b;
		break;
	case MOST:
		a = a > b || a != a ? a : b;
		break;
	}
	y[to] = STOREC(a);
#else
	i64 a = load_int(y, to, type), b = load_int(u, from, type);
	switch (f) {
	case SET:
		a = b;
		break;
	case ADD:
		a = (i64)((u64)a + (u64)b);
		break;
	case MUL:
		a = (i64)((u64)a * (u64)b);
		break;
	case LEAST:
		a = a < b ? a : b;
		break;
	case MOST:
		a = a > b ? a : b;
		break;
	}
	store_int(y, to, type, a);
#endif
}

#define AT_(k, a) io += (i64)(k) * i##a, at += (i64)(k) * y##a

/* One thread takes the m indices of a line along the axis, which alone can name its places. The walk is over the lines. */
KERNEL scatter_elements(OUT y, const void G *idx, IN u, i64 lines, i64 ibase, i64 ybase, i64 m, i64 istep, i64 n, i64 along, int f, int wide,
	void G *record, AXES(d), STRIDES(i), STRIDES(y) TAIL) {
	EACH(l, lines) {
		i64 io = ibase, at = ybase;
		UNRAVEL(l, d, AT_);
		for (i64 j = 0; j < m; j++) {
			i64 k = io + j * istep;
			combine(y, at + entry(load_index(idx, k, wide), n, k, record) * along, u, k, f PASS);
		}
	}
}

/* One thread takes the same element of all slices: rows may name a place twice, in any way. */
KERNEL scatter_nd(OUT y, const void G *idx, IN u, i64 rows, i64 size, int f, int wide, void G *record, TUPLES TAIL) {
	EACH(c, size) {
		for (i64 r = 0; r < rows; r++) {
			combine(y, PLACE(idx, r, wide, record) * size + c, u, r * size + c, f PASS);
		}
	}
}
