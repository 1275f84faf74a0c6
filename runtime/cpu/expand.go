package cpu

import (
	"aitk/ir/op"
	"aitk/runtime"
)

// expandKernel serves Expand.
func expandKernel(b *builder) (runtime.Kernel, error) {
	if _, ok := b.x.Op.(op.Expand); !ok {
		return nil, nil
	}
	return b.moveElems(b.outType(0).DType, b.broadcast(), b.out[0], b.in[0]), nil
}
