//go:build cuda && linux

package cuda

import "aitk/ir/op"

// softmaxKernel serves the softmaxes and their gradients. Lines that lie side by side are taken by a thread each, others by a block each.
func softmaxKernel(b *builder) (*kernel, error) {
	name, axis, log := "softmax", int64(0), 0
	switch o := b.x.Op.(type) {
	case op.Softmax:
		axis = o.Axis
	case op.LogSoftmax:
		axis, log = o.Axis, 1
	case op.SoftmaxGrad:
		name, axis = "softmax_grad", o.Axis
	case op.LogSoftmaxGrad:
		name, axis, log = "softmax_grad", o.Axis, 1
	default:
		return nil, nil
	}
	t := b.inType(0)
	module, tail, ok := floatVariant("softmax", t.DType)
	if !ok {
		return nil, b.noKernel(t)
	}
	outer, n, inner := around(t.Shape, axis)
	args := []any{b.out[0]}
	for _, s := range b.in {
		args = append(args, s)
	}
	args = append(append(args, outer*inner, n, inner, log), tail...)
	if inner >= 32 {
		return b.k, b.launch(module, name+"_thread", [3]int{int(min((outer*inner+63)/64, 1<<20)), 1, 1}, 64, 0, args...)
	}
	return b.k, b.launch(module, name, linesGrid(outer*inner), lineBlock(n), 0, args...)
}

// lineBlock is the extent of a block that takes a line of n elements: a power of two.
func lineBlock(n int64) int {
	block := 32
	for block < threads && int64(block)*4 < n {
		block *= 2
	}
	return block
}
