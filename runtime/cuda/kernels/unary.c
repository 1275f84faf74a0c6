/* Functions of one element: Neg, Abs, Sign, Floor, Ceil, Round, Exp, Log, Sqrt, Rsqrt, Reciprocal, Sin, Cos, Atan. The function is an argument: the
 * switch is the same for all threads, and memory is what limits. */
#include "math.h"

enum { NEG, ABS, SIGN, FLOOR, CEIL, ROUND, EXP, LOG, SQRT, RSQRT, RECIPROCAL, SIN, COS, ATAN };

#if defined(F32) || defined(F64) || defined(H16)
INLINE double atan_d(double x) {
	/* atan(x) = pi/2 - atan(1/x); twice halved by atan(x) = 2 atan(x / (1 + sqrt(1+x*x))) */
	double a = __builtin_fabs(x);
	if (x != x) return x;
	int big = a > 1.0;
	double t = big ? 1.0 / a : a;
	t = t / (1.0 + __nvvm_sqrt_rn_d(1.0 + t * t));
	t = t / (1.0 + __nvvm_sqrt_rn_d(1.0 + t * t));
	double z = t * t, p = 0;
	for (int k = 25; k >= 1; k -= 2) {
		p = (k & 2 ? -1.0 : 1.0) / (double)k + z * p;
	}
	double y = 4.0 * t * p;
	return __builtin_copysign(big ? 1.5707963267948966192 - y : y, x);
}

INLINE C apply(C x, int f) {
	switch (f) {
	case NEG:
		return -x;
	case ABS:
		return BUILTIN(fabs)(x);
	case SIGN:
		return x > 0 ? (C)1 : x < 0 ? (C)-1 : x == 0 ? (C)0 : x;
	case FLOOR:
		return BUILTIN(floor)(x);
	case CEIL:
		return BUILTIN(ceil)(x);
	case ROUND:
		return BUILTIN(rint)(x);
	case EXP:
		return FN(exp)(x);
	case LOG:
		return FN(log)(x);
	case SQRT:
		return SQRT_C(x);
	case RSQRT:
		return (C)1 / SQRT_C(x);
	case RECIPROCAL:
		return (C)1 / x;
	case SIN:
		return FN(sin)(x);
	case COS:
		return FN(cos)(x);
	case ATAN:
		return (C)atan_d((double)x);
	}
	return x;
}

KERNEL unary(T G *y, const T G *x, i64 n, int f HALF_ARG) {
	EACH(i, n) { y[i] = STOREC(apply(LOADC(x[i]), f)); }
}

#else

KERNEL unary(void G *y, const void G *x, i64 n, int f, int d) {
	EACH(i, n) {
		i64 v = load_int(x, i, d);
		switch (f) {
		case NEG:
			v = -v;
			break;
		case ABS:
			if (d != DU64 && v < 0) v = -v;
			break;
		case SIGN:
			v = v > 0 || (d == DU64 && v != 0) ? 1 : v < 0 ? -1 : 0;
			break;
		}
		store_int(y, i, d, v);
	}
}
#endif
