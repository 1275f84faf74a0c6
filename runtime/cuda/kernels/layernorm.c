/* LayerNorm, RMSNorm and their gradients: a block takes a row of cols elements; statistics are kept in double. `rms` leaves the mean out.
 *
 * The gradients take rows in chunks, whose mean and 1/deviation lie in `stats` between launches: norm_stats, then norm_columns for the sums over rows
 * ([blocks of rows][1 or 2 sums][cols]; both in scratch), then norm_dx, which may write over x or dy; at last norm_finish adds up the blocks. */
#include "math.h"

INLINE void statistics(const T G *row, i64 cols, double eps, int rms, double S *room, double *mean, double *rstd HALF_ARG) {
	double m = 0, q = 0;
	if (!rms) {
		for (i64 j = TID; j < cols; j += NT) {
			m += (double)LOADC(row[j]);
		}
		m = block_sum(m, room) / (double)cols;
	}
	for (i64 j = TID; j < cols; j += NT) {
		double c = (double)LOADC(row[j]) - m;
		q += c * c;
	}
	q = block_sum(q, room) / (double)cols;
	*mean = m;
	*rstd = 1.0 / __nvvm_sqrt_rn_d(q + eps);
}

KERNEL norm(T G *y, const T G *x, const T G *scale, const T G *bias, i64 rows, i64 cols, double eps, int rms HALF_ARG) {
	static S double room[256];
	for (i64 r = BID; r < rows; r += NB) {
		double mean, rstd;
		statistics(x + r * cols, cols, eps, rms, room, &mean, &rstd HALF_PASS);
		for (i64 j = TID; j < cols; j += NT) {
			double v = ((double)LOADC(x[r * cols + j]) - mean) * rstd * (double)LOADC(scale[j]);
			if (bias) {
				v += (double)LOADC(bias[j]);
			}
			y[r * cols + j] = STORED(v);
		}
		SYNC();
	}
}

KERNEL norm_stats(double G *stats, const T G *x, i64 begin, i64 end, i64 cols, double eps, int rms HALF_ARG) {
	static S double room[256];
	for (i64 r = begin + BID; r < end; r += NB) {
		double mean, rstd;
		statistics(x + r * cols, cols, eps, rms, room, &mean, &rstd HALF_PASS);
		if (TID == 0) {
			stats[2 * (r - begin)] = mean;
			stats[2 * (r - begin) + 1] = rstd;
		}
		SYNC();
	}
}

/* 32 columns by 8 rows at a time; BIDY is the block of rows, each rows long, of which those in [begin, end) are added */
KERNEL norm_columns(double G *sums, const double G *stats, const T G *x, const T G *dy, i64 begin, i64 end, i64 rows, i64 cols, i64 each, int rms HALF_ARG) {
	static S double scales[256], biases[256];
	i64 lo = BIDY * each, hi = lo + each < rows ? lo + each : rows;
	int fresh = lo >= begin;
	lo = lo > begin ? lo : begin;
	hi = hi < end ? hi : end;
	u32 lane = TID & 31, part = TID >> 5;
	i64 c = (i64)BID * 32 + lane;
	double ds = 0, db = 0;
	if (c < cols) {
		for (i64 r = lo + part; r < hi; r += 8) {
			double d = (double)LOADC(dy[r * cols + c]);
			ds += d * ((double)LOADC(x[r * cols + c]) - stats[2 * (r - begin)]) * stats[2 * (r - begin) + 1];
			db += d;
		}
	}
	scales[TID] = ds;
	biases[TID] = db;
	SYNC();
	if (part == 0 && c < cols && lo < hi) {
		for (u32 k = 1; k < 8; k++) {
			ds += scales[lane + 32 * k];
			db += biases[lane + 32 * k];
		}
		double G *to = sums + (i64)BIDY * (rms ? 1 : 2) * cols + c;
		to[0] = fresh ? ds : to[0] + ds;
		if (!rms) {
			to[cols] = fresh ? db : to[cols] + db;
		}
	}
}

KERNEL norm_dx(T G *dx, const double G *stats, const T G *x, const T G *scale, const T G *dy, i64 begin, i64 end, i64 cols, int rms HALF_ARG) {
	static S double room[256];
	for (i64 r = begin + BID; r < end; r += NB) {
		double mean = stats[2 * (r - begin)], rstd = stats[2 * (r - begin) + 1], sum = 0, dot = 0;
		for (i64 j = TID; j < cols; j += NT) {
			double g = (double)LOADC(dy[r * cols + j]) * (double)LOADC(scale[j]);
			sum += g;
			dot += g * ((double)LOADC(x[r * cols + j]) - mean) * rstd;
		}
		sum = rms ? 0 : block_sum(sum, room) / (double)cols;
		dot = block_sum(dot, room) / (double)cols;
		for (i64 j = TID; j < cols; j += NT) {
			double g = (double)LOADC(dy[r * cols + j]) * (double)LOADC(scale[j]);
			double hat = ((double)LOADC(x[r * cols + j]) - mean) * rstd;
			double v = rstd * (g - sum - hat * dot);
			dx[r * cols + j] = STORED(v);
		}
		SYNC();
	}
}

KERNEL norm_finish(T G *dscale, T G *dbias, const double G *sums, i64 blocks, i64 cols, int rms HALF_ARG) {
	EACH(c, cols) {
		double ds = 0, db = 0;
		for (i64 k = 0; k < blocks; k++) {
			const double G *from = sums + k * (rms ? 1 : 2) * cols + c;
			ds += from[0];
			db += rms ? 0 : from[cols];
		}
		dscale[c] = STORED(ds);
		if (!rms) {
			dbias[c] = STORED(db);
		}
	}
}
