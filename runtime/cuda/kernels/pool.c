/* MaxPool, AvgPool and their gradients over planes: one thread an element. Gradients look back from a cell to the windows over it. */
#include "math.h"
#include "window.h"

/* the cells of window (o0, o1, o2) inside x, in row-major order */
#define EACH_TAP(body)                                                           \
	for (int a = 0; a < k0; a++) {                                           \
		int i0 = o0 * s0 + a * d0 - p0;                                  \
		if (i0 < 0 || i0 >= in0) continue;                               \
		for (int b = 0; b < k1; b++) {                                   \
			int i1 = o1 * s1 + b * d1 - p1;                          \
			if (i1 < 0 || i1 >= in1) continue;                       \
			for (int c = 0; c < k2; c++) {                           \
				int i2 = o2 * s2 + c * d2 - p2;                  \
				if (i2 < 0 || i2 >= in2) continue;               \
				i64 at = ((i64)i0 * in1 + i1) * in2 + i2;        \
				body                                             \
			}                                                        \
		}                                                                \
	}

/* the windows over cell (i0, i1, i2), in row-major order: o = (i + p - a*d) / s where that is whole */
#define EACH_WINDOW(body)                                                                  \
	for (int o0 = lowest(i0, p0, k0, d0, s0); o0 < out0 && o0 * s0 - p0 <= i0; o0++) { \
		if (!hits(i0, o0, p0, k0, d0, s0)) continue;                               \
		for (int o1 = lowest(i1, p1, k1, d1, s1); o1 < out1 && o1 * s1 - p1 <= i1; o1++) { \
			if (!hits(i1, o1, p1, k1, d1, s1)) continue;                       \
			for (int o2 = lowest(i2, p2, k2, d2, s2); o2 < out2 && o2 * s2 - p2 <= i2; o2++) { \
				if (!hits(i2, o2, p2, k2, d2, s2)) continue;               \
				i64 w = ((i64)o0 * out1 + o1) * out2 + o2;                 \
				body                                                       \
			}                                                                  \
		}                                                                          \
	}

INLINE int lowest(int i, int p, int k, int d, int s) {
	int v = i + p - (k - 1) * d;
	return v <= 0 ? 0 : (v + s - 1) / s;
}
INLINE int hits(int i, int o, int p, int k, int d, int s) {
	int v = i + p - o * s;
	return v >= 0 && v % d == 0 && v / d < k;
}

#define UNRAVEL_OUT(i) int o2 = (int)((i) % out2), o1 = (int)((i) / out2 % out1), o0 = (int)((i) / ((i64)out1 * out2))
#define UNRAVEL_IN(i) int i2 = (int)((i) % in2), i1 = (int)((i) / in2 % in1), i0 = (int)((i) / ((i64)in1 * in2))

INLINE i64 winner(const T G *plane, int o0, int o1, int o2, WINDOW HALF_ARG) { /* -1: the window covers nothing */
	i64 best = -1;
	C most = 0;
	EACH_TAP({
		C v = LOADC(plane[at]);
		if (best < 0 || v > most || (v != v && most == most)) {
			best = at;
			most = v;
		}
	})
	return best;
}
#define WINNER(plane) winner(plane, o0, o1, o2, in0, in1, in2, out0, out1, out2, k0, k1, k2, s0, s1, s2, d0, d1, d2, p0, p1, p2 HALF_PASS)

KERNEL max_pool(T G *y, const T G *x, i64 planes, WINDOW HALF_ARG) {
	EACH(i, planes * POSITIONS) {
		i64 plane = i / POSITIONS, w = i % POSITIONS;
		UNRAVEL_OUT(w);
		i64 at = WINNER(x + plane * CELLS);
		y[i] = at < 0 ? STOREC(-(C)__builtin_inf()) : x[plane * CELLS + at];
	}
}

KERNEL max_pool_grad(T G *dx, const T G *x, const T G *dy, i64 planes, WINDOW HALF_ARG) {
	EACH(i, planes * CELLS) {
		i64 plane = i / CELLS, cell = i % CELLS;
		UNRAVEL_IN(cell);
		double sum = 0;
		EACH_WINDOW({
			if (WINNER(x + plane * CELLS) == cell) {
				sum += (double)LOADC(dy[plane * POSITIONS + w]);
			}
		})
		dx[i] = STORED(sum);
	}
}

INLINE int covered(int o, int p, int k, int d, int s, int in) { /* cells along one axis of a window that lie inside */
	int n = 0;
	for (int a = 0; a < k; a++) {
		int i = o * s + a * d - p;
		n += i >= 0 && i < in;
	}
	return n;
}
#define DIVISOR \
	(count_pad ? (double)TAPS : greater((double)(covered(o0, p0, k0, d0, s0, in0) * covered(o1, p1, k1, d1, s1, in1) * covered(o2, p2, k2, d2, s2, in2)), 1.0))

KERNEL avg_pool(T G *y, const T G *x, i64 planes, int count_pad, WINDOW HALF_ARG) {
	EACH(i, planes * POSITIONS) {
		i64 plane = i / POSITIONS, w = i % POSITIONS;
		UNRAVEL_OUT(w);
		double sum = 0;
		EACH_TAP({ sum += (double)LOADC(x[plane * CELLS + at]); })
		sum /= DIVISOR;
		y[i] = STORED(sum);
	}
}

KERNEL avg_pool_grad(T G *dx, const T G *dy, i64 planes, int count_pad, WINDOW HALF_ARG) {
	EACH(i, planes * CELLS) {
		i64 plane = i / CELLS, cell = i % CELLS;
		UNRAVEL_IN(cell);
		double sum = 0;
		EACH_WINDOW({ sum += (double)LOADC(dy[plane * POSITIONS + w]) / DIVISOR; })
		dx[i] = STORED(sum);
	}
}
