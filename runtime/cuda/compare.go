//go:build cuda && linux

package cuda

import "aitk/ir/op"

// compareKernel serves the comparisons and the questions about single floats.
func compareKernel(b *builder) (*kernel, error) {
	f, operands := -1, []int{0, 1}
	switch b.x.Op.(type) {
	case op.Equal:
		f = 0
	case op.Less:
		f = 1
	case op.LessEqual:
		f = 2
	case op.IsNaN:
		f, operands = 3, []int{0, 0}
	case op.IsInf:
		f, operands = 4, []int{0, 0}
	default:
		return nil, nil
	}
	t := b.inType(0)
	module, tail, ok := variant("compare", t.DType)
	if !ok || f > 2 && !t.DType.IsFloat() {
		return nil, b.noKernel(t)
	}
	return b.broadcast(module, "compare", "", operands, []any{f}, tail)
}
