/* Iota: start + j*step, where j counts along an axis with inner elements below it. */
#include "lib.h"

#if defined(F32) || defined(F64) || defined(H16)
KERNEL iota(T G *y, i64 n, i64 extent, i64 inner, double start, double step HALF_ARG) {
	EACH(i, n) {
		double v = start + (double)(i / inner % extent) * step;
		y[i] = STORED(v);
	}
}
#else
KERNEL iota(void G *y, i64 n, i64 extent, i64 inner, i64 start, i64 step, int d) {
	EACH(i, n) { store_int(y, i, d, start + i / inner % extent * step); }
}
#endif
