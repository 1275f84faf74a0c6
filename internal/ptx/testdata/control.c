// Control flow: divergent loops, switches, early returns, arrays in local memory, named barriers, 64-bit and 16-bit values across branches.
#include "common.h"

KERNEL collatz(GLOBAL int *o, const GLOBAL u32 *x, int n) {
	int i = BX * NX + TX;
	if (i >= n) return;
	u64 v = x[i];
	int steps = 0;
	while (v > 1) {
		if (v & 1) v = 3 * v + 1;
		else v >>= 1;
		if (++steps > 1000) break;
	}
	o[i] = steps;
}
KERNEL choose(GLOBAL int *o, const GLOBAL int *x, int n) {
	int i = BX * NX + TX;
	if (i >= n) return;
	int v = x[i], r = v;
	for (int k = 0; k < 3; k++) switch ((r + k) & 7) {
		case 0: r = r * 3 + 1; break;
		case 1: r -= 5; break;
		case 2: r ^= 0x55; break;
		case 3: for (int j = 0; j < (v & 3); j++) r += j * r; break;
		case 4: r = r << 2 | 1; break;
		case 5: r = -r; break;
		case 6: if (r > 100) r /= 7; else r *= 11; break;
		default: r += 1000;
		}
	o[i] = r;
}
KERNEL locals(GLOBAL int *o, const GLOBAL int *x, int n) { // a small array indexed by data
	int i = BX * NX + TX;
	int count[8];
	for (int k = 0; k < 8; k++) count[k] = 0;
	for (int k = 0; k < n; k++) count[x[i * n + k] & 7]++;
	int best = 0;
	for (int k = 1; k < 8; k++) if (count[k] > count[best]) best = k;
	o[i] = best * 1000 + count[best];
}

static SHARED int ring[2][64];
// Warps 0 and 1 produce, 2 and 3 consume: two named barriers, one a buffer.
KERNEL producer(GLOBAL int *o, const GLOBAL int *x, int rounds) {
	int half = TX % 64, sum = 0;
	if (TX < 64) {
		for (int r = 0; r < rounds; r++) {
			if (r >= 2) __asm__ volatile("bar.sync %0, 128;" ::"r"(3 + r % 2) : "memory");
			ring[r % 2][half] = x[r * 64 + half];
			__asm__ volatile("bar.arrive %0, 128;" ::"r"(1 + r % 2) : "memory");
		}
	} else {
		for (int r = 0; r < rounds; r++) {
			__asm__ volatile("bar.sync %0, 128;" ::"r"(1 + r % 2) : "memory");
			sum += ring[r % 2][half ^ 1] * (r + 1);
			if (r + 2 < rounds) __asm__ volatile("bar.arrive %0, 128;" ::"r"(3 + r % 2) : "memory");
		}
		o[half] = sum;
	}
}
