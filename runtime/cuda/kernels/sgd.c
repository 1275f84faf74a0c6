/* SGD and MovingAverage. Where the flag has fallen, outputs equal their operands. */
#include "math.h"

KERNEL sgd(T G *py, T G *by, const T G *p, const T G *g, const T G *buf, const float G *lr, const i64 G *step, const u8 G *ok, i64 n, C momentum,
	C dampened, C decay, int nesterov HALF_ARG) {
	C rate = (C)*lr;
	int fine = *ok, first = *step == 0, moving = by != 0;
	EACH(i, n) {
		if (!fine) {
			py[i] = p[i];
			if (moving) by[i] = buf[i];
			continue;
		}
		C w = LOADC(p[i]), d = LOADC(g[i]) + decay * w;
		if (moving) {
			C b = first ? d : momentum * LOADC(buf[i]) + dampened * d;
			by[i] = STOREC(b);
			d = nesterov ? d + momentum * b : b;
		}
		py[i] = STOREC(w - rate * d);
	}
}

KERNEL moving_average(T G *y, const T G *old, const T G *batch, i64 n, C keep, C take HALF_ARG) {
	EACH(i, n) { y[i] = STOREC(keep * LOADC(old[i]) + take * LOADC(batch[i])); }
}
