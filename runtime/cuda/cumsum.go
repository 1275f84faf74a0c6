//go:build cuda && linux

package cuda

import "aitk/ir/op"

// cumsumKernel serves CumSum.
func cumsumKernel(b *builder) (*kernel, error) {
	o, ok := b.x.Op.(op.CumSum)
	if !ok {
		return nil, nil
	}
	t := b.inType(0)
	module, tail, ok := variant("cumsum", t.DType)
	if !ok {
		return nil, b.noKernel(t)
	}
	outer, n, inner := around(t.Shape, o.Axis)
	lines := outer * inner
	grid := [3]int{int((lines + 31) / 32), 1, 1}
	return b.k, b.launch(module, "cumsum", grid, 32, 0, append([]any{b.out[0], b.in[0], lines, n, inner, o.Exclusive, o.Reverse}, tail...)...)
}
