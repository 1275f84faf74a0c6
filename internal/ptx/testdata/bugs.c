// Kernels with one fault each: what the fake driver must report.
#include "common.h"
static SHARED float s[64];
static SHARED int flag;

KERNEL off_by_one(GLOBAL float *p, int n) { // writes one past the end
	for (int i = TX; i <= n; i += NX) p[i] = 1;
}
KERNEL before(GLOBAL float *o, const GLOBAL float *p) { o[TX] = p[(int)TX - 1]; }
KERNEL no_barrier(GLOBAL float *o, const GLOBAL float *x) {
	s[TX] = x[TX];
	o[TX] = s[TX ^ 32];
}
KERNEL no_second_barrier(GLOBAL float *o, const GLOBAL float *x, int rounds) { // the next round overwrites what others still read
	float sum = 0;
	for (int r = 0; r < rounds; r++) {
		s[TX] = x[r * NX + TX];
		SYNC;
		sum += s[TX ^ 32];
	}
	o[TX] = sum;
}
KERNEL no_warpsync(GLOBAL float *o, const GLOBAL float *x) { // lanes of one warp need bar.warp.sync
	s[TX] = x[TX];
	o[TX] = s[TX ^ 1];
}
KERNEL divergent(GLOBAL float *o, const GLOBAL float *x) {
	s[TX] = x[TX];
	if (TX < 16) {
		SYNC;
		o[TX] = s[63 - TX];
	}
}
KERNEL early(GLOBAL float *o, const GLOBAL float *x, int n) { // threads return before the barrier
	if (TX >= n) return;
	s[TX] = x[TX];
	SYNC;
	o[TX] = s[n - 1 - TX];
}
KERNEL shuffle_part(GLOBAL float *o, const GLOBAL float *x) {
	float v = x[TX];
	if (TX < 16) __asm__ volatile("shfl.sync.bfly.b32 %0, %0, 1, 31, -1;" : "+f"(v));
	o[TX] = v;
}
KERNEL uninitialised_shared(GLOBAL float *o, const GLOBAL float *x) {
	if (TX < 32) s[TX] = x[TX];
	SYNC;
	o[TX] = s[TX];
}
KERNEL blocks_collide(GLOBAL float *o, const GLOBAL float *x) { o[TX] = x[BX * NX + TX]; }
KERNEL blocks_read(GLOBAL float *o, GLOBAL float *t) { // reads what another block writes
	t[BX * NX + TX] = 1;
	o[BX * NX + TX] = t[(BX ^ 1) * NX + TX];
}
KERNEL global_no_barrier(GLOBAL float *o, GLOBAL float *t) {
	t[TX] = TX;
	o[TX] = t[NX - 1 - TX];
}
KERNEL misaligned(GLOBAL float *o, int by) { *(GLOBAL f4 *)(o + by) = 0; }
KERNEL endless(GLOBAL volatile int *p) {
	while (*p == 0) {}
}
KERNEL copy(GLOBAL float *o, const GLOBAL float *x, int n) {
	int i = BX * NX + TX;
	if (i < n) o[i] = x[i];
}
KERNEL shared_overrun(GLOBAL float *o, int i) {
	s[TX] = 1;
	SYNC;
	o[TX] = s[TX + i];
}
KERNEL same_flag(GLOBAL int *o, const GLOBAL int *x) { // no fault: all write one value, a barrier follows
	if (TX == 0) flag = 0;
	SYNC;
	if (x[TX] > 0) flag = 1;
	SYNC;
	o[TX] = flag;
}
