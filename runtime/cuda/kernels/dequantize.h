/* What codes of weights mean (package quant). */
#ifndef AITK_DEQUANTIZE_H
#define AITK_DEQUANTIZE_H
#include "math.h"

enum { INT8, UINT8, FP8, INT4, UINT4, NF4 };

static const G float nf4[16] = {-1.0f, -0.6961928009986877f, -0.5250730514526367f, -0.39491748809814453f, -0.28444138169288635f, -0.18477343022823334f,
	-0.09105003625154495f, 0.0f, 0.07958029955625534f, 0.16093020141124725f, 0.24611230194568634f, 0.33791524171829224f, 0.44070982933044434f,
	0.5626170039176941f, 0.7229568362236023f, 1.0f};

INLINE float meaning(u32 c, int format) {
	switch (format) {
	case INT8:
		return (float)(i8)c;
	case UINT8:
	case UINT4:
		return (float)c;
	case INT4:
		return (float)((int)(c << 28) >> 28);
	case NF4:
		return nf4[c];
	}
	u32 e = c >> 3 & 15, m = c & 7, sign = (c >> 7) << 31;
	if (e == 15 && m == 7) {
		return NANF;
	}
	if (e == 0) {
		return __builtin_copysignf((float)m * 0.001953125f, bits_f(sign));
	}
	return bits_f(sign | (e + 120) << 23 | m << 20);
}

INLINE float value(const u8 G *p, i64 i, int format) { return meaning(format >= INT4 ? p[i >> 1] >> (i & 1 ? 4 : 0) & 15 : p[i], format); }

INLINE float scale_of(const void G *p, i64 i, int d) {
	switch (d) {
	case DF64:
		return (float)((const double G *)p)[i];
	case DF32:
		return ((const float G *)p)[i];
	case DF16:
		return half_to_float(((const u16 G *)p)[i]);
	}
	return bf_to_float(((const u16 G *)p)[i]);
}

/* what a group of codes shares */
#define SCALE const void G *scale, const u8 G *zero, const float G *steps, const float G *offset, int format, int scale_type
#define SCALE_PASS scale, zero, steps, offset, format, scale_type

/* of a matrix: the element at a row and column belongs to group row/rb*rs + column/cb*cs */
#define GROUPS u32 rb, u32 rs, u32 cb, u32 cs
#define GROUPS_PASS rb, rs, cb, cs

/* a weight, given the meaning of its code, which belongs to group g */
INLINE float scaled(float v, i64 g, SCALE) {
	float s;
	if (steps) {
		float p = (float)((const i8 G *)scale)[g] * steps[g >> 8];
		s = p + *offset;
	} else {
		if (zero) {
			v -= value(zero, g, format);
		}
		s = scale_of(scale, g, scale_type);
	}
	return v * s;
}

#endif
