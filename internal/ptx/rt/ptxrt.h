// ptxrt.h: what C translated from PTX and the host that runs it agree on.
//
// A kernel becomes one function over a warp. Registers are arrays of 32 lanes; arithmetic is a call of a loop over the lanes that the compiler turned
// into vector instructions; memory, shuffles, matrix instructions and barriers go through the host's table. Lanes that part ways are parked with
// the number of their next block; the lowest-numbered block runs first, and order.go numbers so that they meet again. A warp that reaches a
// barrier returns and is called again later: all its state is in ptx_warp, so no stack has to be switched.
#ifndef PTXRT_H
#define PTXRT_H
#include <math.h>
#include <stdint.h>
#include <string.h>

#define PTX_ABI 2
#define PTX_LANES 32
#define PTX_SHARED_BASE 1024u          // first byte of shared memory in its own space
#define PTX_LOCAL_BASE 1024u           // likewise of local memory
#define PTX_SHARED_WINDOW (1ull << 60) // where both lie in generic addresses
#define PTX_LOCAL_WINDOW (1ull << 61)

enum { PTX_EXITED, PTX_BARRIER, PTX_FAULT }; // why a kernel function returned
enum { PTX_GENERIC, PTX_GLOBAL, PTX_SHARED, PTX_LOCAL, PTX_CONST };
enum { PTX_OP_ADD, PTX_OP_MIN, PTX_OP_MAX, PTX_OP_INC, PTX_OP_DEC, PTX_OP_AND, PTX_OP_OR, PTX_OP_XOR, PTX_OP_EXCH, PTX_OP_CAS };
enum { PTX_T_U32, PTX_T_S32, PTX_T_F32, PTX_T_U64, PTX_T_S64, PTX_T_F64, PTX_T_F16, PTX_T_F16X2, PTX_T_BF16, PTX_T_BF16X2, PTX_T_B16 };
enum { PTX_SHFL_UP, PTX_SHFL_DOWN, PTX_SHFL_BFLY, PTX_SHFL_IDX };
enum { PTX_VOTE_ALL, PTX_VOTE_ANY, PTX_VOTE_UNI, PTX_VOTE_BALLOT };
enum { PTX_MMA_F16, PTX_MMA_BF16, PTX_MMA_TF32, PTX_MMA_S8, PTX_MMA_U8 };
enum { PTX_USES_BARRIER = 1, PTX_USES_ATOMIC = 2, PTX_USES_FENCE = 4 };

typedef struct ptx_warp ptx_warp;

// All return 0, or non-zero when the launch must end. m is the mask of lanes that take part. bytes is the element's size in memory, regbytes in
// its register.
typedef struct ptx_host {
	int (*load)(ptx_warp *, uint32_t m, const uint64_t *addr, int64_t off, int space, int bytes, int vec, void *const *dst, int regbytes, int sign);
	int (*store)(ptx_warp *, uint32_t m, const uint64_t *addr, int64_t off, int space, int bytes, int vec, const void *const *src, int regbytes);
	int (*atom)(ptx_warp *, uint32_t m, const uint64_t *addr, int64_t off, int space, int op, int type, void *dst, const void *a, const void *b);
	int (*shfl)(ptx_warp *, uint32_t m, int mode, uint32_t *dst, int32_t *ok, const uint32_t *a, const uint32_t *b, const uint32_t *c, const uint32_t *members);
	int (*vote)(ptx_warp *, uint32_t m, int mode, void *dst, const int32_t *p, int negate, const uint32_t *members);
	int (*match)(ptx_warp *, uint32_t m, int all, int bytes, uint32_t *dst, int32_t *ok, const void *a, const uint32_t *members);
	int (*redux)(ptx_warp *, uint32_t m, int op, int type, uint32_t *dst, const uint32_t *a, const uint32_t *members);
	int (*warpsync)(ptx_warp *, uint32_t m, const uint32_t *members);
	int (*mma)(ptx_warp *, uint32_t m, int type, int k, void *const *d, const void *const *a, const void *const *b, const void *const *c);
	int (*ldmatrix)(ptx_warp *, uint32_t m, int n, int trans, uint32_t *const *dst, const uint64_t *addr, int64_t off, int space);
	int (*cpasync)(ptx_warp *, uint32_t m, const uint64_t *dst, int64_t dstoff, const uint64_t *src, int64_t srcoff, int bytes, const uint32_t *valid);
	int (*cpcommit)(ptx_warp *, uint32_t m);
	int (*cpwait)(ptx_warp *, uint32_t m, int pending); // -1: all, committed or not
	int (*fence)(ptx_warp *, uint32_t m);
	int (*fault)(ptx_warp *, uint32_t m, const char *why);
} ptx_host;

struct ptx_warp {
	const ptx_host *host;
	void *regs;
	uint8_t *local; // lane l's bytes begin at l * localbytes
	const uint8_t *param;
	void *block;             // the host's
	uint32_t live;           // lanes that have not returned
	int32_t lm[PTX_LANES];   // the running lanes as 0 and -1
	uint32_t mask;           // the same as bits
	int32_t pc[PTX_LANES];   // next block of a lane
	uint32_t tid[3][PTX_LANES];
	uint32_t ntid[3], ctaid[3], nctaid[3];
	uint32_t warp, nwarps;
	int32_t line;            // of the PTX text, of the last instruction that called the host
	uint32_t bar_id, bar_count; // at PTX_BARRIER; count 0: the whole block
	uint32_t bar_mask;          // lanes that reached it
	int32_t bar_arrive;         // goes on without waiting
	int64_t fuel;               // taken branches that are left
	uint64_t insts, flops;      // warp instructions, floating-point operations of lanes
};

typedef struct ptx_param { const char *name; uint32_t offset, bytes; } ptx_param;
typedef struct ptx_entry {
	const char *name;
	int (*fn)(ptx_warp *);
	uint32_t regs_bytes, shared_bytes, local_bytes, param_bytes, nparams, nregs, flags;
	uint32_t maxntid, minctas, reqntid[3];
	const ptx_param *params;
} ptx_entry;
typedef struct ptx_var { const char *name; uint64_t bytes; uint32_t align, constant; const uint8_t *init; uint64_t init_bytes; uint64_t *address; } ptx_var;
typedef struct ptx_module { uint32_t abi, version, sm, nentries, nvars; const ptx_entry *entries; const ptx_var *vars; } ptx_module;

// Not inlined: kernels call these in hundreds of places.
#define PTX_OUT static __attribute__((noinline, unused))

#define LANES for (int l = 0; l < PTX_LANES; l++)

// The sign bits of a predicate's lanes. The compiler's builtin is used without its header, which takes longer to read than most kernels.
PTX_OUT uint32_t ptx_bits(const int32_t *p) {
	uint32_t m = 0;
#if defined(__AVX__)
	typedef float eight __attribute__((vector_size(32)));
	for (int i = 0; i < 4; i++) {
		eight v;
		memcpy(&v, p + 8 * i, sizeof v);
		m |= (uint32_t)__builtin_ia32_movmskps256(v) << (8 * i);
	}
#else
	LANES m |= (uint32_t)(p[l] < 0) << l;
#endif
	return m;
}

PTX_OUT void ptx_setmask(ptx_warp *w, uint32_t m) {
	w->mask = m;
	LANES w->lm[l] = -(int32_t)(m >> l & 1);
}

PTX_OUT void ptx_park(ptx_warp *w, uint32_t m, int block) {
	LANES if (m >> l & 1) w->pc[l] = block;
}

// ptx_pick chooses the lanes that run next: those at the lowest block. It returns that block, -1 when no lane is left.
PTX_OUT int ptx_pick(ptx_warp *w, uint32_t *m, uint32_t *rest) {
	int least = 0x7fffffff;
	uint32_t sel = 0;
	LANES if ((w->live >> l & 1) && w->pc[l] < least) least = w->pc[l];
	LANES if ((w->live >> l & 1) && w->pc[l] == least) sel |= 1u << l;
	*m = sel;
	*rest = w->live & ~sel;
	ptx_setmask(w, sel);
	return sel ? least : -1;
}

// Operands that are no array of the width that the host wants.
PTX_OUT void ptx_fill1(int32_t *d, int32_t v) { LANES d[l] = v; }
PTX_OUT void ptx_fill16(uint16_t *d, uint16_t v) { LANES d[l] = v; }
PTX_OUT void ptx_fill32(uint32_t *d, uint32_t v) { LANES d[l] = v; }
PTX_OUT void ptx_fill64(uint64_t *d, uint64_t v) { LANES d[l] = v; }
PTX_OUT void ptx_copy16_32(uint32_t *restrict d, const uint16_t *restrict s) { LANES d[l] = s[l]; }
PTX_OUT void ptx_copy16_64(uint64_t *restrict d, const uint16_t *restrict s) { LANES d[l] = s[l]; }
PTX_OUT void ptx_copy32_16(uint16_t *restrict d, const uint32_t *restrict s) { LANES d[l] = (uint16_t)s[l]; }
PTX_OUT void ptx_copy32_64(uint64_t *restrict d, const uint32_t *restrict s) { LANES d[l] = s[l]; }
PTX_OUT void ptx_copy64_16(uint16_t *restrict d, const uint64_t *restrict s) { LANES d[l] = (uint16_t)s[l]; }
PTX_OUT void ptx_copy64_32(uint32_t *restrict d, const uint64_t *restrict s) { LANES d[l] = (uint32_t)s[l]; }

// ---- bits and floats. Registers hold raw bits; F, D, H, B read them as float, double, half, bfloat16.
static inline float F(uint32_t x) { float f; memcpy(&f, &x, 4); return f; }
static inline uint32_t U(float f) { uint32_t x; memcpy(&x, &f, 4); return x; }
static inline double D(uint64_t x) { double f; memcpy(&f, &x, 8); return f; }
static inline uint64_t UD(double f) { uint64_t x; memcpy(&x, &f, 8); return x; }
static inline float B(uint32_t x) { return F((x & 0xffff) << 16); }
static inline uint32_t UB(float f) {
	uint32_t u = U(f), r = (u + 0x7fff + (u >> 16 & 1)) >> 16;
	return (u & 0x7fffffff) > 0x7f800000 ? 0x7fff : r;
}
static inline float H(uint32_t x) {
	uint32_t a = x & 0x7fff, s = (x & 0x8000) << 16;
	uint32_t norm = (a << 13) + 0x38000000, inf = (a << 13) | 0x7f800000, sub = U((float)(int32_t)a * 0x1p-24f);
	uint32_t r = a >= 0x7c00 ? inf : norm;
	r = a < 0x400 ? sub : r;
	return F(r | s);
}
static inline uint32_t UH(float f) { // to nearest, ties to even
	uint32_t u = U(f), s = u >> 16 & 0x8000, a = u & 0x7fffffff;
	uint32_t norm = (a + 0xfff + (a >> 13 & 1) - 0x38000000) >> 13, sub = U(F(a) + 0.5f) - 0x3f000000;
	uint32_t r = a < 0x38800000 ? sub : norm;
	r = a >= 0x47800000 ? 0x7c00 : r;
	r = a > 0x7f800000 ? 0x7fff : r;
	return r | s;
}
static inline uint32_t UHz(float f) { // toward zero
	uint32_t r = UH(f), a = U(f) & 0x7fffffff;
	uint32_t back = U(H(r)) & 0x7fffffff;
	return a <= 0x7f800000 && back > a ? r - 1 : r;
}
static inline uint32_t UBz(float f) { return (U(f) & 0x7fffffff) > 0x7f800000 ? 0x7fff : U(f) >> 16; }
// A double rounded to odd in single precision rounds once more without error to anything of 22 bits or fewer.
static inline float odd(double x) {
	float f = (float)x;
	if (isnan(f) || isinf(f) || (double)f == x) return isinf(f) && !isinf(x) ? copysignf(3.4028235e38f, f) : f;
	uint32_t u = U(f);
	if (fabs((double)f) > fabs(x)) u--;
	return F(u | 1);
}
static inline float ftz(float f) { return F((U(f) & 0x7fffffff) < 0x00800000 ? U(f) & 0x80000000 : U(f)); }
static inline float sat(float f) { return f > 0 ? (f < 1 ? f : 1) : 0; } // NaN gives 0
static inline double satd(double f) { return f > 0 ? (f < 1 ? f : 1) : 0; }
static inline float relu(float f) { return isnan(f) ? f : f > 0 ? f : 0; }
static inline float trunc_tf32(float f) { return F(U(f) & 0xffffe000u); }
static inline uint32_t tf32_rna(float f) { return (U(f) & 0x7fffffff) >= 0x7f800000 ? U(f) : (U(f) + 0x1000) & 0xffffe000u; }
static inline uint32_t tf32_rn(float f) { return (U(f) & 0x7fffffff) >= 0x7f800000 ? U(f) : (U(f) + 0xfff + (U(f) >> 13 & 1)) & 0xffffe000u; }

static inline float minf(float a, float b) {
	float r = a < b ? a : b;
	r = a != a ? b : b != b ? a : r;
	return a == b ? F(U(a) | U(b)) : r;
}
static inline float maxf(float a, float b) {
	float r = a > b ? a : b;
	r = a != a ? b : b != b ? a : r;
	return a == b ? F(U(a) & U(b)) : r;
}
static inline float minf_nan(float a, float b) { return a != a || b != b ? F(0x7fffffff) : minf(a, b); }
static inline float maxf_nan(float a, float b) { return a != a || b != b ? F(0x7fffffff) : maxf(a, b); }
static inline double mind(double a, double b) {
	double r = a < b ? a : b;
	r = a != a ? b : b != b ? a : r;
	return a == b ? D(UD(a) | UD(b)) : r;
}
static inline double maxd(double a, double b) {
	double r = a > b ? a : b;
	r = a != a ? b : b != b ? a : r;
	return a == b ? D(UD(a) & UD(b)) : r;
}

// Directed roundings of a double to float.
static inline float rz(double x) { float f = (float)x; return fabs((double)f) > fabs(x) && !isinf(x) ? F(U(f) - 1) : f; }
static inline float rm(double x) { float f = (float)x; return (double)f > x ? nextafterf(f, -INFINITY) : f; }
static inline float rp(double x) { float f = (float)x; return (double)f < x ? nextafterf(f, INFINITY) : f; }

// ---- approximations, computed in double and rounded once: within the hardware's documented error, and vectorisable.
static inline float ex2_approx(float xf) {
	double x = xf, n = rint(x < -200 ? -200 : x > 200 ? 200 : x), t = (x < -200 ? -200 : x > 200 ? 200 : x) - n;
	double p = 7.0549116208011233e-9;
	p = p * t + 1.0178086009239699e-7; p = p * t + 1.3215486790144309e-6; p = p * t + 1.5252733804059840e-5;
	p = p * t + 1.5403530393381609e-4; p = p * t + 1.3333558146428443e-3; p = p * t + 9.6181291076284772e-3;
	p = p * t + 5.5504108664821580e-2; p = p * t + 2.4022650695910071e-1; p = p * t + 6.9314718055994531e-1; p = p * t + 1.0;
	double s = D((uint64_t)(1023 + (int64_t)(int32_t)n) << 52);
	return xf != xf ? xf : (float)(p * s);
}
static inline float lg2_approx(float x) {
	uint32_t u = U(x), den = (u & 0x7f800000) == 0;
	float y = den ? x * 0x1p24f : x;
	uint32_t v = U(y) & 0x7fffffff;
	int32_t e = (int32_t)(v >> 23) - 127;
	double m = F((v & 0x7fffff) | 0x3f800000);
	int big = m > 1.4142135623730951;
	m = big ? m * 0.5 : m;
	double s = (m - 1) / (m + 1), q = s * s, p = 1.0 / 19;
	p = p * q + 1.0 / 17; p = p * q + 1.0 / 15; p = p * q + 1.0 / 13; p = p * q + 1.0 / 11; p = p * q + 1.0 / 9;
	p = p * q + 1.0 / 7; p = p * q + 1.0 / 5; p = p * q + 1.0 / 3; p = p * q + 1.0;
	double r = 2 * 1.4426950408889634 * s * p + (e + big - (den ? 24 : 0));
	float f = (float)r;
	f = x == 0 ? -INFINITY : f;
	f = u == 0x7f800000 ? INFINITY : f;
	return x < 0 || x != x ? F(0x7fffffff) : f;
}
// Hardware keeps 11 bits; so does this, lest a kernel passes here that relies on more.
static inline float tanh_approx(float x) {
	double c = x < -20 ? -20 : x > 20 ? 20 : x;
	double t = c * 2.8853900817779268, n = rint(t), f = t - n, p = 1.5252733804059840e-5;
	p = p * f + 1.5403530393381609e-4; p = p * f + 1.3333558146428443e-3; p = p * f + 9.6181291076284772e-3;
	p = p * f + 5.5504108664821580e-2; p = p * f + 2.4022650695910071e-1; p = p * f + 6.9314718055994531e-1; p = p * f + 1.0;
	double e = p * D((uint64_t)(1023 + (int64_t)(int32_t)n) << 52);
	float r = fabsf(x) < 0.004f ? x : (float)((e - 1) / (e + 1));
	return x != x ? x : F((U(r) + 0x800) & 0xfffff000u);
}
static inline float rsqrt_approx(float x) { return (float)(1.0 / sqrt((double)x)); }

// ---- integers
static inline uint32_t divu32(uint32_t a, uint32_t b) { return b ? a / b : 0xffffffffu; }
static inline uint32_t remu32(uint32_t a, uint32_t b) { return b ? a % b : a; }
static inline uint32_t divs32(int32_t a, int32_t b) { return b == 0 ? 0xffffffffu : b == -1 ? 0u - (uint32_t)a : (uint32_t)(a / b); }
static inline uint32_t rems32(int32_t a, int32_t b) { return b == 0 ? (uint32_t)a : b == -1 ? 0 : (uint32_t)(a % b); }
static inline uint64_t divu64(uint64_t a, uint64_t b) { return b ? a / b : ~0ull; }
static inline uint64_t remu64(uint64_t a, uint64_t b) { return b ? a % b : a; }
static inline uint64_t divs64(int64_t a, int64_t b) { return b == 0 ? ~0ull : b == -1 ? 0ull - (uint64_t)a : (uint64_t)(a / b); }
static inline uint64_t rems64(int64_t a, int64_t b) { return b == 0 ? (uint64_t)a : b == -1 ? 0 : (uint64_t)(a % b); }
static inline uint64_t mulhiu64(uint64_t a, uint64_t b) { return (uint64_t)((unsigned __int128)a * b >> 64); }
static inline uint64_t mulhis64(int64_t a, int64_t b) { return (uint64_t)((__int128)a * b >> 64); }
// Shifts by the width or more give 0, or the sign.
static inline uint32_t shl16(uint32_t a, uint32_t n) { return n > 15 ? 0 : (a << n) & 0xffff; }
static inline uint32_t shl32(uint32_t a, uint32_t n) { return n > 31 ? 0 : a << (n & 31); }
static inline uint64_t shl64(uint64_t a, uint32_t n) { return n > 63 ? 0 : a << (n & 63); }
static inline uint32_t shru16(uint32_t a, uint32_t n) { return n > 15 ? 0 : (a & 0xffff) >> n; }
static inline uint32_t shru32(uint32_t a, uint32_t n) { return n > 31 ? 0 : a >> (n & 31); }
static inline uint64_t shru64(uint64_t a, uint32_t n) { return n > 63 ? 0 : a >> (n & 63); }
static inline uint32_t shrs16(uint32_t a, uint32_t n) { return (uint32_t)((int32_t)(int16_t)a >> (n > 15 ? 15 : n)); }
static inline uint32_t shrs32(uint32_t a, uint32_t n) { return (uint32_t)((int32_t)a >> (n > 31 ? 31 : n)); }
static inline uint64_t shrs64(uint64_t a, uint32_t n) { return (uint64_t)((int64_t)a >> (n > 63 ? 63 : n)); }
static inline uint32_t shf(uint32_t lo, uint32_t hi, uint32_t n, int left, int wrap) {
	n = wrap ? n & 31 : n > 32 ? 32 : n;
	uint64_t v = (uint64_t)hi << 32 | lo;
	return left ? (uint32_t)(v << n >> 32) : (uint32_t)(v >> n);
}
static inline uint32_t lop3(uint32_t a, uint32_t b, uint32_t c, int t) {
	uint32_t r = 0;
	r |= t & 1 ? ~a & ~b & ~c : 0; r |= t & 2 ? ~a & ~b & c : 0; r |= t & 4 ? ~a & b & ~c : 0; r |= t & 8 ? ~a & b & c : 0;
	r |= t & 16 ? a & ~b & ~c : 0; r |= t & 32 ? a & ~b & c : 0; r |= t & 64 ? a & b & ~c : 0; r |= t & 128 ? a & b & c : 0;
	return r;
}
static inline uint32_t prmt(uint32_t a, uint32_t b, uint32_t c) {
	uint64_t v = (uint64_t)b << 32 | a;
	uint32_t r = 0;
	for (int i = 0; i < 4; i++) {
		uint32_t s = c >> (4 * i), x = (uint32_t)(v >> (8 * (s & 7))) & 0xff;
		x = s & 8 ? (x & 0x80 ? 0xff : 0) : x;
		r |= x << (8 * i);
	}
	return r;
}
// The special modes of prmt, as selectors of the general one.
static inline uint32_t prmt_f4e(uint32_t a, uint32_t b, uint32_t c) { c &= 3; return prmt(a, b, c | (c + 1) << 4 | (c + 2) << 8 | (c + 3) << 12); }
static inline uint32_t prmt_b4e(uint32_t a, uint32_t b, uint32_t c) { c &= 3; return prmt(a, b, c | ((c - 1) & 7) << 4 | ((c - 2) & 7) << 8 | ((c - 3) & 7) << 12); }
static inline uint32_t prmt_rc8(uint32_t a, uint32_t b, uint32_t c) { return prmt(a, b, (c & 3) * 0x1111); }
static inline uint32_t prmt_ecl(uint32_t a, uint32_t b, uint32_t c) {
	uint32_t r = 0;
	for (uint32_t i = 0; i < 4; i++) r |= (i > (c & 3) ? i : (c & 3)) << (4 * i);
	return prmt(a, b, r);
}
static inline uint32_t prmt_ecr(uint32_t a, uint32_t b, uint32_t c) {
	uint32_t r = 0;
	for (uint32_t i = 0; i < 4; i++) r |= (i < (c & 3) ? i : (c & 3)) << (4 * i);
	return prmt(a, b, r);
}
static inline uint32_t prmt_rc16(uint32_t a, uint32_t b, uint32_t c) { return prmt(a, b, c & 1 ? 0x3232 : 0x1010); }
static inline uint64_t bfe(uint64_t a, uint32_t pos, uint32_t len, int bits, int sign) {
	pos &= 0xff, len &= 0xff;
	uint64_t top = len == 0 ? 0 : a >> (pos + len - 1 < (uint32_t)bits - 1 ? pos + len - 1 : (uint32_t)bits - 1) & 1;
	uint64_t v = pos > 63 ? 0 : a >> pos;
	uint64_t keep = len > 63 ? ~0ull : (1ull << len) - 1;
	uint32_t left = pos < (uint32_t)bits ? (uint32_t)bits - pos : 0;
	if (len > left) keep = left > 63 ? ~0ull : (1ull << left) - 1;
	return sign && top ? (v & keep) | ~keep : v & keep;
}
static inline uint64_t bfi(uint64_t a, uint64_t b, uint32_t pos, uint32_t len, int bits) {
	pos &= 0xff, len &= 0xff;
	if (pos >= (uint32_t)bits) return b;
	uint64_t keep = (len > 63 ? ~0ull : (1ull << len) - 1) << pos;
	return (b & ~keep) | (a << pos & keep);
}
static inline uint32_t brev32(uint32_t x) {
	x = (x >> 1 & 0x55555555) | (x & 0x55555555) << 1; x = (x >> 2 & 0x33333333) | (x & 0x33333333) << 2;
	x = (x >> 4 & 0x0f0f0f0f) | (x & 0x0f0f0f0f) << 4;
	return __builtin_bswap32(x);
}
static inline uint64_t brev64(uint64_t x) { return (uint64_t)brev32((uint32_t)x) << 32 | brev32((uint32_t)(x >> 32)); }
static inline uint32_t clz32(uint32_t x) { return x ? (uint32_t)__builtin_clz(x) : 32; }
static inline uint32_t clz64(uint64_t x) { return x ? (uint32_t)__builtin_clzll(x) : 64; }
static inline uint32_t bfind(uint64_t x, int bits, int sign, int shift) {
	if (sign && bits == 32 && (int32_t)x < 0) x = (uint32_t)~x;
	else if (bits == 32) x = (uint32_t)x;
	else if (sign && (int64_t)x < 0) x = ~x;
	uint32_t i = x ? 63 - (uint32_t)__builtin_clzll(x) : 0xffffffffu;
	return shift && x ? (uint32_t)bits - 1 - i : i;
}
static inline uint32_t fns(uint32_t mask, uint32_t base, int32_t off) {
	if (off == 0) return base < 32 && (mask >> base & 1) ? base : 0xffffffffu;
	int step = off > 0 ? 1 : -1, left = off > 0 ? off : -off;
	for (int i = (int)base; i >= 0 && i < 32; i += step)
		if ((mask >> i & 1) && --left == 0) return (uint32_t)i;
	return 0xffffffffu;
}
static inline uint32_t dp4a(uint32_t a, uint32_t b, uint32_t c, int sa, int sb) {
	for (int i = 0; i < 32; i += 8) {
		int32_t x = sa ? (int8_t)(a >> i) : (int32_t)(a >> i & 0xff), y = sb ? (int8_t)(b >> i) : (int32_t)(b >> i & 0xff);
		c += (uint32_t)(x * y);
	}
	return c;
}

// ---- float to integer: values outside the range give its end, NaN gives 0 (64 bits: the sign bit alone).
static inline int32_t toi32(double x, double lo, double hi) { return x != x ? 0 : (int32_t)(x < lo ? lo : x > hi ? hi : x); }
static inline uint32_t tou32(double x, double hi) { return x != x ? 0 : (uint32_t)(int64_t)(x < 0 ? 0 : x > hi ? hi : x); }
static inline uint64_t tos64(double x) { return x != x ? 1ull << 63 : x >= 0x1p63 ? ~(1ull << 63) : x < -0x1p63 ? 1ull << 63 : (uint64_t)(int64_t)x; }
static inline uint64_t tou64(double x) { return x != x ? 1ull << 63 : x >= 0x1p64 ? ~0ull : x <= 0 ? 0 : (uint64_t)x; }

// ---- 8-bit floats
static inline uint32_t fp8(float f, int mant, int bias, uint32_t top, uint32_t nan) { // to nearest even, saturating
	uint32_t s = U(f) >> 24 & 0x80, a = U(f) & 0x7fffffff;
	if (a > 0x7f800000) return nan;
	float x = F(a);
	int e;
	frexpf(x, &e);
	e = e - 1 < 1 - bias ? 1 - bias : e - 1;
	float q = ldexpf(rintf(ldexpf(x, mant - e)), e - mant);
	if (x == 0 || q == 0) return s;
	if (a == 0x7f800000 || e + bias > 31) return s | top;
	frexpf(q, &e);
	uint32_t r = e - 1 < 1 - bias ? (uint32_t)ldexpf(q, bias - 1 + mant)
	                              : (uint32_t)(e - 1 + bias) << mant | ((uint32_t)ldexpf(q, mant - (e - 1)) - (1u << mant));
	return s | (r > top ? top : r);
}
static inline uint32_t e4m3(float f) { return fp8(f, 3, 7, 0x7e, 0x7f); }
static inline uint32_t e5m2(float f) { return fp8(f, 2, 15, 0x7b, 0x7f); }
static inline float from_e4m3(uint32_t x) {
	uint32_t e = x >> 3 & 15, m = x & 7;
	float f = e ? ldexpf((float)(8 + m), (int)e - 10) : ldexpf((float)m, -9);
	if ((x & 0x7f) == 0x7f) f = F(0x7fffffff);
	return x & 0x80 ? -f : f;
}
static inline float from_e5m2(uint32_t x) { return H(x << 8); }
#endif
