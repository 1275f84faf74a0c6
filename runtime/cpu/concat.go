package cpu

import (
	"aitk/ir/op"
	"aitk/runtime"
)

// concatKernel serves Concat: one strided copy for each operand.
func concatKernel(b *builder) (runtime.Kernel, error) {
	o, ok := b.x.Op.(op.Concat)
	if !ok {
		return nil, nil
	}
	to := rowMajor(b.outType(0).Shape)
	var parts []runtime.Kernel
	begin := 0
	for i, src := range b.in {
		shape := b.inType(i).Shape
		s := newSpace(shape, to, rowMajor(shape))
		s.first[0] = begin * to[o.Axis]
		begin += int(shape[o.Axis])
		parts = append(parts, b.moveElems(b.outType(0).DType, s, b.out[0], src))
	}
	return b.sequence(parts...), nil
}
