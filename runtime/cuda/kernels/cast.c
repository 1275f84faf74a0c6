/* Conversions between all element types. `cast_float` is between f32, f16 and bf16; `cast` goes by way of f64 or i64. */
#include "lib.h"

INLINE float load_float(const void G *p, i64 i, int d) {
	switch (d) {
	case DF32:
		return ((const float G *)p)[i];
	case DF16:
		return half_to_float(((const u16 G *)p)[i]);
	}
	return bf_to_float(((const u16 G *)p)[i]);
}

KERNEL cast_float(void G *y, const void G *x, i64 n, int to, int from) {
	EACH(i, n) {
		float v = load_float(x, i, from);
		switch (to) {
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

INLINE void store_double(void G *p, i64 i, int d, double v) {
	switch (d) {
	case DF64:
		((double G *)p)[i] = v;
		break;
	case DF32:
		((float G *)p)[i] = (float)v;
		break;
	case DF16:
		((u16 G *)p)[i] = float_to_half(odd_float(v));
		break;
	case DBF16:
		((u16 G *)p)[i] = float_to_bf(odd_float(v));
		break;
	}
}

INLINE int is_float(int d) { return d >= DF64 && d <= DBF16; }

/* Integers of 64 bits have more bits than a double: to f32, f16 and bf16 they go rounded to odd, once. */
INLINE double from_int(i64 v, int from) {
	int unsign = from == DU64;
	u64 a = !unsign && v < 0 ? 0 - (u64)v : (u64)v;
	if (a >> 53 == 0) {
		double r = (double)a;
		return !unsign && v < 0 ? -r : r;
	}
	u64 sticky = (a & 0x7ff) != 0;
	a = (a & ~(u64)0x7ff) | sticky << 11; /* odd in bit 11: at most 53 bits remain */
	double r = (double)a;
	return !unsign && v < 0 ? -r : r;
}

INLINE i64 clamp(double x, int d, double lo, double hi, i64 least, i64 most) {
	if (x != x) return 0;
	if (x <= lo) return least;
	if (x >= hi) return most;
	return d == DU64 ? (i64)(u64)x : (i64)x;
}

INLINE i64 to_int(double x, int d) {
	switch (d) {
	case DI64:
		return clamp(x, d, -9223372036854775808.0, 9223372036854775808.0, (i64)0x8000000000000000, 0x7fffffffffffffff);
	case DU64:
		return clamp(x, d, 0.0, 18446744073709551616.0, 0, -1);
	case DI32:
		return clamp(x, d, -2147483648.0, 2147483647.0, -2147483648l, 2147483647);
	case DU32:
		return clamp(x, d, 0.0, 4294967295.0, 0, 4294967295l);
	case DI16:
		return clamp(x, d, -32768.0, 32767.0, -32768, 32767);
	case DU16:
		return clamp(x, d, 0.0, 65535.0, 0, 65535);
	case DI8:
		return clamp(x, d, -128.0, 127.0, -128, 127);
	case DU8:
		return clamp(x, d, 0.0, 255.0, 0, 255);
	}
	return x != 0; /* bool; NaN is true */
}

KERNEL cast(void G *y, const void G *x, i64 n, int to, int from) {
	EACH(i, n) {
		if (is_float(from)) {
			double v = from == DF64 ? ((const double G *)x)[i] : (double)load_float(x, i, from);
			if (is_float(to)) {
				store_double(y, i, to, v);
			} else {
				store_int(y, i, to, to_int(v, to));
			}
			continue;
		}
		i64 v = load_int(x, i, from);
		if (!is_float(to)) {
			store_int(y, i, to, v);
		} else if (to == DF64) {
			((double G *)y)[i] = from == DU64 ? (double)(u64)v : (double)v;
		} else {
			store_double(y, i, to, from_int(v, from));
		}
	}
}
