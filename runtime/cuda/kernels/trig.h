/* Sine and cosine of any finite argument, by reduction to a quarter turn. Small arguments subtract a multiple of pi/2 in three parts
 * (Cody and Waite); large ones multiply by the needed bits of 2/pi (Payne and Hanek). */
#ifndef AITK_TRIG_H
#define AITK_TRIG_H
#include "lib.h"

/* 64 zero bits, then 2/pi to 1280 bits, most significant first */
static const __attribute__((address_space(1))) u64 two_over_pi[] = {
	0,
	0xa2f9836e4e441529, 0xfc2757d1f534ddc0, 0xdb6295993c439041, 0xfe5163abdebbc561,
	0xb7246e3a424dd2e0, 0x06492eea09d1921c, 0xfe1deb1cb129a73e, 0xe88235f52ebb4484,
	0xe99c7026b45f7e41, 0x3991d639835339f4, 0x9c845f8bbdf9283b, 0x1ff897ffde05980f,
	0xef2f118b5a0a6d1f, 0x6d367ecf27cb09b7, 0x4f463f669e5fea2d, 0x7527bac7ebe5f17b,
	0x3d0739f78a5292ea, 0x6bfb5fb11f8d5d08, 0x56033046fc7b6bab, 0xf0cfbc209af4361d,
};

INLINE u64 bits_from(u32 at) { /* 64 bits of the table from bit number at */
	u32 w = at >> 6, s = at & 63;
	return s ? two_over_pi[w] << s | two_over_pi[w + 1] >> (64 - s) : two_over_pi[w];
}

/* x - n*pi/2 in [-pi/4, pi/4] and n mod 4, for |x| >= 2^18 */
INLINE double reduce_large(double x, int *quadrant) {
	u64 b = __builtin_bit_cast(u64, x);
	int e = (int)(b >> 52 & 0x7ff) - 1075;
	u64 m = (b & 0xfffffffffffff) | 0x10000000000000;
	u32 at = (u32)(e - 2 + 64); /* bits before stand for multiples of four quarter turns */
	u64 w0 = bits_from(at), w1 = bits_from(at + 64), w2 = bits_from(at + 128);
	u64 p1 = m * w1, p0 = m * w0 + __nvvm_mulhi_ull(m, w1);
	u64 carry = __nvvm_mulhi_ull(m, w2);
	p1 += carry;
	p0 += p1 < carry;
	int q = (int)(p0 >> 62);
	u64 f0 = p0 << 2 | p1 >> 62, f1 = p1 << 2;
	int negative = (int)(f0 >> 63);
	if (negative) {
		q++;
		f1 = ~f1 + 1;
		f0 = ~f0 + (f1 == 0);
	}
	double r = ((double)f0 + (double)f1 * 5.42101086242752217004e-20) * 5.42101086242752217004e-20 * 1.5707963267948966192;
	if (negative) {
		r = -r;
	}
	if (b >> 63) {
		r = -r;
		q = -q;
	}
	*quadrant = q & 3;
	return r;
}

INLINE double reduce_d(double x, int *quadrant) {
	if (__builtin_fabs(x) >= 262144.0) {
		return reduce_large(x, quadrant);
	}
	double n = __builtin_rint(x * 0.63661977236758134308);
	*quadrant = (int)n & 3;
	double r = __builtin_fma(-n, 1.5707963267341256, x);
	r = __builtin_fma(-n, 6.077100506303966e-11, r);
	return __builtin_fma(-n, 2.0222662487959506e-21, r);
}

INLINE double sin_poly_d(double r) {
	double z = r * r, p = 1.0 / 355687428096000;
	p = __builtin_fma(p, z, -1.0 / 1307674368000);
	p = __builtin_fma(p, z, 1.0 / 6227020800);
	p = __builtin_fma(p, z, -1.0 / 39916800);
	p = __builtin_fma(p, z, 1.0 / 362880);
	p = __builtin_fma(p, z, -1.0 / 5040);
	p = __builtin_fma(p, z, 1.0 / 120);
	p = __builtin_fma(p, z, -1.0 / 6);
	return __builtin_fma(p * z, r, r);
}
INLINE double cos_poly_d(double r) {
	double z = r * r, p = 1.0 / 20922789888000;
	p = __builtin_fma(p, z, -1.0 / 87178291200);
	p = __builtin_fma(p, z, 1.0 / 479001600);
	p = __builtin_fma(p, z, -1.0 / 3628800);
	p = __builtin_fma(p, z, 1.0 / 40320);
	p = __builtin_fma(p, z, -1.0 / 720);
	p = __builtin_fma(p, z, 1.0 / 24);
	p = __builtin_fma(p, z, -0.5);
	return __builtin_fma(p, z, 1.0);
}

/* sine of x + turn quarter turns */
INLINE double turned_d(double x, int turn) {
	if (!(__builtin_fabs(x) < __builtin_inf())) {
		return __builtin_nan("");
	}
	int q;
	double r = reduce_d(x, &q);
	q += turn;
	double y = q & 1 ? cos_poly_d(r) : sin_poly_d(r);
	return q & 2 ? -y : y;
}
INLINE double sin_d(double x) { return turned_d(x, 0); }
INLINE double cos_d(double x) { return turned_d(x, 1); }

INLINE float turned_f(float x, int turn) {
	if (!(__builtin_fabsf(x) < 8192.0f)) {
		return (float)turned_d((double)x, turn);
	}
	float n = __builtin_rintf(x * 0.636619772f);
	float r = __builtin_fmaf(-n, 1.5703125f, x);
	r = __builtin_fmaf(-n, 0.0004837512969970703f, r);
	r = __builtin_fmaf(-n, 7.549790126404332e-08f, r);
	int q = (int)n + turn;
	float z = r * r, y;
	if (q & 1) {
		float p = -1.0f / 3628800;
		p = __builtin_fmaf(p, z, 1.0f / 40320);
		p = __builtin_fmaf(p, z, -1.0f / 720);
		p = __builtin_fmaf(p, z, 1.0f / 24);
		p = __builtin_fmaf(p, z, -0.5f);
		y = __builtin_fmaf(p, z, 1.0f);
	} else {
		float p = 1.0f / 362880;
		p = __builtin_fmaf(p, z, -1.0f / 5040);
		p = __builtin_fmaf(p, z, 1.0f / 120);
		p = __builtin_fmaf(p, z, -1.0f / 6);
		y = __builtin_fmaf(p * z, r, r);
	}
	return q & 2 ? -y : y;
}
INLINE float sin_f(float x) { return turned_f(x, 0); }
INLINE float cos_f(float x) { return turned_f(x, 1); }

#endif
