/* RoundFloat: rounds to the numbers of a format of 8 bits or less. kind 0: whole numbers; 1: floats with a sign, of so many bits of mantissa, least_exp the
 * exponent of the least normal number; 2, 3, 4: powers of two, upwards, to the nearest, downwards. */
#include "math.h"

INLINE int exponent(double a) { /* a in [2^e, 2^(e+1)), not zero */
	int e = (int)(d_bits(a) >> 52) - 1023;
	if (e == -1023) {
		e = (int)(d_bits(a * 18014398509481984.0) >> 52) - 1023 - 54;
	}
	return e;
}

INLINE double power2(int e) { return bits_d((u64)(e + 1023) << 52); } /* normal numbers */

KERNEL roundfloat(T G *y, const T G *x, i64 n, int kind, int mantissa, int least_exp, double most, double least, double beyond, double nan,
	int signed_zero HALF_ARG) {
	EACH(i, n) {
		double v = (double)LOADC(x[i]), a = __builtin_fabs(v), r;
		if (kind == 0) {
			r = __builtin_rint(v);
		} else if (v != v) {
			r = nan;
		} else if (kind == 1) {
			if (a != 0 && a != INFD) {
				int e = exponent(a);
				int step = (e > least_exp ? e : least_exp) - mantissa;
				a = step > -1000 ? __builtin_rint(a * power2(-step)) * power2(step) : a;
			}
			if (a > most) {
				a = beyond;
			}
			r = a != a ? a : a == 0 && !signed_zero ? 0.0 : __builtin_copysign(a, v);
		} else if (a == 0) {
			r = least;
		} else {
			if (a != INFD) {
				int e = exponent(a);
				double fraction = e > -1000 ? a * power2(-e) : 1.0; /* in [1, 2); what is so small becomes the least number */
				if (fraction > 1.0 && (kind == 2 || (kind == 3 && fraction >= 1.5))) e++;
				a = e > 1000 ? INFD : e < -1000 ? 0.0 : power2(e);
			}
			r = a > most ? beyond : a < least ? least : a;
		}
		y[i] = STORED(r);
	}
}
