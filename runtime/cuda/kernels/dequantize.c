/* Dequantize: value(code)*scale, or (value(code)-value(zero))*scale, in f32, each operation rounded. The scale of an element is found from its index:
 * with axis 0 there is one, with block 0 one for each index along the axis, else one for `block` neighbours along it. */
#include "dequantize.h"

KERNEL dequantize(void G *y, const u8 G *q, SCALE, i64 n, int to, i64 axis, i64 inner, i64 block, i64 blocks) {
	EACH(i, n) {
		i64 g = 0;
		if (axis) {
			i64 k = i / inner % axis;
			g = block ? (i / (axis * inner) * blocks + k / block) * inner + i % inner : k;
		}
		float v = scaled(value(q, i, format), g, SCALE_PASS);
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
