/* Two operands that broadcast: Add, Sub, Mul, Div, Pow, Max, Min, Mod, and for integers Bits. `arithmetic` serves operands that are as long as the result
 * (a step of 1) or single elements (a step of 0), `arithmetic_wide` all other ways to broadcast. */
#include "math.h"

enum { ADD, SUB, MUL, DIV, POW, MAX, MIN, MOD, FMOD, AND, OR, XOR, SHL, SHR };

#define AT_(c, a) xo += (i64)(c) * x##a, yo += (i64)(c) * y##a

#if defined(F32) || defined(F64) || defined(H16)

INLINE C apply(C x, C y, int f) {
	switch (f) {
	case ADD:
		return x + y;
	case SUB:
		return x - y;
	case MUL:
		return x * y;
	case DIV:
		return x / y;
	case POW:
		return (C)pow_d((double)x, (double)y);
	case MAX:
		return x > y || x != x ? x : y;
	case MIN:
		return x < y || x != x ? x : y;
	case MOD: {
		double r = fmod_d((double)x, (double)y);
		if (r != 0 && (r < 0) != (y < 0)) r += (double)y;
		return (C)r;
	}
	case FMOD:
		return (C)fmod_d((double)x, (double)y);
	}
	return x;
}

/* +0 is greater than -0 */
INLINE C chosen(C x, C y, int f) {
	if (x == y && x == 0 && (f == MAX || f == MIN)) {
		int minus = BUILTIN(copysign)((C)1, x) < 0;
		return minus == (f == MIN) ? x : y;
	}
	return apply(x, y, f);
}

KERNEL arithmetic(T G *z, const T G *x, const T G *y, i64 n, i64 xs, i64 ys, int f HALF_ARG) {
	EACH(i, n) { z[i] = STOREC(chosen(LOADC(x[i * xs]), LOADC(y[i * ys]), f)); }
}

KERNEL arithmetic_wide(T G *z, const T G *x, const T G *y, i64 n, int f, AXES(d), STRIDES(x), STRIDES(y) HALF_ARG) {
	EACH(i, n) {
		i64 xo = 0, yo = 0;
		UNRAVEL(i, d, AT_);
		z[i] = STOREC(chosen(LOADC(x[xo]), LOADC(y[yo]), f));
	}
}

#else

INLINE i64 power(i64 x, i64 y) {
	if (y < 0) {
		return x == 1 || (x == -1 && y % 2 == 0) ? 1 : x == -1 ? -1 : 0;
	}
	i64 p = 1;
	for (; y > 0; y >>= 1) {
		if (y & 1) p = (i64)((u64)p * (u64)x);
		x = (i64)((u64)x * (u64)x);
	}
	return p;
}

INLINE i64 remainder(i64 x, i64 y) { return y == 0 || y == -1 ? 0 : x % y; }

INLINE int width(int d) { return d == DI64 || d == DU64 ? 64 : d == DI32 || d == DU32 ? 32 : d == DI16 || d == DU16 ? 16 : 8; }

INLINE i64 apply(i64 x, i64 y, int f, int d) {
	switch (f) {
	case ADD:
		return (i64)((u64)x + (u64)y);
	case SUB:
		return (i64)((u64)x - (u64)y);
	case MUL:
		return (i64)((u64)x * (u64)y);
	case DIV:
		return y == 0 ? 0 : y == -1 ? (i64)(0 - (u64)x) : x / y;
	case POW:
		return power(x, y);
	case MAX:
		return x > y ? x : y;
	case MIN:
		return x < y ? x : y;
	case MOD: {
		i64 r = remainder(x, y);
		return r != 0 && (r < 0) != (y < 0) ? r + y : r;
	}
	case FMOD:
		return remainder(x, y);
	case AND:
		return x & y;
	case OR:
		return x | y;
	case XOR:
		return x ^ y;
	case SHL:
		return (u64)y >= (u64)width(d) ? 0 : (i64)((u64)x << (u64)y);
	case SHR:
		if ((u64)y >= (u64)width(d)) return d == DU64 || x >= 0 ? 0 : -1;
		return d == DU64 ? (i64)((u64)x >> (u64)y) : x >> (u64)y;
	}
	return x;
}

KERNEL arithmetic(void G *z, const void G *x, const void G *y, i64 n, i64 xs, i64 ys, int f, int d) {
	EACH(i, n) { store_int(z, i, d, apply(load_int(x, i * xs, d), load_int(y, i * ys, d), f, d)); }
}

KERNEL arithmetic_wide(void G *z, const void G *x, const void G *y, i64 n, int f, AXES(d), STRIDES(x), STRIDES(y), int type) {
	EACH(i, n) {
		i64 xo = 0, yo = 0;
		UNRAVEL(i, d, AT_);
		store_int(z, i, type, apply(load_int(x, xo, type), load_int(y, yo, type), f, type));
	}
}
#endif
