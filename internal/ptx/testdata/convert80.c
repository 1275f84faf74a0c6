// Conversions of sm_80: pairs of bfloat16 and half, tf32; arithmetic on pairs.
#include "common.h"
KERNEL pairs(GLOBAL u32 *o, const GLOBAL float *a, const GLOBAL float *b, int n) {
	int i = BX * NX + TX;
	if (i >= n) return;
	float x = a[i], y = b[i];
	u32 t, u, v;
	GLOBAL u32 *r = o + i * 8;
	__asm__("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(t) : "f"(x), "f"(y)); r[0] = t;
	__asm__("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(u) : "f"(x), "f"(y)); r[1] = u;
	__asm__("cvt.rn.relu.bf16x2.f32 %0, %1, %2;" : "=r"(v) : "f"(x), "f"(y)); r[2] = v;
	__asm__("cvt.rna.tf32.f32 %0, %1;" : "=r"(v) : "f"(x)); r[3] = v;
	__asm__("fma.rn.bf16x2 %0, %1, %1, %1;" : "=r"(v) : "r"(t)); r[4] = v;
	__asm__("fma.rn.f16x2 %0, %1, %1, %1;" : "=r"(v) : "r"(u)); r[5] = v;
	__asm__("max.bf16x2 %0, %1, %2;" : "=r"(v) : "r"(t), "r"(t ^ 0x80008000u)); r[6] = v;
	__asm__("cvt.rz.f16x2.f32 %0, %1, %2;" : "=r"(v) : "f"(x), "f"(y)); r[7] = v;
}
