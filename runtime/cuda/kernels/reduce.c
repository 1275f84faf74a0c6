/* ReduceSum, ReduceMean, ReduceProd, ReduceMax, ReduceMin. The axes that stay and those that go are walked over separately, up to four of each after
 * merging. One thread or one block takes an element of the result; where there are few of these, stretches of what is reduced are taken side by
 * side into `partials` (scratch) and then joined in order. How it is cut depends on shapes alone. */
#include "math.h"

enum { SUM, PROD, MAX, MIN };

#if defined(F32) || defined(F64) || defined(H16)
typedef double A;
#define IN const T G *
#define OUT T G *
#define TAIL HALF_ARG
#define PASS HALF_PASS
#define GET(i) ((double)LOADC(x[i]))
#define PUT(i, v) y[i] = STORED(v)
INLINE A first(int f) { return f == PROD ? 1.0 : f == MAX ? -INFD : f == MIN ? INFD : 0.0; }
INLINE A join(A a, A b, int f) {
	switch (f) {
	case PROD:
		return a * b;
	case MAX:
		return a > b || a != a ? a : b;
	case MIN:
		return a < b || a != a ? a : b;
	}
	return a + b;
}
INLINE A shared_out(A v, i64 divisor, int mean) { return mean ? v / (double)divisor : v; }
#else
typedef i64 A;
#define IN const void G *
#define OUT void G *
#define TAIL , int type
#define PASS , type
#define GET(i) load_int(x, i, type)
#define PUT(i, v) store_int(y, i, type, v)
INLINE A first(int f) { return f == PROD ? 1 : f == MAX ? (i64)0x8000000000000000 : f == MIN ? 0x7fffffffffffffff : 0; }
INLINE A join(A a, A b, int f) {
	switch (f) {
	case PROD:
		return (i64)((u64)a * (u64)b);
	case MAX:
		return a > b ? a : b;
	case MIN:
		return a < b ? a : b;
	}
	return (i64)((u64)a + (u64)b);
}
INLINE A shared_out(A v, i64 divisor, int mean) { return !mean ? v : divisor ? v / divisor : 0; }
#endif

#define FOUR(d, s) u32 d##0, u32 d##1, u32 d##2, u32 d##3, i64 s##0, i64 s##1, i64 s##2, i64 s##3
#define LOCATE(i, d, s) locate(i, d##1, d##2, d##3, s##0, s##1, s##2, s##3)

INLINE i64 locate(i64 i, u32 d1, u32 d2, u32 d3, i64 s0, i64 s1, i64 s2, i64 s3) {
	if ((i64)d3 > i) return i * s3;
	i64 at = i % d3 * s3;
	i /= d3;
	at += i % d2 * s2;
	i /= d2;
	at += i % d1 * s1;
	return at + i / d1 * s0;
}

/* k is which stretch */
INLINE void finish(OUT y, A G *partials, i64 o, A v, i64 outputs, i64 splits, i64 k, i64 divisor, int mean TAIL) {
	if (splits == 1) {
		PUT(o, shared_out(v, divisor, mean));
	} else {
		partials[k * outputs + o] = v;
	}
}

KERNEL reduce_thread(OUT y, IN x, A G *partials, i64 outputs, i64 count, i64 splits, i64 chunk, int f, i64 divisor, int mean, FOUR(o, p), FOUR(r, q) TAIL) {
	i64 lo = BIDY * chunk, hi = lo + chunk < count ? lo + chunk : count;
	EACH(o, outputs) {
		i64 base = LOCATE(o, o, p);
		A v = first(f);
		for (i64 r = lo; r < hi; r++) {
			v = join(v, GET(base + LOCATE(r, r, q)), f);
		}
		finish(y, partials, o, v, outputs, splits, BIDY, divisor, mean PASS);
	}
}

KERNEL reduce_block(OUT y, IN x, A G *partials, i64 outputs, i64 count, i64 splits, i64 chunk, int f, i64 divisor, int mean, FOUR(o, p), FOUR(r, q) TAIL) {
	static S A room[256];
	i64 lo = BIDY * chunk, hi = lo + chunk < count ? lo + chunk : count;
	for (i64 o = BID; o < outputs; o += NB) {
		i64 base = LOCATE(o, o, p);
		A v = first(f);
		for (i64 r = lo + TID; r < hi; r += NT) {
			v = join(v, GET(base + LOCATE(r, r, q)), f);
		}
		room[TID] = v;
		SYNC();
		for (u32 n = NT / 2; n > 0; n /= 2) {
			if (TID < n) {
				room[TID] = join(room[TID], room[TID + n], f);
			}
			SYNC();
		}
		if (TID == 0) {
			finish(y, partials, o, room[0], outputs, splits, BIDY, divisor, mean PASS);
		}
		SYNC();
	}
}

KERNEL reduce_finish(OUT y, const A G *partials, i64 outputs, i64 splits, int f, i64 divisor, int mean TAIL) {
	EACH(o, outputs) {
		A v = first(f);
		for (i64 k = 0; k < splits; k++) {
			v = join(v, partials[k * outputs + o], f);
		}
		PUT(o, shared_out(v, divisor, mean));
	}
}
