// tanh.approx: PTX 7.0.
#include "common.h"
KERNEL tanhs(GLOBAL float *o, const GLOBAL float *a, int n) {
	int i = BX * NX + TX;
	if (i < n) __asm__("tanh.approx.f32 %0, %1;" : "=f"(o[i]) : "f"(a[i]));
}
