// Integer arithmetic and bit tricks; 40 results a thread.
#include "common.h"
#define I2(i, text) __asm__(text " %0, %1, %2;" : "=r"(t) : "r"(x), "r"(y)); r[i] = t
#define I3(i, text) __asm__(text " %0, %1, %2, %3;" : "=r"(t) : "r"(x), "r"(y), "r"(z)); r[i] = t

KERNEL ints(GLOBAL u32 *o, const GLOBAL u32 *a, const GLOBAL u32 *b, const GLOBAL u32 *c, int n) {
	int i = BX * NX + TX;
	if (i >= n) return;
	u32 x = a[i], y = b[i], z = c[i], t;
	GLOBAL u32 *r = o + i * 40;
	r[0] = x + y; r[1] = x - y; r[2] = x * y; r[3] = y ? x / y : 0; r[4] = y ? x % y : 0;
	r[5] = y ? (u32)((int)x / (int)(y | 1)) : 0; r[6] = (u32)((int)x % (int)(y | 1)); r[7] = x & y; r[8] = x | y; r[9] = x ^ y;
	r[10] = ~x; r[11] = x << (y & 31); r[12] = x >> (y & 31); r[13] = (u32)((int)x >> (y & 31)); r[14] = x < y ? x : y;
	r[15] = (int)x > (int)y ? x : y; r[16] = (u32)((u64)x * y >> 32); r[17] = (u32)((s64)(int)x * (int)y >> 32);
	r[18] = __builtin_popcount(x); r[19] = x ? __builtin_clz(x) : 32; r[20] = __builtin_bitreverse32(x); r[21] = (x << 7) | (x >> 25);
	I2(22, "mul.hi.s32"); I2(23, "shl.b32"); I2(24, "shr.s32"); I2(25, "mul24.lo.u32");
	I3(26, "bfe.u32"); I3(27, "bfe.s32"); I3(28, "prmt.b32"); I3(29, "shf.l.wrap.b32"); I3(30, "shf.r.clamp.b32"); I3(31, "sad.u32"); I3(32, "mad.lo.s32"); I3(33, "mad.hi.u32");
	__asm__("bfi.b32 %0, %1, %2, %3, %4;" : "=r"(t) : "r"(x), "r"(y), "r"(z), "r"(z >> 3)); r[34] = t;
	__asm__("lop3.b32 %0, %1, %2, %3, 0xca;" : "=r"(t) : "r"(x), "r"(y), "r"(z)); r[35] = t;
	__asm__("bfind.u32 %0, %1;" : "=r"(t) : "r"(x)); r[36] = t;
	__asm__("dp4a.s32.u32 %0, %1, %2, %3;" : "=r"(t) : "r"(x), "r"(y), "r"(z)); r[37] = t;
	__asm__("{ .reg .b32 u; add.cc.u32 u, %1, %2; addc.u32 %0, %3, 0; }" : "=r"(t) : "r"(x), "r"(y), "r"(z)); r[38] = t;
	__asm__("{ .reg .b32 u; sub.cc.u32 u, %1, %2; subc.u32 %0, %3, 0; }" : "=r"(t) : "r"(x), "r"(y), "r"(z)); r[39] = t;
}
KERNEL longs(GLOBAL u64 *o, const GLOBAL u64 *a, const GLOBAL u64 *b, int n) {
	int i = BX * NX + TX;
	if (i >= n) return;
	u64 x = a[i], y = b[i], t;
	GLOBAL u64 *r = o + i * 16;
	r[0] = x + y; r[1] = x * y; r[2] = x / (y | 1); r[3] = x % (y | 1); r[4] = (u64)((s64)x / (s64)(y | 1)); r[5] = x << (y & 63);
	r[6] = (u64)((s64)x >> (y & 63)); r[7] = (s64)x < (s64)y ? x : y; r[8] = (u64)((unsigned __int128)x * y >> 64);
	r[9] = __builtin_popcountll(x); r[10] = x ? __builtin_clzll(x) : 64; r[11] = (u64)(u32)x * (u32)y; r[12] = (u64)((s64)(int)x * (int)y + (s64)y);
	__asm__("bfe.u64 %0, %1, %2, %3;" : "=l"(t) : "l"(x), "r"((u32)y), "r"((u32)y >> 8)); r[13] = t;
	__asm__("bfe.s64 %0, %1, %2, %3;" : "=l"(t) : "l"(x), "r"((u32)y), "r"((u32)y >> 8)); r[14] = t;
	__asm__("bfi.b64 %0, %1, %2, %3, %4;" : "=l"(t) : "l"(x), "l"(y), "r"((u32)y), "r"((u32)y >> 8)); r[15] = t;
}
