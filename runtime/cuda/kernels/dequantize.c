/* Dequantize: value(code)*scale, or (value(code)-value(zero))*scale, in f32, each operation rounded. The scale of an element is found from its index:
 * with axis 0 there is one, with block 0 one for each index along the axis, else one for `block` neighbours along it. */
#include "math.h"

enum { INT8, UINT8, FP8, INT4, UINT4, NF4 };

static const G float nf4[16] = {-1.0f, -0.6961928009986877f, -0.5250730514526367f, -0.39491748809814453f, -0.28444138169288635f, -0.18477343022823334f,
	-0.09105003625154495f, 0.0f, 0.07958029955625534f, 0.16093020141124725f, 0.24611230194568634f, 0.33791524171829224f, 0.44070982933044434f,
	0.5626170039176941f, 0.7229568362236023f, 1.0f};

INLINE float value(const u8 G *p, i64 i, int format) {
	if (format >= INT4) {
		u32 c = p[i >> 1] >> (i & 1 ? 4 : 0) & 15;
		return format == INT4 ? (float)((int)(c << 28) >> 28) : format == UINT4 ? (float)c : nf4[c];
	}
	u32 c = p[i];
	switch (format) {
	case INT8:
		return (float)(i8)c;
	case UINT8:
		return (float)c;
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

KERNEL dequantize(void G *y, const u8 G *q, const void G *scale, const u8 G *zero, const float G *steps, const float G *offset, i64 n, int format, int to,
	int scale_type, i64 axis, i64 inner, i64 block, i64 blocks) {
	EACH(i, n) {
		i64 g = 0;
		if (axis) {
			i64 k = i / inner % axis;
			g = block ? (i / (axis * inner) * blocks + k / block) * inner + i % inner : k;
		}
		float v = value(q, i, format), s;
		if (steps) {
			float p = (float)((const i8 G *)scale)[g] * steps[g >> 8];
			s = p + *offset;
		} else {
			if (zero) {
				v -= value(zero, g, format);
			}
			s = scale_of(scale, g, scale_type);
		}
		v *= s;
		switch (to) {
		case DF64:
			((double G *)y)[i] = (double)v;
			break;
		case DF32:
			((float G *)y)[i] = v;
			break;
		case DF16:
			((u16 G *)y)[i] = float_to_half(v);
			break;
		case DBF16:
			((u16 G *)y)[i] = float_to_bf(v);
			break;
		}
	}
}
