// Reductions: shuffles, votes, barriers, a softmax of one row a block.
#include "common.h"

INLINE float shfl_down(float x, int d) {
	float r;
	__asm__ volatile("shfl.sync.down.b32 %0, %1, %2, 31, -1;" : "=f"(r) : "f"(x), "r"(d));
	return r;
}
INLINE float shfl_xor(float x, int d) {
	float r;
	__asm__ volatile("shfl.sync.bfly.b32 %0, %1, %2, 31, -1;" : "=f"(r) : "f"(x), "r"(d));
	return r;
}
INLINE float ex2(float x) {
	float r;
	__asm__("ex2.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(x));
	return r;
}

KERNEL rowsum(GLOBAL float *o, const GLOBAL float *x, int n) { // one warp a row
	float s = 0;
	for (int i = TX; i < n; i += 32) s += x[BX * n + i];
	for (int d = 16; d; d /= 2) s += shfl_down(s, d);
	if (TX == 0) o[BX] = s;
}

static SHARED float part[32];

INLINE float block_reduce(float s, int max) {
	for (int d = 16; d; d /= 2) {
		float t = shfl_xor(s, d);
		s = max ? (s > t ? s : t) : s + t;
	}
	SYNC;
	if (TX % 32 == 0) part[TX / 32] = s;
	SYNC;
	s = part[0];
	for (int i = 1; i < NX / 32; i++) s = max ? (s > part[i] ? s : part[i]) : s + part[i];
	return s;
}

KERNEL softmax(GLOBAL float *o, const GLOBAL float *x, int n) {
	float m = -__builtin_inff(), s = 0;
	for (int i = TX; i < n; i += NX) m = m > x[BX * n + i] ? m : x[BX * n + i];
	m = block_reduce(m, 1);
	for (int i = TX; i < n; i += NX) s += ex2((x[BX * n + i] - m) * 1.44269504f);
	s = block_reduce(s, 0);
	for (int i = TX; i < n; i += NX) o[BX * n + i] = ex2((x[BX * n + i] - m) * 1.44269504f) / s;
}

// Every way to move or compare values within a warp; 16 results a lane.
KERNEL warps(GLOBAL u32 *o, const GLOBAL u32 *x) {
	u32 v = x[TX], r, p;
	GLOBAL u32 *out = o + TX * 16;
#define PUT(i, text, ...) __asm__ volatile("{ .reg .pred q; .reg .b32 t; " text " }" : "=r"(r), "=r"(p) : "r"(v), ##__VA_ARGS__); out[i] = r; out[i + 1] = p
	PUT(0, "shfl.sync.up.b32 %0|q, %2, 3, 0, -1; selp.u32 %1, 1, 0, q;");
	PUT(2, "shfl.sync.down.b32 %0|q, %2, 5, 0x181f, -1; selp.u32 %1, 1, 0, q;");
	PUT(4, "shfl.sync.idx.b32 %0|q, %2, %3, 31, -1; selp.u32 %1, 1, 0, q;", "r"(v % 32));
	PUT(6, "setp.lt.u32 q, %2, 100; vote.sync.ballot.b32 %0, q, -1; vote.sync.any.pred q, q, -1; selp.u32 %1, 1, 0, q;");
	PUT(8, "setp.ge.u32 q, %2, 100; vote.sync.all.pred q, !q, -1; selp.u32 %1, 1, 0, q; activemask.b32 %0;");
	PUT(10, "mov.u32 %0, %%laneid; mov.u32 %1, %%lanemask_lt;");
	PUT(12, "and.b32 t, %2, 1; bar.warp.sync -1; mov.b32 %0, t; setp.eq.u32 q, t, 1; @q add.u32 %0, %0, 10; @!q mov.u32 %1, 7; @q mov.u32 %1, 9;");
	out[14] = out[15] = 0;
}
