/* How a kernel slides over up to three spatial axes; fewer are led by axes of extent 1. in: extents of x, out: of the result, k: of the kernel, s: strides,
 * d: dilations, p: pads at the beginning. */
#ifndef AITK_WINDOW_H
#define AITK_WINDOW_H
#include "lib.h"

#define WINDOW                                                                                                                        \
	int in0, int in1, int in2, int out0, int out1, int out2, int k0, int k1, int k2, int s0, int s1, int s2, int d0, int d1, int d2, \
		int p0, int p1, int p2

#define POSITIONS ((i64)out0 * out1 * out2)
#define CELLS ((i64)in0 * in1 * in2)
#define TAPS (k0 * k1 * k2)

#endif
