/* Elementary functions. There is no library for plain PTX, and the hardware's approximations differ from what the fake driver and other devices
 * give, so these are made of +, *, fma, division and square roots, which are rounded alike everywhere. Errors are a few units in the last place.
 * Coefficients are Taylor's where a range was reduced enough, else Chebyshev fits made by fit.py. */
#ifndef AITK_MATH_H
#define AITK_MATH_H
#include "lib.h"

#define NANF __builtin_nanf("")
#define INFF __builtin_inff()
#define NAND __builtin_nan("")
#define INFD __builtin_inf()

INLINE float fmaf_(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
INLINE double fmad_(double a, double b, double c) { return __builtin_fma(a, b, c); }
INLINE float bits_f(u32 b) { return __builtin_bit_cast(float, b); }
INLINE u32 f_bits(float x) { return __builtin_bit_cast(u32, x); }
INLINE double bits_d(u64 b) { return __builtin_bit_cast(double, b); }
INLINE u64 d_bits(double x) { return __builtin_bit_cast(u64, x); }

#if defined(F64)
#define FN(name) name##_d
#define BUILTIN(name) __builtin_##name
#define SQRT_C(x) __nvvm_sqrt_rn_d(x)
#else
#define FN(name) name##_f
#define BUILTIN(name) __builtin_##name##f
#define SQRT_C(x) __nvvm_sqrt_rn_f(x)
#endif

/* ---- exp ---- */
/* 2^n for n in [-252, 254], in two factors: the product may be subnormal */
INLINE float scale_f(float x, int n) {
	int h = n >> 1;
	return x * bits_f((u32)(h + 127) << 23) * bits_f((u32)(n - h + 127) << 23);
}
INLINE double scale_d(double x, int n) {
	int h = n >> 1;
	return x * bits_d((u64)(h + 1023) << 52) * bits_d((u64)(n - h + 1023) << 52);
}

/* exp(r)-1 for |r| <= 0.35 */
INLINE float expm1_small_f(float r) {
	float p = 1.0f / 5040;
	p = fmaf_(p, r, 1.0f / 720);
	p = fmaf_(p, r, 1.0f / 120);
	p = fmaf_(p, r, 1.0f / 24);
	p = fmaf_(p, r, 1.0f / 6);
	p = fmaf_(p, r, 0.5f);
	return fmaf_(p * r, r, r);
}
INLINE double expm1_small_d(double r) {
	double p = 1.0 / 6227020800;
	p = fmad_(p, r, 1.0 / 479001600);
	p = fmad_(p, r, 1.0 / 39916800);
	p = fmad_(p, r, 1.0 / 3628800);
	p = fmad_(p, r, 1.0 / 362880);
	p = fmad_(p, r, 1.0 / 40320);
	p = fmad_(p, r, 1.0 / 5040);
	p = fmad_(p, r, 1.0 / 720);
	p = fmad_(p, r, 1.0 / 120);
	p = fmad_(p, r, 1.0 / 24);
	p = fmad_(p, r, 1.0 / 6);
	p = fmad_(p, r, 0.5);
	return fmad_(p * r, r, r);
}

INLINE float exp_f(float x) {
	if (x != x) return x;
	if (x > 89.0f) return INFF;
	if (x < -104.0f) return 0.0f;
	float n = __builtin_rintf(x * 1.44269504f);
	float r = fmaf_(n, -0.693145752f, x);
	r = fmaf_(n, -1.42860677e-6f, r);
	return scale_f(1.0f + expm1_small_f(r), (int)n);
}
INLINE double exp_d(double x) {
	if (x != x) return x;
	if (x > 710.0) return INFD;
	if (x < -746.0) return 0.0;
	double n = __builtin_rint(x * 1.4426950408889634074);
	double r = fmad_(n, -0.69314718036912381649, x);
	r = fmad_(n, -1.9082149292705877000e-10, r);
	return scale_d(1.0 + expm1_small_d(r), (int)n);
}

/* ---- log ---- */
INLINE float log_f(float x) {
	if (!(x > 0)) return x == 0 ? -INFF : (x != x ? x : NANF);
	if (x == INFF) return x;
	int e = 0;
	if (x < 1.17549435e-38f) {
		x *= 8388608.0f;
		e = -23;
	}
	u32 b = f_bits(x) - 0x3f3504f3; /* from sqrt(1/2) on */
	e += (int)b >> 23;
	float f = bits_f((b & 0x7fffff) + 0x3f3504f3) - 1.0f;
	float s = f / (2.0f + f), z = s * s;
	float p = 2.0f / 11;
	p = fmaf_(p, z, 2.0f / 9);
	p = fmaf_(p, z, 2.0f / 7);
	p = fmaf_(p, z, 2.0f / 5);
	p = fmaf_(p, z, 2.0f / 3);
	/* log(1+f) = 2s + s*z*p; f = 2s + s*f keeps the small part exact */
	float h = s * (f - z * p);
	float n = (float)e;
	return fmaf_(n, 0.693145752f, f - (h - n * 1.42860677e-6f));
}
INLINE double log_d(double x) {
	if (!(x > 0)) return x == 0 ? -INFD : (x != x ? x : NAND);
	if (x == INFD) return x;
	int e = 0;
	if (x < 2.2250738585072014e-308) {
		x *= 18014398509481984.0;
		e = -54;
	}
	u64 b = d_bits(x) - 0x3fe6a09e667f3bcd;
	e += (int)((i64)b >> 52);
	double f = bits_d((b & 0xfffffffffffff) + 0x3fe6a09e667f3bcd) - 1.0;
	double s = f / (2.0 + f), z = s * s;
	double p = 2.0 / 23;
	p = fmad_(p, z, 2.0 / 21);
	p = fmad_(p, z, 2.0 / 19);
	p = fmad_(p, z, 2.0 / 17);
	p = fmad_(p, z, 2.0 / 15);
	p = fmad_(p, z, 2.0 / 13);
	p = fmad_(p, z, 2.0 / 11);
	p = fmad_(p, z, 2.0 / 9);
	p = fmad_(p, z, 2.0 / 7);
	p = fmad_(p, z, 2.0 / 5);
	p = fmad_(p, z, 2.0 / 3);
	double h = s * (f - z * p);
	double n = (double)e;
	return fmad_(n, 0.69314718036912381649, f - (h - n * 1.9082149292705877000e-10));
}

/* log(1+x) for x in [0, 1] */
INLINE double log1p_d(double x) {
	double u = 1.0 + x;
	return u == 1.0 ? x : log_d(u) * (x / (u - 1.0));
}
INLINE float log1p_f(float x) {
	float u = 1.0f + x;
	return u == 1.0f ? x : log_f(u) * (x / (u - 1.0f));
}

/* ---- tanh, sigmoid, softplus ---- */
INLINE float tanh_f(float x) {
	float a = __builtin_fabsf(x);
	if (a < 0.17f) {
		float t = expm1_small_f(2.0f * x);
		return t / (t + 2.0f);
	}
	if (a > 10.0f) return __builtin_copysignf(1.0f, x);
	return __builtin_copysignf(1.0f - 2.0f / (exp_f(2.0f * a) + 1.0f), x);
}
INLINE double tanh_d(double x) {
	double a = __builtin_fabs(x);
	if (a < 0.17) {
		double t = expm1_small_d(2.0 * x);
		return t / (t + 2.0);
	}
	if (a > 22.0) return __builtin_copysign(1.0, x);
	return __builtin_copysign(1.0 - 2.0 / (exp_d(2.0 * a) + 1.0), x);
}
INLINE float sigmoid_f(float x) {
	float e = exp_f(-__builtin_fabsf(x));
	return x >= 0 ? 1.0f / (1.0f + e) : e / (1.0f + e);
}
INLINE double sigmoid_d(double x) {
	double e = exp_d(-__builtin_fabs(x));
	return x >= 0 ? 1.0 / (1.0 + e) : e / (1.0 + e);
}
INLINE float softplus_f(float x) { return x != x ? x : (x > 0 ? x : 0.0f) + log1p_f(exp_f(-__builtin_fabsf(x))); }
INLINE double softplus_d(double x) { return x != x ? x : (x > 0 ? x : 0.0) + log1p_d(exp_d(-__builtin_fabs(x))); }

/* ---- erf ---- */
INLINE float erf_small_f(float x) { /* |x| <= 1 */
	float z = x * x, p = -9.67359028e-06f;
	p = fmaf_(p, z, 0.000112682537f);
	p = fmaf_(p, z, -0.000848439639f);
	p = fmaf_(p, z, 0.00522105349f);
	p = fmaf_(p, z, -0.0268654376f);
	p = fmaf_(p, z, 0.112837829f);
	p = fmaf_(p, z, -0.376126379f);
	return fmaf_(p, z, 1.12837923f) * x;
}
INLINE float erfc_f(float a) { /* a >= 0.9 */
	if (a > 10.5f) return 0.0f;
	float t = (a - 2.0f) / (a + 2.0f), p = 0.000135969181f;
	p = fmaf_(p, t, -0.00169034791f);
	p = fmaf_(p, t, 0.00112978846f);
	p = fmaf_(p, t, 0.00880930386f);
	p = fmaf_(p, t, -0.00802456681f);
	p = fmaf_(p, t, -0.0542291924f);
	p = fmaf_(p, t, 0.16405116f);
	p = fmaf_(p, t, -0.166030079f);
	p = fmaf_(p, t, -0.0927638263f);
	p = fmaf_(p, t, 1.27697837f);
	float q = a * a, rest = fmaf_(a, a, -q); /* the square's own rounding error matters in the exponent */
	return exp_f(-q) * (1.0f - rest) * p / fmaf_(2.0f, a, 1.0f);
}
INLINE float erf_f(float x) {
	float a = __builtin_fabsf(x);
	if (a <= 1.0f || x != x) return erf_small_f(x);
	return __builtin_copysignf(1.0f - erfc_f(a), x);
}
/* the normal distribution function (1 + erf(x/sqrt(2))) / 2 */
INLINE float normal_f(float x) {
	float a = x * 0.707106781f;
	if (x < -1.3f) return 0.5f * erfc_f(-a);
	return fmaf_(0.5f, erf_f(a), 0.5f);
}
INLINE double erf_d(double x) {
	double a = __builtin_fabs(x), q = a * a;
	if (x != x) return x;
	if (a > 6.0) return __builtin_copysign(1.0, x);
	if (a < 2.5) { /* exp(-x*x) * sum of 2^n x^(2n+1) / (1*3*...*(2n+1)): no cancellation */
		double term = 1.0, sum = 1.0;
		for (int n = 1; n < 60; n++) {
			term *= 2.0 * q / (double)(2 * n + 1);
			sum += term;
			if (term < 1e-17 * sum) break;
		}
		return 1.1283791670955125739 * x * exp_d(-q) * sum;
	}
	double f = 0.0; /* continued fraction of erfc */
	for (int n = 40; n > 0; n--) {
		f = 0.5 * (double)n / (a + f);
	}
	return __builtin_copysign(1.0 - 0.56418958354775628695 * exp_d(-q) / (a + f), x);
}

INLINE double normal_d(double x) { return 0.5 * (1.0 + erf_d(x * 0.70710678118654752440)); }

/* ---- sine and cosine ---- */
#include "trig.h"

/* ---- pow, fmod, in double for all types ---- */
INLINE double fmod_d(double x, double y) {
	if (x != x || y != y || y == 0 || __builtin_fabs(x) == INFD) return NAND;
	if (__builtin_fabs(y) == INFD || x == 0) return x;
	u64 sign = d_bits(x) & 0x8000000000000000, mx = d_bits(x) & 0x7fffffffffffffff, my = d_bits(y) & 0x7fffffffffffffff;
	if (mx < my) return x;
	int ex = (int)(mx >> 52), ey = (int)(my >> 52);
	mx &= 0xfffffffffffff, my &= 0xfffffffffffff;
	if (ex) mx |= 0x10000000000000; else ex = 1;
	if (ey) my |= 0x10000000000000; else ey = 1;
	while (mx < 0x10000000000000) mx <<= 1, ex--;
	while (my < 0x10000000000000) my <<= 1, ey--;
	for (; ex > ey; ex--) {
		if (mx >= my) mx -= my;
		mx <<= 1;
	}
	if (mx >= my) mx -= my;
	if (mx == 0) return bits_d(sign);
	while (mx < 0x10000000000000) mx <<= 1, ey--;
	if (ey > 0) return bits_d(sign | (u64)ey << 52 | (mx & 0xfffffffffffff));
	return bits_d(sign | mx >> (1 - ey));
}

INLINE double pow_d(double x, double y) {
	if (y == 0 || x == 1) return 1.0;
	if (x != x || y != y) return NAND;
	double ay = __builtin_fabs(y), ax = __builtin_fabs(x);
	int whole = ay >= 4503599627370496.0 || __builtin_rint(y) == y;
	int odd = whole && ay < 9007199254740992.0 && ((u64)ay & 1);
	if (ay == INFD) {
		if (ax == 1) return 1.0;
		return (ax > 1) == (y > 0) ? INFD : 0.0;
	}
	if (x < 0 && !whole && ax != INFD) return NAND;
	double r;
	if (ax == 0 || ax == INFD) {
		r = (ax == 0) == (y > 0) ? 0.0 : INFD;
	} else if (y == 0.5) {
		return __nvvm_sqrt_rn_d(x);
	} else if (whole && ay <= 64) { /* products: exact for whole bases */
		double p = 1.0, b = ax;
		for (u32 n = (u32)ay; n; n >>= 1) {
			if (n & 1) p *= b;
			b *= b;
		}
		r = y < 0 ? 1.0 / p : p;
	} else {
		r = exp_d(y * log_d(ax));
	}
	return odd && d_bits(x) >> 63 ? -r : r;
}

#endif
