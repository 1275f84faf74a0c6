package cpu

import (
	"aitk/ir"
	"aitk/ir/op"
	"aitk/runtime"
)

// unaryKernel serves the ops of one operand that keep its shape.
func unaryKernel(b *builder) (runtime.Kernel, error) {
	switch b.x.Op.(type) {
	case op.Relu:
		if b.inType(0).DType == ir.F32 {
			return reluF32(b), nil
		}
		return unaryFloat(b, reluBlock)
	}
	return nil, nil
}

// unaryFloat applies f to every element, computing in float64 whatever the dtype. dst and src may be the same block.
func unaryFloat(b *builder, f func(dst, src []float64)) (runtime.Kernel, error) {
	x, err := b.floatIn(0)
	if err != nil {
		return nil, err
	}
	y, err := b.floatOut(0)
	if err != nil {
		return nil, err
	}
	return b.ranges(int(b.outType(0).Elems()), rangeElems, func(w *worker, lo, hi int) error {
		for i := lo; i < hi; i += blockElems {
			block := w.f64(0)[:min(blockElems, hi-i)]
			x.load(block, i)
			f(block, block)
			y.store(i, block)
		}
		return nil
	}), nil
}

// reluBlock lets NaN through, as every framework does: the comparison is written so that it is false for NaN.
func reluBlock(dst, src []float64) {
	for i, x := range src {
		if x <= 0 {
			x = 0
		}
		dst[i] = x
	}
}

// reluF32 skips the way through float64.
func reluF32(b *builder) runtime.Kernel {
	x, y := view[float32](b.in[0]), view[float32](b.out[0])
	return b.ranges(len(y), rangeElems, func(_ *worker, lo, hi int) error {
		dst := y[lo:hi]
		for i, v := range x[lo:hi] {
			if v <= 0 {
				v = 0
			}
			dst[i] = v
		}
		return nil
	})
}
