/* Where takes elements of one of two tensors, by width alone: nothing is computed. */
#include "lib.h"

#define AT_(k, a) co += (i64)(k) * c##a, xo += (i64)(k) * x##a, yo += (i64)(k) * y##a

#define WHERE(T, W)                                                                                                          \
	KERNEL where##W(T G *z, const u8 G *c, const T G *x, const T G *y, i64 n, i64 cs, i64 xs, i64 ys) {                  \
		EACH(i, n) { z[i] = c[i * cs] ? x[i * xs] : y[i * ys]; }                                                     \
	}                                                                                                                    \
	KERNEL where_wide##W(T G *z, const u8 G *c, const T G *x, const T G *y, i64 n, AXES(d), STRIDES(c), STRIDES(x), STRIDES(y)) { \
		EACH(i, n) {                                                                                                 \
			i64 co = 0, xo = 0, yo = 0;                                                                          \
			UNRAVEL(i, d, AT_);                                                                                  \
			z[i] = c[co] ? x[xo] : y[yo];                                                                        \
		}                                                                                                            \
	}

WHERE(u8, 1)
WHERE(u16, 2)
WHERE(u32, 4)
WHERE(u64, 8)
