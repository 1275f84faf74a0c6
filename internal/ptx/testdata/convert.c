// Conversions between all pairs that C has, and the half formats.
#include "common.h"
KERNEL casts(GLOBAL u32 *o, const GLOBAL float *a, int n) {
	int i = BX * NX + TX;
	if (i >= n) return;
	float x = a[i];
	u32 t;
	GLOBAL u32 *r = o + i * 16;
#define CVT(k, text) __asm__(text " %0, %1;" : "=r"(t) : "f"(x)); r[k] = t
	CVT(0, "cvt.rzi.s32.f32"); CVT(1, "cvt.rzi.u32.f32"); CVT(2, "cvt.rni.s32.f32"); CVT(3, "cvt.rmi.s32.f32"); CVT(4, "cvt.rpi.u32.f32");
	_Float16 h = (_Float16)x;
	__bf16 b = (__bf16)x;
	u16 hb, bb;
	__builtin_memcpy(&hb, &h, 2);
	__builtin_memcpy(&bb, &b, 2);
	r[5] = hb; r[6] = bb;
	float back = (float)h; __builtin_memcpy(&t, &back, 4); r[7] = t;
	back = (float)b; __builtin_memcpy(&t, &back, 4); r[8] = t;
	int k; __builtin_memcpy(&k, &x, 4);
	back = (float)k; __builtin_memcpy(&t, &back, 4); r[9] = t;
	back = (float)(u32)k; __builtin_memcpy(&t, &back, 4); r[10] = t;
	back = (float)(s64)((u64)(u32)k << 20); __builtin_memcpy(&t, &back, 4); r[11] = t;
	h = (_Float16)x * (_Float16)1.5f + (_Float16)0.25f;
	__builtin_memcpy(&hb, &h, 2); r[12] = hb;
	h = (_Float16)(double)(x * 1.0000001f); __builtin_memcpy(&hb, &h, 2); r[13] = hb;
	__asm__("{ .reg .b16 s; .reg .f32 f; cvt.sat.s16.s32 s, %1; cvt.s32.s16 %0, s; }" : "=r"(t) : "r"(k >> 8)); r[14] = t;
	__asm__("{ .reg .b16 lo, hi; mov.b32 {lo, hi}, %1; mov.b32 %0, {hi, lo}; }" : "=r"(t) : "r"(k)); r[15] = t;
}
typedef _Float16 h2 __attribute__((ext_vector_type(2)));
KERNEL halves(GLOBAL h2 *o, const GLOBAL h2 *a, const GLOBAL h2 *b, int n) {
	int i = BX * NX + TX;
	if (i < n) o[i] = a[i] * b[i] + a[i];
}
