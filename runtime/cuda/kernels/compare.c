/* Comparisons, which give booleans: Equal, Less, LessEqual of two operands that broadcast, IsNaN and IsInf of one. */
#include "math.h"

enum { EQUAL, LESS, LESS_EQUAL, IS_NAN, IS_INF };

#define AT_(c, a) xo += (i64)(c) * x##a, yo += (i64)(c) * y##a

#if defined(F32) || defined(F64) || defined(H16)
#define V C
#define IN const T G *
#define TAIL HALF_ARG
#define GET(p, i) LOADC((p)[i])
#else
#define V i64
#define IN const void G *
#define TAIL , int type
#define GET(p, i) load_int(p, i, type)
#endif

INLINE u8 apply(V x, V y, int f) {
	switch (f) {
	case EQUAL:
		return x == y;
	case LESS:
		return x < y;
	case LESS_EQUAL:
		return x <= y;
#if defined(F32) || defined(F64) || defined(H16)
	case IS_NAN:
		return x != x;
	case IS_INF:
		return BUILTIN(fabs)(x) == (C)__builtin_inf();
#endif
	}
	return 0;
}

KERNEL compare(u8 G *z, IN x, IN y, i64 n, i64 xs, i64 ys, int f TAIL) {
	EACH(i, n) { z[i] = apply(GET(x, i * xs), GET(y, i * ys), f); }
}

KERNEL compare_wide(u8 G *z, IN x, IN y, i64 n, int f, AXES(d), STRIDES(x), STRIDES(y) TAIL) {
	EACH(i, n) {
		i64 xo = 0, yo = 0;
		UNRAVEL(i, d, AT_);
		z[i] = apply(GET(x, xo), GET(y, yo), f);
	}
}
