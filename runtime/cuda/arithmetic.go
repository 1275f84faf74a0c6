//go:build cuda && linux

package cuda

import "aitk/ir/op"

// arithmeticKernel serves the operations on two operands that broadcast.
func arithmeticKernel(b *builder) (*kernel, error) {
	f := -1
	switch o := b.x.Op.(type) {
	case op.Add:
		f = 0
	case op.Sub:
		f = 1
	case op.Mul:
		f = 2
	case op.Div:
		f = 3
	case op.Pow:
		f = 4
	case op.Max:
		f = 5
	case op.Min:
		f = 6
	case op.Mod:
		f = 7
		if o.Fmod {
			f = 8
		}
	case op.Bits:
		f = map[string]int{"and": 9, "or": 10, "xor": 11, "shl": 12, "shr": 13}[o.Fn]
	default:
		return nil, nil
	}
	t := b.inType(0)
	module, tail, ok := variant("arithmetic", t.DType)
	if !ok || f > 8 && t.DType.IsFloat() {
		return nil, b.noKernel(t)
	}
	return b.broadcast(module, "arithmetic", "", []int{0, 1}, []any{f}, tail)
}
