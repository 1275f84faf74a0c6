package cpu

import (
	"aitk/ir/op"
	"aitk/runtime"
)

// logicKernel serves the operations on booleans, which are bytes of 0 and 1.
func logicKernel(b *builder) (runtime.Kernel, error) {
	switch o := b.x.Op.(type) {
	case op.Not:
		x, z := view[uint8](b.in[0]), view[uint8](b.out[0])
		return b.ranges(len(z), rangeElems, func(_ *worker, lo, hi int) error {
			for i := lo; i < hi; i++ {
				z[i] = x[i] ^ 1
			}
			return nil
		}), nil
	case op.Bits:
		return binary(b, nil, o.Function(b.inType(0).DType))
	case op.And:
		return logic(b, func(x, y uint8) uint8 { return x & y }), nil
	case op.Or:
		return logic(b, func(x, y uint8) uint8 { return x | y }), nil
	case op.Xor:
		return logic(b, func(x, y uint8) uint8 { return x ^ y }), nil
	}
	return nil, nil
}

func logic(b *builder, f func(x, y uint8) uint8) runtime.Kernel {
	s := b.broadcast()
	x, y, z := view[uint8](b.in[0]), view[uint8](b.in[1]), view[uint8](b.out[0])
	return s.over(b, func(_ *worker, n int, at [maxLists]int) {
		i, j := at[1], at[2]
		for k := range n {
			z[at[0]+k] = f(x[i], y[j])
			i += s.step[1]
			j += s.step[2]
		}
	})
}
