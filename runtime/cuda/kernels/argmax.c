/* ArgMax and TopK along lines. Line l begins at l/inner*n*inner + l%inner, its elements are inner apart. */
#include "math.h"

#if defined(F32) || defined(F64) || defined(H16)
typedef C V;
#define IN const T G *
#define TAIL HALF_ARG
#define GET(i) LOADC(x[i])
#define ISNAN(v) ((v) != (v))
#define ABOVE(a, b) ((a) > (b))
#else
typedef i64 V;
#define IN const void G *
#define TAIL , int type
#define GET(i) load_int(x, i, type)
#define ISNAN(v) 0
#define ABOVE(a, b) ((a) > (b))
#endif

/* whether a at index i is chosen before b at index j; NaN is chosen before numbers */
INLINE int before(V a, i64 i, V b, i64 j, int least, int last) {
	if (ISNAN(a) || ISNAN(b)) {
		if (ISNAN(a) != ISNAN(b)) return ISNAN(a);
	} else if (a != b) {
		return ABOVE(a, b) != least;
	}
	return last ? i > j : i < j;
}

KERNEL argmax(i64 G *y, IN x, i64 lines, i64 n, i64 inner, int least, int last TAIL) {
	static S V value[128];
	static S i64 index[128];
	for (i64 l = BID; l < lines; l += NB) {
		i64 begin = l / inner * n * inner + l % inner;
		V best = GET(begin + (TID < n ? TID : 0) * inner);
		i64 at = TID < n ? TID : 0;
		for (i64 j = TID + NT; j < n; j += NT) {
			V v = GET(begin + j * inner);
			if (before(v, j, best, at, least, last)) {
				best = v;
				at = j;
			}
		}
		value[TID] = best;
		index[TID] = at;
		SYNC();
		for (u32 k = NT / 2; k > 0; k /= 2) {
			if (TID < k && before(value[TID + k], index[TID + k], value[TID], index[TID], least, last)) {
				value[TID] = value[TID + k];
				index[TID] = index[TID + k];
			}
			SYNC();
		}
		if (TID == 0) {
			y[l] = index[0];
		}
		SYNC();
	}
}

/* NaN is greater than every number; the lower index comes first at ties */
INLINE int sooner(V a, i64 i, V b, i64 j, int least, int unsign) {
	if (ISNAN(a) || ISNAN(b)) {
		if (ISNAN(a) != ISNAN(b)) return ISNAN(a) != least;
	} else if (a != b) {
#if !defined(F32) && !defined(F64) && !defined(H16)
		if (unsign) return ((u64)a > (u64)b) != least;
#endif
		return ABOVE(a, b) != least;
	}
	return i < j;
}

/* A block for a line, and k rounds: the first of those that come after the round before's. For long lines of which few are wanted. */
KERNEL topk_rounds(
#if defined(F32) || defined(F64) || defined(H16)
	T G *y,
#else
	void G *y,
#endif
	i64 G *indices, IN x, i64 lines, i64 n, i64 inner, i64 k, int least, int unsign TAIL) {
	static S V value[256];
	static S i64 index[256]; /* -1: none */
	for (i64 l = BID; l < lines; l += NB) {
		i64 begin = l / inner * n * inner + l % inner, last = -1;
		V gone = 0;
		for (i64 r = 0; r < k; r++) {
			V best = 0;
			i64 at = -1;
			for (i64 j = TID; j < n; j += NT) {
				V v = GET(begin + j * inner);
				if ((last < 0 || sooner(gone, last, v, j, least, unsign)) && (at < 0 || sooner(v, j, best, at, least, unsign))) {
					best = v;
					at = j;
				}
			}
			value[TID] = best;
			index[TID] = at;
			SYNC();
			for (u32 h = NT / 2; h > 0; h /= 2) {
				if (TID < h && index[TID + h] >= 0 && (index[TID] < 0 || sooner(value[TID + h], index[TID + h], value[TID], index[TID], least, unsign))) {
					value[TID] = value[TID + h];
					index[TID] = index[TID + h];
				}
				SYNC();
			}
			gone = value[0];
			last = index[0];
			SYNC();
			if (TID == 0) {
				i64 to = (l / inner * k + r) * inner + l % inner;
#if defined(F32) || defined(F64) || defined(H16)
				y[to] = x[begin + last * inner];
#else
				store_int(y, to, type, gone);
#endif
				indices[to] = last;
			}
		}
	}
}

/* Each element counts those that come before it; it is among the k if they are fewer. */
KERNEL topk(
#if defined(F32) || defined(F64) || defined(H16)
	T G *y,
#else
	void G *y,
#endif
	i64 G *indices, IN x, i64 lines, i64 n, i64 inner, i64 k, int least, int unsign TAIL) {
	EACH(t, lines * n) {
		i64 l = t / n, j = t % n;
		i64 begin = l / inner * n * inner + l % inner;
		V v = GET(begin + j * inner);
		i64 rank = 0;
		for (i64 i = 0; i < n && rank < k; i++) {
			rank += i != j && sooner(GET(begin + i * inner), i, v, j, least, unsign);
		}
		if (rank < k) {
			i64 to = (l / inner * k + rank) * inner + l % inner;
#if defined(F32) || defined(F64) || defined(H16)
			y[to] = x[begin + j * inner];
#else
			store_int(y, to, type, v);
#endif
			indices[to] = j;
		}
	}
}
