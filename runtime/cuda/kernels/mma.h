/* Tensor cores: products of 16x16 by 16x8 halves with sums in f32, fed from shared memory by ldmatrix.
 *
 * Compute capability 8.0 and up (SM_80): mma.m16n8k16 of f16 and bf16, tiles filled by cp.async. 7.5 (SM_75): the same in two steps of mma.m16n8k8, of f16 alone, and
 * tiles filled by way of registers: `fetch` starts a load, `land` puts it down. */
#ifndef AITK_MMA_H
#define AITK_MMA_H
#include "lib.h"

typedef u32 quad __attribute__((ext_vector_type(4)));

INLINE u32 address(const S u16 *p) { return (u32)(u64)p; }

/* four 8x8 matrices, whose rows of 16 bytes the lanes name */
INLINE void load4(u32 *r, u32 at, int turned) {
	if (turned) {
		__asm__ volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];" : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(at) : "memory");
	} else {
		__asm__ volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];" : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3]) : "r"(at) : "memory");
	}
}

/* d += a*b: a is 16 rows by 16 (quarters ordered rows first), b 16 by 8 columns */
INLINE void multiply(float *d, const u32 *a, const u32 *b) {
#if defined(SM_75)
#pragma unroll
	for (u32 i = 0; i < 2; i++) {
		__asm__ volatile("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5}, {%6}, {%0,%1,%2,%3};"
			: "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "r"(a[2 * i]), "r"(a[2 * i + 1]), "r"(b[i]));
	}
#else
	if (bf) {
		__asm__ volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
			: "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
	} else {
		__asm__ volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
			: "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
	}
#endif
}

/* two floats as halves, the second one in the upper bits */
INLINE u32 both(float low, float high) {
#if defined(SM_75)
	return (u32)float_to_half(low) | (u32)float_to_half(high) << 16;
#else
	u32 r;
	if (bf) {
		__asm__("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(high), "f"(low));
	} else {
		__asm__("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(high), "f"(low));
	}
	return r;
#endif
}

/* 16 bytes to shared memory, zeros where they are not there */
INLINE void copy16(u32 to, const u16 G *from, int there) {
#if defined(SM_75)
	quad v = there ? *(const quad G *)from : (quad){};
	*(quad S *)(u64)to = v;
#else
	__asm__ volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(there ? 16 : 0) : "memory");
#endif
}

INLINE void copies_begun(void) {
#if !defined(SM_75)
	__asm__ volatile("cp.async.commit_group;" ::: "memory");
#endif
}

/* waits until all groups of copies but the last `later` have landed, for this thread */
#if defined(SM_75)
#define COPIES_LANDED(later)
#else
#define COPIES_LANDED(later) __asm__ volatile("cp.async.wait_group " #later ";" ::: "memory")
#endif

#endif
