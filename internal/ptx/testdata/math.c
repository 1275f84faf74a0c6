// Float arithmetic of every kind that plain C and approximate instructions give; 24 results a thread.
#include "common.h"
#define F1(name, text) INLINE float name(float x) { float r; __asm__(text " %0, %1;" : "=f"(r) : "f"(x)); return r; }
F1(ex2, "ex2.approx.ftz.f32")
F1(lg2, "lg2.approx.ftz.f32")
F1(rcp, "rcp.approx.ftz.f32")
F1(rcprn, "rcp.rn.f32")
F1(rsq, "rsqrt.approx.ftz.f32")
F1(sqa, "sqrt.approx.ftz.f32")
F1(sine, "sin.approx.ftz.f32")
F1(cosine, "cos.approx.ftz.f32")
F1(rint_, "cvt.rni.f32.f32")
F1(floor_, "cvt.rmi.f32.f32")
F1(ceil_, "cvt.rpi.f32.f32")
F1(trunc_, "cvt.rzi.f32.f32")
F1(sat_, "cvt.sat.f32.f32")

KERNEL floats(GLOBAL float *o, const GLOBAL float *a, const GLOBAL float *b, const GLOBAL float *c, int n) {
	int i = BX * NX + TX;
	if (i >= n) return;
	float x = a[i], y = b[i], z = c[i];
	GLOBAL float *r = o + i * 24;
	r[0] = x + y; r[1] = x - y; r[2] = x * y; r[3] = x / y;
	r[4] = __builtin_fmaf(x, y, z); r[5] = __builtin_sqrtf(__builtin_fabsf(x)); r[6] = x < y ? x : y; r[7] = __builtin_fmaxf(x, z);
	r[8] = ex2(x); r[9] = lg2(__builtin_fabsf(x)); r[10] = rcp(x); r[11] = rsq(__builtin_fabsf(x));
	r[12] = -x; r[13] = __builtin_copysignf(x, y); r[14] = rint_(x); r[15] = floor_(x);
	r[16] = ceil_(x); r[17] = trunc_(x); r[18] = sat_(x); r[19] = sine(x);
	r[20] = cosine(x); r[21] = rcprn(x); r[22] = sqa(__builtin_fabsf(x)); r[23] = __builtin_fminf(y, z);
}
KERNEL doubles(GLOBAL double *o, const GLOBAL double *a, const GLOBAL double *b, int n) {
	int i = BX * NX + TX;
	if (i >= n) return;
	double x = a[i], y = b[i];
	GLOBAL double *r = o + i * 12;
	r[0] = x + y; r[1] = x - y; r[2] = x * y; r[3] = x / y;
	r[4] = __builtin_fma(x, y, x); r[5] = __builtin_sqrt(__builtin_fabs(x)); r[6] = x < y ? x : y; r[7] = __builtin_fmax(x, y);
	r[8] = (float)x; r[9] = __builtin_floor(x); r[10] = (double)(int)x; r[11] = (double)(s64)y;
}
// Comparisons, ordered and not, as bits of one word.
KERNEL compares(GLOBAL u32 *o, const GLOBAL float *a, const GLOBAL float *b, int n) {
	int i = BX * NX + TX;
	if (i >= n) return;
	float x = a[i], y = b[i];
	double dx = x, dy = y;
	u32 r = 0, t;
	r |= x < y; r |= (x <= y) << 1; r |= (x > y) << 2; r |= (x >= y) << 3; r |= (x == y) << 4; r |= (x != y) << 5;
	r |= !(x < y) << 6; r |= !(x >= y) << 7; r |= __builtin_isnan(x) << 8; r |= (dx < dy) << 9; r |= (dx != dy) << 10;
#define SETP(bit, op) __asm__("{ .reg .pred p, q; setp." op ".f32 p|q, %1, %2; selp.u32 %0, 1, 0, p; @q or.b32 %0, %0, 2; }" : "=r"(t) : "f"(x), "f"(y)); r |= t << bit
	SETP(12, "equ"); SETP(14, "neu"); SETP(16, "ltu"); SETP(18, "geu"); SETP(20, "num"); SETP(22, "nan"); SETP(24, "leu"); SETP(26, "gtu"); SETP(28, "ne");
	o[i] = r;
}
