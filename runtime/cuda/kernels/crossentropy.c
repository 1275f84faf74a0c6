/* SoftmaxCrossEntropy and its gradient: a line of logits for each label; lines as in softmax.c. Blocks take stretches of labels whose losses and counts lie
 * in `sums` and `counts` (scratch) between launches. A bad label is reported and left out. */
#include "math.h"

#define LINE(l) ((l) / inner * n * inner + (l) % inner)

/* -1 where the label is left out */
INLINE i64 label(const void G *target, i64 l, i64 n, int wide, int has_ignore, i64 ignore, void G *record) {
	i64 v = load_index(target, l, wide);
	if (has_ignore && v == ignore) {
		return -1;
	}
	if (v < 0 || v >= n) {
		if (TID == 0) {
			fault(record, v, l);
		}
		return -1;
	}
	return v;
}

KERNEL cross_entropy(double G *sums, i64 G *counts, const T G *x, const void G *target, i64 lines, i64 n, i64 inner, i64 each, double smoothing, int wide, int has_ignore, i64 ignore,
	void G *record HALF_ARG) {
	static S double room[256];
	i64 lo = BID * each, hi = lo + each < lines ? lo + each : lines;
	double total = 0;
	i64 kept = 0;
	for (i64 l = lo; l < hi; l++) {
		i64 k = label(target, l, n, wide, has_ignore, ignore, record);
		if (k < 0) { /* the same for all threads */
			continue;
		}
		i64 at = LINE(l);
		double most = -INFD, sum = 0, all = 0;
		for (i64 j = TID; j < n; j += NT) {
			most = greater(most, (double)LOADC(x[at + j * inner]));
		}
		most = block_max(most, room);
		C top = (C)most;
		for (i64 j = TID; j < n; j += NT) {
			C v = LOADC(x[at + j * inner]);
			sum += (double)FN(exp)(v - top);
			all += (double)v;
		}
		sum = block_sum(sum, room);
		double norm = most + log_d(sum);
		total += (1.0 - smoothing) * (norm - (double)LOADC(x[at + k * inner]));
		if (smoothing != 0) {
			total += smoothing * (norm - block_sum(all, room) / (double)n);
		}
		kept++;
	}
	if (TID == 0) {
		sums[BID] = total;
		counts[BID] = kept;
	}
}

KERNEL cross_entropy_finish(T G *y, const double G *sums, const i64 G *counts, i64 blocks, int mean HALF_ARG) {
	if (TID == 0) {
		double sum = 0;
		i64 kept = 0;
		for (i64 k = 0; k < blocks; k++) {
			sum += sums[k];
			kept += counts[k];
		}
		if (mean) {
			sum /= (double)kept;
		}
		*y = STORED(sum);
	}
}

/* how many labels count, for the gradient: one block */
KERNEL cross_entropy_count(i64 G *counts, const void G *target, i64 lines, i64 n, int wide, int has_ignore, i64 ignore, void G *record) {
	static S double room[256];
	double kept = 0;
	for (i64 l = TID; l < lines; l += NT) {
		i64 v = load_index(target, l, wide);
		int out = has_ignore && v == ignore;
		if (!out && (v < 0 || v >= n)) {
			fault(record, v, l);
		}
		kept += !out;
	}
	kept = block_sum(kept, room);
	if (TID == 0) {
		counts[0] = (i64)kept;
	}
}

KERNEL cross_entropy_grad(T G *dx, const i64 G *counts, const T G *x, const void G *target, const T G *dloss, i64 lines, i64 n, i64 inner, double smoothing, int wide,
	int has_ignore, i64 ignore, int mean, void G *record HALF_ARG) {
	static S double room[256];
	double scale = (double)LOADC(*dloss);
	if (mean) {
		scale /= (double)counts[0];
	}
	for (i64 l = BID; l < lines; l += NB) {
		i64 k = label(target, l, n, wide, has_ignore, ignore, record), at = LINE(l);
		if (k < 0) {
			for (i64 j = TID; j < n; j += NT) {
				dx[at + j * inner] = STOREC((C)0);
			}
			continue;
		}
		double most = -INFD, sum = 0;
		for (i64 j = TID; j < n; j += NT) {
			most = greater(most, (double)LOADC(x[at + j * inner]));
		}
		C top = (C)block_max(most, room);
		for (i64 j = TID; j < n; j += NT) {
			sum += (double)FN(exp)(LOADC(x[at + j * inner]) - top);
		}
		sum = block_sum(sum, room);
		for (i64 j = TID; j < n; j += NT) {
			double v = (double)FN(exp)(LOADC(x[at + j * inner]) - top) / sum - smoothing / (double)n;
			if (j == k) {
				v -= 1.0 - smoothing;
			}
			v *= scale;
			dx[at + j * inner] = STORED(v);
		}
		SYNC();
	}
}
