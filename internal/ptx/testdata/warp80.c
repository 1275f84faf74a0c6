// Warp-wide operations of newer targets: match (sm_70), redux (sm_80).
#include "common.h"
KERNEL warps80(GLOBAL u32 *o, const GLOBAL u32 *x) {
	u32 v = x[TX], r;
	__asm__ volatile("match.any.sync.b32 %0, %1, -1;" : "=r"(r) : "r"(v % 5));
	o[TX * 4] = r;
	__asm__ volatile("redux.sync.add.u32 %0, %1, -1;" : "=r"(r) : "r"(v));
	o[TX * 4 + 1] = r;
	__asm__ volatile("redux.sync.max.s32 %0, %1, -1;" : "=r"(r) : "r"(v - 50));
	o[TX * 4 + 2] = r;
	__asm__ volatile("redux.sync.xor.b32 %0, %1, -1;" : "=r"(r) : "r"(v));
	o[TX * 4 + 3] = r;
}
