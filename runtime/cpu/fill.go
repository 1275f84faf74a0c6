package cpu

import (
	"aitk/ir/op"
	"aitk/runtime"
)

// fillKernel serves the ops without operands.
func fillKernel(b *builder) (runtime.Kernel, error) {
	switch o := b.x.Op.(type) {
	case op.Fill:
		return b.fillBytes(o.DType, b.out[0], o.Value), nil
	case op.Iota:
		return countUp(b, o)
	}
	return nil, nil
}

func countUp(b *builder, o op.Iota) (runtime.Kernel, error) {
	n := int(o.Shape[o.Axis])
	inner := int(o.Shape[o.Axis+1:].Elems())
	if !o.DType.IsFloat() {
		y, err := b.intOut(0)
		if err != nil {
			return nil, err
		}
		return b.ranges(int(o.Shape.Elems()), rangeElems, func(_ *worker, lo, hi int) error {
			for i := lo; i < hi; i++ {
				y.set(i, int64(o.Start)+int64(i/inner%n)*int64(o.Step))
			}
			return nil
		}), nil
	}
	y, err := b.floatOut(0)
	if err != nil {
		return nil, err
	}
	return b.ranges(int(o.Shape.Elems()), rangeElems, func(_ *worker, lo, hi int) error {
		for i := lo; i < hi; i++ {
			y.set(i, o.Start+float64(float64(i/inner%n)*o.Step))
		}
		return nil
	}), nil
}
