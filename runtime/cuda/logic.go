//go:build cuda && linux

package cuda

import "aitk/ir/op"

// logicKernel serves the operations on booleans.
func logicKernel(b *builder) (*kernel, error) {
	f, operands := -1, []int{0, 1}
	switch b.x.Op.(type) {
	case op.And:
		f = 0
	case op.Or:
		f = 1
	case op.Xor:
		f = 2
	case op.Not:
		f, operands = 3, []int{0, 0}
	default:
		return nil, nil
	}
	return b.broadcast("logic", "logic", "", operands, []any{f}, nil)
}
