/* What a product of matrices does with an element before it is stored: rounds it, adds an element of another tensor, applies an activation, and rounds after each, so
 * that the bits are those of the three ops apart. */
#ifndef AITK_EPILOGUE_H
#define AITK_EPILOGUE_H
#include "activation.h"

/* the steps of `add` along batch, row and column; add is 0 for none, act negative for none */
#define EPILOGUE const T G *add, i64 add_batch, i64 add_row, i64 add_col, int act, C alpha, C beta

INLINE T finished(T v, const T G *add, i64 at, int act, C alpha, C beta HALF_ARG) {
	if (add) {
		v = STOREC(LOADC(v) + LOADC(add[at]));
	}
	return act < 0 ? v : STOREC(activated(LOADC(v), act, alpha, beta));
}

#endif
