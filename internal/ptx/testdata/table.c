// Tables in constant and global memory; generic pointers to shared memory.
#include "common.h"
static const CONSTANT float primes[8] = {2, 3, 5, 7, 11, 13, 17, 19};
GLOBAL int counter[4] = {1, 2, 3};
static const CONSTANT u8 perm[8] = {7, 6, 5, 4, 3, 2, 1, 0};
static SHARED float box[64];

KERNEL tables(GLOBAL float *o, int n) {
	if (TX < n) o[TX] = primes[perm[TX & 7]] + counter[TX & 3];
	SYNC;
	if (TX == 0) counter[3] = 40;
}
KERNEL generic(GLOBAL float *o, const GLOBAL float *x, int n) {
	box[TX] = x[TX];
	SYNC;
	const float *p = n & 1 ? (const float *)&box[0] : (const float *)x;
	o[TX] = p[63 - TX];
}
