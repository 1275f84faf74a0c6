/* Dropout and Uniform: Philox4x32-10 of a counter under a key, the same bits as everywhere (ir/op/philox.go). */
#include "math.h"

typedef struct {
	u32 w[4];
} words;

INLINE words philox(u32 c0, u32 c1, u32 c2, u32 c3, u32 k0, u32 k1) {
#pragma unroll
	for (int r = 0; r < 10; r++) {
		u64 p0 = (u64)c0 * 0xD2511F53u, p1 = (u64)c2 * 0xCD9E8D57u;
		u32 n0 = (u32)(p1 >> 32) ^ c1 ^ k0, n2 = (u32)(p0 >> 32) ^ c3 ^ k1;
		c1 = (u32)p1;
		c3 = (u32)p0;
		c0 = n0;
		c2 = n2;
		k0 += 0x9E3779B9u;
		k1 += 0xBB67AE85u;
	}
	return (words){{c0, c1, c2, c3}};
}

#define COUNTERS const u64 G *seed, const u64 G *step, const u64 G *micro, u64 stream
#define KEY words key = philox((u32)*step, (u32)(*step >> 32), (u32)*micro, (u32)(*micro >> 32), (u32)*seed, (u32)(*seed >> 32))
#define BITS(block) philox((u32)(block), (u32)((u64)(block) >> 32), (u32)stream, (u32)(stream >> 32), key.w[0], key.w[1])

KERNEL dropout(T G *y, const T G *x, i64 n, COUNTERS, u64 threshold, C scale HALF_ARG) {
	KEY;
	EACH(b, (n + 3) / 4) {
		words w = BITS(b);
#pragma unroll
		for (int j = 0; j < 4; j++) {
			i64 i = b * 4 + j;
			if (i < n) {
				y[i] = (u64)w.w[j] < threshold ? STOREC((C)0) : STOREC(LOADC(x[i]) * scale);
			}
		}
	}
}

/* bits of the word that an element takes, and 2 to minus that power */
KERNEL uniform(T G *y, i64 n, COUNTERS, int bits, C scale HALF_ARG) {
	KEY;
	EACH(b, (n + 3) / 4) {
		words w = BITS(b);
#pragma unroll
		for (int j = 0; j < 4; j++) {
			i64 i = b * 4 + j;
			if (i < n) {
				y[i] = STOREC((C)(w.w[j] >> (32 - bits)) * scale);
			}
		}
	}
}
