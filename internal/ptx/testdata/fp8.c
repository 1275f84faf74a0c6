// 8-bit floats: sm_89.
#include "common.h"
KERNEL fp8(GLOBAL u32 *o, const GLOBAL float *a, const GLOBAL float *b, int n) {
	int i = BX * NX + TX;
	if (i >= n) return;
	float x = a[i], y = b[i];
	u16 e, f;
	u32 t;
	GLOBAL u32 *r = o + i * 4;
	__asm__("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(e) : "f"(x), "f"(y));
	__asm__("cvt.rn.satfinite.e5m2x2.f32 %0, %1, %2;" : "=h"(f) : "f"(x), "f"(y));
	r[0] = e; r[1] = f;
	__asm__("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(t) : "h"(e)); r[2] = t;
	__asm__("cvt.rn.f16x2.e5m2x2 %0, %1;" : "=r"(t) : "h"(f)); r[3] = t;
}
