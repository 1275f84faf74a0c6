// Element-wise kernels: loads and stores of all widths, vectors, scalar arguments.
#include "common.h"

KERNEL vecadd(GLOBAL float *c, const GLOBAL float *a, const GLOBAL float *b, int n) {
	int i = BX * NX + TX;
	if (i < n) c[i] = a[i] + b[i];
}
KERNEL axpy(GLOBAL float *y, const GLOBAL float *x, float a, int n) {
	for (int i = BX * NX + TX; i < n; i += GX * NX) y[i] += a * x[i];
}
KERNEL axpy4(GLOBAL f4 *y, const GLOBAL f4 *x, float a, int n4) {
	int i = BX * NX + TX;
	if (i < n4) y[i] = y[i] + a * x[i];
}
KERNEL daxpy(GLOBAL double *y, const GLOBAL double *x, double a, int n) {
	int i = BX * NX + TX;
	if (i < n) y[i] = a * x[i] + y[i] / 3.0 - __builtin_sqrt(x[i] * x[i]);
}
KERNEL widen(GLOBAL s64 *o, const GLOBAL s8 *a, const GLOBAL u8 *b, const GLOBAL short *c, const GLOBAL u16 *d, int n) {
	int i = BX * NX + TX;
	if (i < n) o[i] = (s64)a[i] + 1000LL * b[i] + 1000000LL * c[i] + 100000000000LL * d[i];
}
KERNEL narrow(GLOBAL s8 *a, GLOBAL u16 *b, GLOBAL int *c, const GLOBAL s64 *x, int n) {
	int i = BX * NX + TX;
	if (i >= n) return;
	a[i] = (s8)x[i];
	b[i] = (u16)x[i];
	c[i] = (int)(x[i] >> 7);
}
KERNEL fill(GLOBAL u32 *p, u32 v, int n) {
	int i = BX * NX + TX;
	if (i < n) p[i] = v;
}
