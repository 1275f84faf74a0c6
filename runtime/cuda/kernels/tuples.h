/* Rows of k coordinates, each in an axis of extent n and with a stride of s slices, behind batch axes that data shares: every per_lead rows
 * move on by `lead` slices. */
#ifndef AITK_TUPLES_H
#define AITK_TUPLES_H
#include "lib.h"

#define TUPLES i64 k, i64 per_lead, i64 lead, i64 n0, i64 n1, i64 n2, i64 n3, i64 n4, i64 n5, i64 s0, i64 s1, i64 s2, i64 s3, i64 s4, i64 s5
#define PLACE(idx, row, wide, record) place(idx, row, wide, record, k, per_lead, lead, n0, n1, n2, n3, n4, n5, s0, s1, s2, s3, s4, s5)

INLINE i64 place(const void G *idx, i64 row, int wide, void G *record, TUPLES) {
	i64 at = row / per_lead * lead;
#define COORDINATE(c)                                                                                \
	if (c < k) {                                                                                 \
		at += entry(load_index(idx, row * k + c, wide), n##c, row * k + c, record) * s##c;   \
	}
	COORDINATE(0)
	COORDINATE(1)
	COORDINATE(2)
	COORDINATE(3)
	COORDINATE(4)
	COORDINATE(5)
	return at;
}

#endif
