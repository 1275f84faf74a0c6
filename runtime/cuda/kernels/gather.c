/* Gather, GatherElements, GatherND: elements are moved by width. A bad index is reported and taken for 0. */
#include "lib.h"
#include "tuples.h"

#define AT_(k, a) at += (i64)(k) * x##a

#define GATHER(T, W)                                                                                                       \
	/* result [blocks, count, inner] of data [blocks, n, inner] */                                                     \
	KERNEL gather##W(T G *y, const T G *x, const void G *idx, i64 total, i64 count, i64 n, i64 inner, int wide, void G *record) { \
		EACH(i, total) {                                                                                           \
			i64 k = i / inner % count;                                                                         \
			i64 e = entry(load_index(idx, k, wide), n, k, record);                                             \
			y[i] = x[(i / (count * inner) * n + e) * inner + i % inner];                                       \
		}                                                                                                          \
	}                                                                                                                  \
	/* a walk over the indices; strides are data's, 0 along the axis */                                                \
	KERNEL gather_elements##W(T G *y, const T G *x, const void G *idx, i64 total, i64 base, i64 n, i64 along, int wide,     \
		void G *record, AXES(d), STRIDES(x)) {                                                                     \
		EACH(i, total) {                                                                                           \
			i64 at = base;                                                                                     \
			UNRAVEL(i, d, AT_);                                                                                \
			y[i] = x[at + entry(load_index(idx, i, wide), n, i, record) * along];                              \
		}                                                                                                          \
	}                                                                                                                  \
	/* slices of `size` elements, one for each row of coordinates */                                                   \
	KERNEL gather_nd##W(T G *y, const T G *x, const void G *idx, i64 total, i64 size, int wide, void G *record, TUPLES) {    \
		EACH(i, total) { y[i] = x[PLACE(idx, i / size, wide, record) * size + i % size]; }                         \
	}

GATHER(u8, 1)
GATHER(u16, 2)
GATHER(u32, 4)
GATHER(u64, 8)

/* for results without elements, of which no thread would look at an index */
KERNEL check_indices(const void G *idx, i64 count, i64 n, int wide, void G *record) {
	EACH(i, count) { entry(load_index(idx, i, wide), n, i, record); }
}

KERNEL check_tuples(const void G *idx, i64 rows, int wide, void G *record, TUPLES) {
	EACH(r, rows) { PLACE(idx, r, wide, record); }
}
