/* The activations as functions of one number. a and b are the op's numbers. */
#ifndef AITK_ACTIVATION_H
#define AITK_ACTIVATION_H
#include "math.h"

enum { TANH, ERF, SIGMOID, RELU, SOFTPLUS, GELU, GELU_TANH, LEAKY_RELU, CLIP, SWISH };

#if defined(F32) || defined(F64) || defined(H16) || defined(F16) || defined(BF16)

#define ROOT ((C)0.79788456080286535588) /* sqrt(2/pi) */

INLINE C inner(C x) { return ROOT * (x + (C)0.044715 * x * x * x); }

INLINE C activated(C x, int f, C a, C b) {
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

#endif
#endif
