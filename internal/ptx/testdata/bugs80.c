// Faults with cp.async.
#include "common.h"
static SHARED __attribute__((aligned(16))) float s[128];
KERNEL no_wait(GLOBAL float *o, const GLOBAL float *x) {
	__asm__ volatile("cp.async.ca.shared.global [%0], [%1], 4; cp.async.commit_group;" ::"r"((u32)(u64)&s[TX]), "l"(x + TX) : "memory");
	SYNC;
	o[TX] = s[TX ^ 1];
}
KERNEL wait_no_barrier(GLOBAL float *o, const GLOBAL float *x) {
	__asm__ volatile("cp.async.ca.shared.global [%0], [%1], 4; cp.async.wait_all;" ::"r"((u32)(u64)&s[TX]), "l"(x + TX) : "memory");
	o[TX] = s[TX ^ 32];
}
