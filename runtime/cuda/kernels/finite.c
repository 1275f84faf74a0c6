/* SumSquares and AllFinite: stretches side by side, their results in scratch, then the stretches in order. */
#include "math.h"

KERNEL sum_squares(double G *sums, const T G *x, i64 n, i64 chunk HALF_ARG) {
	static S double room[256];
	i64 lo = BID * chunk, hi = lo + chunk < n ? lo + chunk : n;
	double sum = 0;
	for (i64 i = lo + TID; i < hi; i += NT) {
		double v = (double)LOADC(x[i]);
		sum += v * v;
	}
	sum = block_sum(sum, room);
	if (TID == 0) {
		sums[BID] = sum;
	}
}

/* the result is f32 for halves too */
KERNEL sum_squares_finish(
#if defined(F64)
	double G *y,
#else
	float G *y,
#endif
	const double G *sums, i64 blocks) {
	if (TID == 0) {
		double sum = 0;
		for (i64 k = 0; k < blocks; k++) {
			sum += sums[k];
		}
#if defined(F64)
		*y = sum;
#else
		*y = (float)sum;
#endif
	}
}

KERNEL all_finite(u64 G *bad, const T G *x, i64 n, i64 chunk HALF_ARG) {
	static S u32 room[256];
	i64 lo = BID * chunk, hi = lo + chunk < n ? lo + chunk : n;
	u32 any = 0;
	for (i64 i = lo + TID; i < hi; i += NT) {
		any |= !(BUILTIN(fabs)(LOADC(x[i])) < (C)__builtin_inf());
	}
	room[TID] = any;
	SYNC();
	for (u32 n = NT / 2; n > 0; n /= 2) {
		if (TID < n) {
			room[TID] |= room[TID + n];
		}
		SYNC();
	}
	if (TID == 0) {
		bad[BID] = room[0];
	}
}

/* the flag is read here: it may lie where the result goes */
KERNEL all_finite_finish(u8 G *y, const u8 G *ok, const u64 G *bad, i64 blocks) {
	if (TID == 0) {
		u64 any = 0;
		for (i64 k = 0; k < blocks; k++) {
			any |= bad[k];
		}
		*y = *ok && !any;
	}
}
