/* Elements moved or made without being looked at, by width: copies between strided places (Transpose, Expand, Concat, Slice, Unslice, Pad), fills, and the
 * triangles of Trilu. */
#include "lib.h"

#define AT_(c, a) yo += (i64)(c) * y##a, xo += (i64)(c) * x##a

#define MOVE(T, W)                                                                                    \
	KERNEL move##W(T G *y, const T G *x, i64 n, AXES(d), STRIDES(y), STRIDES(x)) {                \
		EACH(i, n) {                                                                          \
			i64 xo = 0, yo = 0;                                                           \
			UNRAVEL(i, d, AT_);                                                           \
			y[yo] = x[xo];                                                                \
		}                                                                                     \
	}                                                                                             \
	KERNEL copy##W(T G *y, const T G *x, i64 n) {                                                 \
		EACH(i, n) { y[i] = x[i]; }                                                           \
	}                                                                                             \
	KERNEL fill##W(T G *y, i64 n, T v) {                                                          \
		EACH(i, n) { y[i] = v; }                                                              \
	}                                                                                             \
	/* element (row, col) stays where col - row <= k, or >= k with upper */                       \
	KERNEL trilu##W(T G *y, const T G *x, i64 n, i64 rows, i64 cols, i64 k, int upper) {          \
		EACH(i, n) {                                                                          \
			i64 d = i % cols - i / cols % rows;                                           \
			y[i] = (upper ? d >= k : d <= k) ? x[i] : (T)0;                               \
		}                                                                                     \
	}                                                                                             \
	/* rows of a matrix become columns, 32 by 32 through shared memory; blocks of matrices by z */ \
	KERNEL transpose##W(T G *y, const T G *x, i64 rows, i64 cols) {                    \
		static S T tile##W[32][33];                                                           \
		x += (i64)BIDZ * rows * cols;                                                         \
		y += (i64)BIDZ * rows * cols;                                                         \
		i64 c0 = (i64)BID * 32, r0 = (i64)BIDY * 32;                                          \
		u32 i = TID & 31, j = TID >> 5;                                                       \
		for (u32 k = j; k < 32; k += 8) {                                                     \
			if (r0 + k < rows && c0 + i < cols) {                                         \
				tile##W[k][i] = x[(r0 + k) * cols + c0 + i];                          \
			}                                                                             \
		}                                                                                     \
		SYNC();                                                                               \
		for (u32 k = j; k < 32; k += 8) {                                                     \
			if (c0 + k < cols && r0 + i < rows) {                                         \
				y[(c0 + k) * rows + r0 + i] = tile##W[i][k];                          \
			}                                                                             \
		}                                                                                     \
	}

MOVE(u8, 1)
MOVE(u16, 2)
MOVE(u32, 4)
MOVE(u64, 8)
