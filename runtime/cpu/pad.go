package cpu

import (
	"aitk/ir/op"
	"aitk/runtime"
)

// padKernel serves Pad: everything is filled, then the operand is written over the middle.
func padKernel(b *builder) (runtime.Kernel, error) {
	o, ok := b.x.Op.(op.Pad)
	if !ok {
		return nil, nil
	}
	to := rowMajor(b.outType(0).Shape)
	shape := b.inType(0).Shape
	s := newSpace(shape, to, rowMajor(shape))
	for a, n := range o.Before {
		s.first[0] += int(n) * to[a]
	}
	d := b.outType(0).DType
	return b.sequence(b.fillBytes(d, b.out[0], o.Value), b.moveElems(d, s, b.out[0], b.in[0])), nil
}
