package cpu

import (
	"aitk/ir/op"
	"aitk/runtime"
)

// transposeKernel serves Transpose.
func transposeKernel(b *builder) (runtime.Kernel, error) {
	o, ok := b.x.Op.(op.Transpose)
	if !ok {
		return nil, nil
	}
	own := rowMajor(b.inType(0).Shape)
	from := make([]int, len(own))
	for i, p := range o.Perm {
		from[i] = own[p]
	}
	shape := b.outType(0).Shape
	return b.moveElems(b.outType(0).DType, newSpace(shape, rowMajor(shape), from), b.out[0], b.in[0]), nil
}
