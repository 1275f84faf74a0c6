/* What all kernels share. Each file is compiled once for each element type that its line in generate.sh names: with -DF32, -DF64 or -DH16 for
 * floats, where T is what memory holds and C what is computed with; or with none of them. */
#ifndef AITK_LIB_H
#define AITK_LIB_H

typedef unsigned char u8;
typedef signed char i8;
typedef unsigned short u16;
typedef short i16;
typedef unsigned int u32;
typedef unsigned long u64;
typedef long i64;

#define KERNEL __attribute__((nvptx_kernel)) void
#define G __attribute__((address_space(1))) /* global memory */
#define S __attribute__((address_space(3))) /* shared memory */
#define INLINE static inline __attribute__((always_inline))

#define TID ((u32)__nvvm_read_ptx_sreg_tid_x())
#define BID ((u32)__nvvm_read_ptx_sreg_ctaid_x())
#define BIDY ((u32)__nvvm_read_ptx_sreg_ctaid_y())
#define BIDZ ((u32)__nvvm_read_ptx_sreg_ctaid_z())
#define NT ((u32)__nvvm_read_ptx_sreg_ntid_x())
#define NB ((u32)__nvvm_read_ptx_sreg_nctaid_x())
#define SYNC() __syncthreads()

/* for each element i of n, shared out over the whole grid */
#define EACH(i, n) for (i64 i = (i64)BID * NT + TID; i < (n); i += (i64)NB * NT)

/* ---- element types; the numbers are ir.DType's ---- */
enum { DF64 = 1, DF32, DF16, DBF16, DI64, DI32, DI8, DU8, DBOOL, DI4, DI16, DU16, DU32, DU64 };

INLINE float half_to_float(u16 h) { return (float)__builtin_bit_cast(_Float16, h); }
INLINE u16 float_to_half(float x) { return __builtin_bit_cast(u16, (_Float16)x); }
INLINE float bf_to_float(u16 h) { return __builtin_bit_cast(float, (u32)h << 16); }
INLINE u16 float_to_bf(float x) {
	u32 b = __builtin_bit_cast(u32, x);
	if ((b & 0x7fffffff) > 0x7f800000) { /* NaN stays one */
		return (u16)(b >> 16 | 0x40);
	}
	return (u16)((b + 0x7fff + (b >> 16 & 1)) >> 16); /* to nearest even */
}

/* double rounding must not happen: f64 to f16 or bf16 goes by way of an f32 that was rounded to odd */
INLINE float odd_float(double x) {
	float f = (float)x;
	double back = f;
	u32 b = __builtin_bit_cast(u32, f);
	if (back != x && x == x && (b & 1) == 0 && (b & 0x7fffffff) < 0x7f800000) {
		/* the other neighbour of x has an odd last bit; zero has no lower neighbour of its own sign */
		int up = (x > back) == (x > 0);
		f = __builtin_bit_cast(float, (b << 1) == 0 ? (u32)((x < 0 ? 0x80000000u : 0) | 1) : (up ? b + 1 : b - 1));
	}
	return f;
}

#if defined(F32)
typedef float T;
typedef float C;
#define HALF_ARG
#define LOADC(x) (x)
#define STOREC(x) (x)
#elif defined(F64)
typedef double T;
typedef double C;
#define HALF_ARG
#define LOADC(x) (x)
#define STOREC(x) (x)
#elif defined(H16)
/* f16 and bf16 in one text: every kernel has as its last argument whether it is bf16. */
typedef u16 T;
typedef float C;
#define HALF_ARG , int bf
#define LOADC(x) (bf ? bf_to_float(x) : half_to_float(x))
#define STOREC(x) (bf ? float_to_bf(x) : float_to_half(x))
#endif

#if defined(F16) || defined(BF16) /* one of the two: for tensor cores */
typedef u16 T;
typedef float C;
#define HALF_ARG
enum {
#if defined(BF16)
	bf = 1
#else
	bf = 0
#endif
};
#define LOADC(x) (bf ? bf_to_float(x) : half_to_float(x))
#define STOREC(x) (bf ? float_to_bf(x) : float_to_half(x))
#endif

/* a double to memory, rounded once */
#if defined(F32)
#define STORED(x) ((float)(x))
#elif defined(F64)
#define STORED(x) (x)
#elif defined(H16)
#define STORED(x) STOREC(odd_float(x))
#endif

#if defined(H16)
#define HALF_PASS , bf
#else
#define HALF_PASS
#endif

/* ---- integers of any type as i64 ---- */
INLINE i64 load_int(const void G *p, i64 i, int d) {
	switch (d) {
	case DI64:
	case DU64:
		return ((const i64 G *)p)[i];
	case DI32:
		return ((const int G *)p)[i];
	case DU32:
		return ((const u32 G *)p)[i];
	case DI16:
		return ((const i16 G *)p)[i];
	case DU16:
		return ((const u16 G *)p)[i];
	case DI8:
		return ((const i8 G *)p)[i];
	case DU8:
	case DBOOL:
		return ((const u8 G *)p)[i];
	}
	return 0;
}

INLINE void store_int(void G *p, i64 i, int d, i64 x) {
	switch (d) {
	case DI64:
	case DU64:
		((i64 G *)p)[i] = x;
		break;
	case DI32:
	case DU32:
		((u32 G *)p)[i] = (u32)x;
		break;
	case DI16:
	case DU16:
		((u16 G *)p)[i] = (u16)x;
		break;
	case DI8:
	case DU8:
		((u8 G *)p)[i] = (u8)x;
		break;
	case DBOOL:
		((u8 G *)p)[i] = x != 0;
		break;
	}
}

/* an index of i64 or i32 */
INLINE i64 load_index(const void G *p, i64 i, int wide) { return wide ? ((const i64 G *)p)[i] : ((const int G *)p)[i]; }

/* reports bad data: one store of both numbers. The element is counted from 1. */
typedef i64 pair __attribute__((ext_vector_type(2)));
INLINE void fault(void G *record, i64 value, i64 element) {
	*(volatile pair G *)record = (pair){value, element + 1};
}

/* the entry that index x of element i selects among n; a bad one is reported and taken for 0 */
INLINE i64 entry(i64 x, i64 n, i64 i, void G *record) {
	i64 e = x < 0 ? x + n : x;
	if (e < 0 || e >= n) {
		fault(record, x, i);
		return 0;
	}
	return e;
}

/* ---- reductions inside a block: always in the same order ---- */
INLINE double block_sum(double x, double S *room) { /* room for NT doubles; NT is a power of two */
	room[TID] = x;
	SYNC();
	for (u32 n = NT / 2; n > 0; n /= 2) {
		if (TID < n) {
			room[TID] += room[TID + n];
		}
		SYNC();
	}
	double sum = room[0];
	SYNC();
	return sum;
}

/* the greater one; NaN where either is */
INLINE double greater(double x, double y) { return x > y || x != x ? x : y; }
INLINE double block_max(double x, double S *room) {
	room[TID] = x;
	SYNC();
	for (u32 n = NT / 2; n > 0; n /= 2) {
		if (TID < n) {
			room[TID] = greater(room[TID], room[TID + n]);
		}
		SYNC();
	}
	double m = room[0];
	SYNC();
	return m;
}

/* ---- bits of a space of up to six axes; extents and strides are arguments, outermost first ---- */
#define AXES(d) u32 d##0, u32 d##1, u32 d##2, u32 d##3, u32 d##4, u32 d##5
#define STRIDES(s) i64 s##0, i64 s##1, i64 s##2, i64 s##3, i64 s##4, i64 s##5

/* walks from the innermost axis outwards: AT(body) sees index c and axis number a */
#define UNRAVEL(i, d, AT)                \
	do {                             \
		u32 r_ = (u32)(i), c_;   \
		c_ = r_ % d##5, r_ /= d##5; \
		AT(c_, 5);               \
		if (r_ == 0) break;      \
		c_ = r_ % d##4, r_ /= d##4; \
		AT(c_, 4);               \
		if (r_ == 0) break;      \
		c_ = r_ % d##3, r_ /= d##3; \
		AT(c_, 3);               \
		if (r_ == 0) break;      \
		c_ = r_ % d##2, r_ /= d##2; \
		AT(c_, 2);               \
		if (r_ == 0) break;      \
		c_ = r_ % d##1, r_ /= d##1; \
		AT(c_, 1);               \
		AT(r_, 0);               \
	} while (0)

#endif
