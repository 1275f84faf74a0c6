/* CumSum: one thread sums along each line, in index order. Line l begins at l/inner*n*inner + l%inner. */
#include "lib.h"

#if defined(F32) || defined(F64) || defined(H16)
KERNEL cumsum(T G *y, const T G *x, i64 lines, i64 n, i64 inner, int exclusive, int reverse HALF_ARG) {
	EACH(l, lines) {
		i64 first = l / inner * n * inner + l % inner;
		double sum = 0;
		for (i64 k = 0; k < n; k++) {
			i64 at = first + (reverse ? n - 1 - k : k) * inner;
			double before = sum;
			sum += (double)LOADC(x[at]);
			double v = exclusive ? before : sum;
			y[at] = STORED(v);
		}
	}
}
#else
KERNEL cumsum(void G *y, const void G *x, i64 lines, i64 n, i64 inner, int exclusive, int reverse, int d) {
	EACH(l, lines) {
		i64 first = l / inner * n * inner + l % inner;
		u64 sum = 0;
		for (i64 k = 0; k < n; k++) {
			i64 at = first + (reverse ? n - 1 - k : k) * inner;
			u64 before = sum;
			sum += (u64)load_int(x, at, d);
			store_int(y, at, d, (i64)(exclusive ? before : sum));
		}
	}
}
#endif
