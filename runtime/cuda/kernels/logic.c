/* Booleans of one byte: And, Or, Xor of two operands that broadcast, Not of one. */
#include "lib.h"

enum { AND, OR, XOR, NOT };

#define AT_(c, a) xo += (i64)(c) * x##a, yo += (i64)(c) * y##a

INLINE u8 apply(u8 x, u8 y, int f) {
	switch (f) {
	case AND:
		return x && y;
	case OR:
		return x || y;
	case XOR:
		return (x != 0) != (y != 0);
	}
	return !x;
}

KERNEL logic(u8 G *z, const u8 G *x, const u8 G *y, i64 n, i64 xs, i64 ys, int f) {
	EACH(i, n) { z[i] = apply(x[i * xs], y[i * ys], f); }
}

KERNEL logic_wide(u8 G *z, const u8 G *x, const u8 G *y, i64 n, int f, AXES(d), STRIDES(x), STRIDES(y)) {
	EACH(i, n) {
		i64 xo = 0, yo = 0;
		UNRAVEL(i, d, AT_);
		z[i] = apply(x[xo], y[yo], f);
	}
}
