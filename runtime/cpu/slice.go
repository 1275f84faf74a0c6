package cpu

import (
	"aitk/ir"
	"aitk/ir/op"
	"aitk/runtime"
)

// sliceKernel serves Slice and its adjoint.
func sliceKernel(b *builder) (runtime.Kernel, error) {
	switch o := b.x.Op.(type) {
	case op.Slice:
		part := b.outType(0).Shape
		strides, first := places(b.inType(0).Shape, o.Starts, o.Steps)
		s := newSpace(part, rowMajor(part), strides)
		s.first[1] = first
		return b.moveElems(b.outType(0).DType, s, b.out[0], b.in[0]), nil
	case op.Unslice:
		part := b.inType(0).Shape
		strides, first := places(o.Shape, o.Starts, o.Steps)
		s := newSpace(part, strides, rowMajor(part))
		s.first[0] = first
		d := b.outType(0).DType
		return b.sequence(b.fillBytes(d, b.out[0], 0), b.moveElems(d, s, b.out[0], b.in[0])), nil
	}
	return nil, nil
}

// places gives, for each axis of a slice, how far apart its elements lie in the whole, and where the first one is.
func places(whole ir.Shape, starts, steps []int64) (strides []int, first int) {
	strides = rowMajor(whole)
	for a := range strides {
		first += int(starts[a]) * strides[a]
		strides[a] *= int(steps[a])
	}
	return strides, first
}
