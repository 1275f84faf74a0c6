/* BatchNorm, BatchNormInference and their gradients: a block takes a channel of x [samples, channels, inner] with all its elements, or a plane of it where no
 * sum is needed. Element i of a channel lies at (i/inner*channels + c)*inner + i%inner. */
#include "math.h"

#define AT(i) (((i) / inner * channels + c) * inner + (i) % inner)
#define VALUE(p, k) ((double)LOADC((p)[k]))

KERNEL batchnorm(T G *y, T G *mean, T G *variance, const T G *x, const T G *scale, const T G *bias, i64 count, i64 channels, i64 inner, double eps HALF_ARG) {
	static S double room[256];
	for (i64 c = BID; c < channels; c += NB) {
		double m = 0, q = 0;
		for (i64 i = TID; i < count; i += NT) {
			m += VALUE(x, AT(i));
		}
		m = block_sum(m, room) / (double)count;
		for (i64 i = TID; i < count; i += NT) {
			double d = VALUE(x, AT(i)) - m;
			q += d * d;
		}
		q = block_sum(q, room) / (double)count;
		double f = VALUE(scale, c) / __nvvm_sqrt_rn_d(q + eps), b = VALUE(bias, c);
		for (i64 i = TID; i < count; i += NT) {
			i64 at = AT(i);
			double v = (VALUE(x, at) - m) * f + b;
			y[at] = STORED(v);
		}
		if (TID == 0) {
			mean[c] = STORED(m);
			variance[c] = STORED(q);
		}
		SYNC();
	}
}

/* through: the gradient flows through the statistics */
KERNEL batchnorm_grad(T G *dx, T G *dscale, T G *dbias, const T G *x, const T G *scale, const T G *mean, const T G *variance, const T G *dy, i64 count,
	i64 channels, i64 inner, double eps, int through HALF_ARG) {
	static S double room[256];
	for (i64 c = BID; c < channels; c += NB) {
		double m = VALUE(mean, c), rstd = 1.0 / __nvvm_sqrt_rn_d(VALUE(variance, c) + eps), ds = 0, db = 0;
		for (i64 i = TID; i < count; i += NT) {
			i64 at = AT(i);
			double d = VALUE(dy, at);
			ds += d * (VALUE(x, at) - m) * rstd;
			db += d;
		}
		ds = block_sum(ds, room);
		db = block_sum(db, room);
		double f = VALUE(scale, c) * rstd;
		double sum = through ? db / (double)count : 0, dot = through ? ds / (double)count : 0;
		for (i64 i = TID; i < count; i += NT) {
			i64 at = AT(i);
			double v = f * (VALUE(dy, at) - sum - (VALUE(x, at) - m) * rstd * dot);
			dx[at] = STORED(v);
		}
		if (TID == 0) {
			dscale[c] = STORED(ds);
			dbias[c] = STORED(db);
		}
		SYNC();
	}
}

KERNEL batchnorm_inference(T G *y, const T G *x, const T G *scale, const T G *bias, const T G *mean, const T G *variance, i64 planes, i64 channels,
	i64 inner, double eps HALF_ARG) {
	for (i64 p = BID; p < planes; p += NB) {
		i64 c = p % channels;
		double m = VALUE(mean, c), f = VALUE(scale, c) / __nvvm_sqrt_rn_d(VALUE(variance, c) + eps), b = VALUE(bias, c);
		for (i64 i = TID; i < inner; i += NT) {
			double v = (VALUE(x, p * inner + i) - m) * f + b;
			y[p * inner + i] = STORED(v);
		}
	}
}
