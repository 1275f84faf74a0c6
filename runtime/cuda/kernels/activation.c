/* Activations, and the gradients that take an element of each of two tensors. a and b are the op's numbers. */
#include "math.h"

enum { TANH, ERF, SIGMOID, RELU, SOFTPLUS, GELU, GELU_TANH, LEAKY_RELU, CLIP, SWISH };
enum { RELU_GRAD, TANH_GRAD, ERF_GRAD, SIGMOID_GRAD, GELU_GRAD, GELU_TANH_GRAD, SWISH_GRAD };

#if defined(F32) || defined(F64) || defined(H16)

#define ROOT ((C)0.79788456080286535588) /* sqrt(2/pi) */

INLINE C inner(C x) { return ROOT * (x + (C)0.044715 * x * x * x); }

INLINE C apply(C x, int f, C a, C b) {
	switch (f) {
	case TANH:
		return FN(tanh)(x);
	case ERF:
		return FN(erf)(x);
	case SIGMOID:
		return FN(sigmoid)(x);
	case RELU:
		return x <= 0 ? (C)0 : x; /* NaN stays */
	case SOFTPLUS:
		return FN(softplus)(x);
	case GELU:
		return x * FN(normal)(x);
	case GELU_TANH:
		return x * (C)0.5 * ((C)1 + FN(tanh)(inner(x)));
	case LEAKY_RELU:
		return x > 0 ? x : a * x;
	case SWISH:
		return x * FN(sigmoid)(a * x);
	case CLIP:
		x = x < a ? a : x;
		return x > b ? b : x;
	}
	return x;
}

INLINE C slope(C x, C dy, int f, C a) {
	switch (f) {
	case RELU_GRAD:
		return x <= 0 ? (C)0 : dy;
	case TANH_GRAD:
		return dy * ((C)1 - x * x);
	case ERF_GRAD:
		return dy * (C)1.1283791670955125739 * FN(exp)(-x * x);
	case SIGMOID_GRAD:
		return dy * x * ((C)1 - x);
	case GELU_GRAD:
		return dy * (FN(normal)(x) + x * (C)0.39894228040143267794 * FN(exp)(-x * x * (C)0.5));
	case GELU_TANH_GRAD: {
		C t = FN(tanh)(inner(x));
		return dy * ((C)0.5 * ((C)1 + t) + (C)0.5 * x * ((C)1 - t * t) * ROOT * ((C)1 + (C)0.134145 * x * x));
	}
	case SWISH_GRAD: {
		C s = FN(sigmoid)(a * x);
		return dy * (s + a * x * s * ((C)1 - s));
	}
	}
	return dy;
}

KERNEL activation(T G *y, const T G *x, i64 n, int f, C a, C b HALF_ARG) {
	EACH(i, n) { y[i] = STOREC(apply(LOADC(x[i]), f, a, b)); }
}

KERNEL activation_grad(T G *dx, const T G *x, const T G *dy, i64 n, int f, C a HALF_ARG) {
	EACH(i, n) { dx[i] = STOREC(slope(LOADC(x[i]), LOADC(dy[i]), f, a)); }
}

#else

/* RELU and CLIP are max(min) with bounds that fit the type. */
KERNEL activation(void G *y, const void G *x, i64 n, i64 lo, i64 hi, int d) {
	EACH(i, n) {
		i64 v = load_int(x, i, d);
		v = v < lo ? lo : v;
		store_int(y, i, d, v > hi ? hi : v);
	}
}
#endif
