/* Activations, and the gradients that take an element of each of two tensors. a and b are the op's numbers. */
#include "activation.h"

enum { RELU_GRAD, TANH_GRAD, ERF_GRAD, SIGMOID_GRAD, GELU_GRAD, GELU_TANH_GRAD, SWISH_GRAD };

#if defined(F32) || defined(F64) || defined(H16)

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
	EACH(i, n) { y[i] = STOREC(activated(LOADC(x[i]), f, a, b)); }
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
