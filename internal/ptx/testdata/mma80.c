// Tensor cores of sm_80: bfloat16 product with ldmatrix, cp.async and two buffers; and each mma shape by itself.
#include "common.h"

INLINE void mma(float *d, const u32 *a, const u32 *b) {
	__asm__ volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
		: "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
INLINE void cp16(u32 dst, const GLOBAL void *src, int bytes) {
	__asm__ volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(dst), "l"(src), "r"(bytes) : "memory");
}

static SHARED __attribute__((aligned(128))) u16 sa[2][32][24], sb[2][16][40];

// c = a b, a [m, k] and b [k, n] in bfloat16, c in float; tile 32 x 32, 4 warps of 16 x 16; k a multiple of 16, rows and columns anything a multiple of 8.
KERNEL matmul_bf16(GLOBAL float *c, const GLOBAL u16 *a, const GLOBAL u16 *b, int m, int n, int k) {
	int t = TX, warp = t / 32, lane = t % 32, wr = warp / 2 * 16, wc = warp % 2 * 16;
	float acc[2][4] = {{0}};
	int ar = t / 2 % 32, ac = t % 2 * 8, br = t / 4 % 16, bc = t % 4 * 8;
#define FETCH(buf, i) do { \
	if (t < 64) { int ok = BY * 32 + ar < m; cp16((u32)(u64)&sa[buf][ar][ac], a + (ok ? (BY * 32 + ar) * k + (i) + ac : 0), ok ? 16 : 0); } \
	else { int ok = BX * 32 + bc < n; cp16((u32)(u64)&sb[buf][br][bc], b + (ok ? ((i) + br) * n + BX * 32 + bc : 0), ok ? 16 : 0); } \
	__asm__ volatile("cp.async.commit_group;" ::: "memory"); } while (0)
	FETCH(0, 0);
	for (int i = 0, buf = 0; i < k; i += 16, buf ^= 1) {
		if (i + 16 < k) {
			FETCH(buf ^ 1, i + 16);
			__asm__ volatile("cp.async.wait_group 1;" ::: "memory");
		} else {
			__asm__ volatile("cp.async.wait_group 0;" ::: "memory");
		}
		SYNC;
		u32 fa[4], fb[4];
		__asm__ volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];" : "=r"(fa[0]), "=r"(fa[1]), "=r"(fa[2]), "=r"(fa[3])
			: "r"((u32)(u64)&sa[buf][wr + lane % 16][lane / 16 * 8]) : "memory");
		__asm__ volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];" : "=r"(fb[0]), "=r"(fb[1]), "=r"(fb[2]), "=r"(fb[3])
			: "r"((u32)(u64)&sb[buf][lane % 16][wc + lane / 16 * 8]) : "memory");
		mma(acc[0], fa, fb);
		mma(acc[1], fa, fb + 2);
		SYNC;
	}
	for (int j = 0; j < 2; j++)
		for (int h = 0; h < 2; h++) {
			int row = BY * 32 + wr + lane / 4 + h * 8, col = BX * 32 + wc + j * 8 + lane % 4 * 2;
			if (row < m && col < n) c[row * n + col] = acc[j][h * 2], c[row * n + col + 1] = acc[j][h * 2 + 1];
		}
}

// One warp, operands as registers: r words a lane.
KERNEL shapes(GLOBAL float *o, const GLOBAL u32 *x) {
	int l = TX;
	float d[4] = {0, 1, 2, 3};
	const GLOBAL u32 *a = x + l * 6;
	__asm__ volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
		: "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(a[4]), "r"(a[5]));
	for (int i = 0; i < 4; i++) o[l * 4 + i] = d[i];
	float e[4] = {0, 1, 2, 3};
	__asm__ volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
		: "+f"(e[0]), "+f"(e[1]), "+f"(e[2]), "+f"(e[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(a[4]), "r"(a[5]));
	for (int i = 0; i < 4; i++) o[128 + l * 4 + i] = e[i];
	float g[4] = {0, 1, 2, 3};
	__asm__ volatile("mma.sync.aligned.m16n8k8.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5}, {%6}, {%0,%1,%2,%3};"
		: "+f"(g[0]), "+f"(g[1]), "+f"(g[2]), "+f"(g[3]) : "r"(a[0]), "r"(a[1]), "r"(a[4]));
	for (int i = 0; i < 4; i++) o[256 + l * 4 + i] = g[i];
	int s[4] = {0, 1, 2, 3};
	__asm__ volatile("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
		: "+r"(s[0]), "+r"(s[1]), "+r"(s[2]), "+r"(s[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(a[4]), "r"(a[5]));
	for (int i = 0; i < 4; i++) o[384 + l * 4 + i] = (float)s[i];
}
