/* Softmax, LogSoftmax and their gradients along lines: l begins at l/inner*n*inner + l%inner, its elements are inner apart. A block takes a line, or, where
 * lines lie side by side (_thread), a thread does. Sums are kept in double. */
#include "math.h"

enum { PLAIN, LOG };

#define LINE(l) ((l) / inner * n * inner + (l) % inner)

KERNEL softmax(T G *y, const T G *x, i64 lines, i64 n, i64 inner, int f HALF_ARG) {
	static S double room[256];
	for (i64 l = BID; l < lines; l += NB) {
		i64 at = LINE(l);
		double most = -INFD;
		for (i64 j = TID; j < n; j += NT) {
			most = greater(most, (double)LOADC(x[at + j * inner]));
		}
		C top = (C)block_max(most, room);
		double sum = 0;
		for (i64 j = TID; j < n; j += NT) {
			sum += (double)FN(exp)(LOADC(x[at + j * inner]) - top);
		}
		sum = block_sum(sum, room);
		C log = (C)log_d(sum), part = (C)sum;
		for (i64 j = TID; j < n; j += NT) {
			C c = LOADC(x[at + j * inner]) - top;
			y[at + j * inner] = STOREC(f == LOG ? c - log : FN(exp)(c) / part);
		}
		SYNC();
	}
}

KERNEL softmax_thread(T G *y, const T G *x, i64 lines, i64 n, i64 inner, int f HALF_ARG) {
	EACH(l, lines) {
		i64 at = LINE(l);
		double most = -INFD, sum = 0;
		for (i64 j = 0; j < n; j++) {
			most = greater(most, (double)LOADC(x[at + j * inner]));
		}
		C top = (C)most;
		for (i64 j = 0; j < n; j++) {
			sum += (double)FN(exp)(LOADC(x[at + j * inner]) - top);
		}
		C log = (C)log_d(sum), part = (C)sum;
		for (i64 j = 0; j < n; j++) {
			C c = LOADC(x[at + j * inner]) - top;
			y[at + j * inner] = STOREC(f == LOG ? c - log : FN(exp)(c) / part);
		}
	}
}

INLINE double weight(C y, C dy, int f) { return f == LOG ? (double)dy : (double)y * (double)dy; }
INLINE C slope(C y, C dy, double sum, int f) {
	return f == LOG ? (C)((double)dy - (double)FN(exp)(y) * sum) : (C)((double)y * ((double)dy - sum));
}

KERNEL softmax_grad(T G *dx, const T G *y, const T G *dy, i64 lines, i64 n, i64 inner, int f HALF_ARG) {
	static S double room[256];
	for (i64 l = BID; l < lines; l += NB) {
		i64 at = LINE(l);
		double sum = 0;
		for (i64 j = TID; j < n; j += NT) {
			sum += weight(LOADC(y[at + j * inner]), LOADC(dy[at + j * inner]), f);
		}
		sum = block_sum(sum, room);
		for (i64 j = TID; j < n; j += NT) {
			i64 i = at + j * inner;
			dx[i] = STOREC(slope(LOADC(y[i]), LOADC(dy[i]), sum, f));
		}
		SYNC();
	}
}

KERNEL softmax_grad_thread(T G *dx, const T G *y, const T G *dy, i64 lines, i64 n, i64 inner, int f HALF_ARG) {
	EACH(l, lines) {
		i64 at = LINE(l);
		double sum = 0;
		for (i64 j = 0; j < n; j++) {
			sum += weight(LOADC(y[at + j * inner]), LOADC(dy[at + j * inner]), f);
		}
		for (i64 j = 0; j < n; j++) {
			i64 i = at + j * inner;
			dx[i] = STOREC(slope(LOADC(y[i]), LOADC(dy[i]), sum, f));
		}
	}
}
