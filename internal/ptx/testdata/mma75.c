// Tensor cores of sm_75: half precision m16n8k8 with ldmatrix; PTX 6.5.
#include "common.h"
static SHARED __attribute__((aligned(128))) u16 sa[16][8], sb[8][8];
// One warp: c [16, 8] = a [16, 8 k] b [8 k, 8].
KERNEL matmul_f16(GLOBAL float *c, const GLOBAL u16 *a, const GLOBAL u16 *b, int k) {
	int l = TX;
	float d[4] = {0};
	for (int i = 0; i < k; i++) {
		for (int x = l; x < 128; x += 32) sa[x / 8][x % 8] = a[x / 8 * 8 * k + i * 8 + x % 8];
		for (int x = l; x < 64; x += 32) sb[x / 8][x % 8] = b[i * 64 + x];
		SYNC;
		u32 f[2], g;
		__asm__ volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0,%1}, [%2];" : "=r"(f[0]), "=r"(f[1]) : "r"((u32)(u64)&sa[l % 16][0]) : "memory");
		__asm__ volatile("ldmatrix.sync.aligned.m8n8.x1.trans.shared.b16 {%0}, [%1];" : "=r"(g) : "r"((u32)(u64)&sb[l % 8][0]) : "memory");
		__asm__ volatile("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5}, {%6}, {%0,%1,%2,%3};"
			: "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "r"(f[0]), "r"(f[1]), "r"(g));
		SYNC;
	}
	for (int h = 0; h < 2; h++) c[(l / 4 + h * 8) * 8 + l % 4 * 2] = d[h * 2], c[(l / 4 + h * 8) * 8 + l % 4 * 2 + 1] = d[h * 2 + 1];
}
