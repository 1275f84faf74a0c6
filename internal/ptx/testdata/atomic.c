// Atomics in global and shared memory, and a sum whose last block adds the parts up in their order.
#include "common.h"

KERNEL histogram(GLOBAL u32 *h, const GLOBAL u32 *x, int n) {
	static SHARED u32 local[16];
	if (TX < 16) local[TX] = 0;
	SYNC;
	for (int i = BX * NX + TX; i < n; i += GX * NX) __asm__ volatile("red.shared.add.u32 [%0], 1;" ::"r"((u32)(u64)&local[x[i] & 15]) : "memory");
	SYNC;
	if (TX < 16) __atomic_fetch_add(&h[TX], local[TX], __ATOMIC_RELAXED);
}
KERNEL extremes(GLOBAL int *o, const GLOBAL int *x, int n) {
	int i = BX * NX + TX;
	if (i >= n) return;
	u32 old;
	__asm__ volatile("red.global.min.s32 [%0], %1;" ::"l"(o), "r"(x[i]) : "memory");
	__asm__ volatile("red.global.max.s32 [%0], %1;" ::"l"(o + 1), "r"(x[i]) : "memory");
	__asm__ volatile("atom.global.inc.u32 %0, [%1], 6;" : "=r"(old) : "l"(o + 2) : "memory");
	__asm__ volatile("atom.global.xor.b32 %0, [%1], %2;" : "=r"(old) : "l"(o + 3), "r"(x[i]) : "memory");
	__asm__ volatile("atom.global.cas.b32 %0, [%1], %2, %3;" : "=r"(old) : "l"(o + 4), "r"(i), "r"(i + 1) : "memory");
	__asm__ volatile("red.global.add.u64 [%0], %1;" ::"l"(o + 6), "l"((u64)1 << 33) : "memory");
}

static SHARED int last;
KERNEL lastblock(GLOBAL float *o, GLOBAL float *parts, GLOBAL u32 *count, const GLOBAL float *x, int n) {
	if (TX == 0) {
		float s = 0;
		for (int i = 0; i < n; i++) s += x[BX * n + i];
		parts[BX] = s;
		__asm__ volatile("membar.gl;" ::: "memory");
		u32 done;
		__asm__ volatile("atom.global.add.u32 %0, [%1], 1;" : "=r"(done) : "l"(count) : "memory");
		last = done == GX - 1;
		if (last) {
			__asm__ volatile("membar.gl;" ::: "memory");
			s = 0;
			for (int i = 0; i < GX; i++) s += *(volatile GLOBAL float *)&parts[i];
			o[0] = s;
		}
	}
}
