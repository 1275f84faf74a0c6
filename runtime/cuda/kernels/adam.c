/* Adam and AdamW. Where the flag has fallen, outputs equal their operands. The bias corrections are powers of the betas, computed in double by the
 * first thread of each block. */
#include "math.h"

KERNEL adam(T G *py, T G *my, T G *vy, const T G *p, const T G *g, const T G *m, const T G *v, const float G *lr, const i64 G *step, const u8 G *ok,
	i64 n, double beta1, double beta2, C eps, C decay, int decoupled HALF_ARG) {
	static S double factor[3];
	if (TID == 0) {
		double t = (double)*step + 1.0;
		factor[0] = (double)*lr / (1.0 - pow_d(beta1, t));
		factor[1] = __nvvm_sqrt_rn_d(1.0 - pow_d(beta2, t));
		factor[2] = 1.0 - (double)*lr * (double)decay;
	}
	SYNC();
	C rate = (C)factor[0], root = (C)factor[1], shrink = (C)factor[2];
	C b1 = (C)beta1, b2 = (C)beta2, c1 = (C)(1.0 - beta1), c2 = (C)(1.0 - beta2);
	int fine = *ok;
	EACH(i, n) {
		if (!fine) {
			py[i] = p[i];
			my[i] = m[i];
			vy[i] = v[i];
			continue;
		}
		C w = LOADC(p[i]), d = LOADC(g[i]);
		if (decoupled) {
			w *= shrink;
		} else {
			d += decay * w;
		}
		C a = b1 * LOADC(m[i]) + c1 * d;
		C q = b2 * LOADC(v[i]) + c2 * d * d;
		py[i] = STOREC(w - rate * a / (SQRT_C(q) / root + eps));
		my[i] = STOREC(a);
		vy[i] = STOREC(q);
	}
}
