//go:build cuda && linux

package cuda

import "aitk/ir/op"

// finiteKernel serves SumSquares and AllFinite.
func finiteKernel(b *builder) (*kernel, error) {
	operand, name := 0, "sum_squares"
	switch b.x.Op.(type) {
	case op.SumSquares:
	case op.AllFinite:
		operand, name = 1, "all_finite"
	default:
		return nil, nil
	}
	t := b.inType(operand)
	module, tail, ok := floatVariant("finite", t.DType)
	if !ok {
		return nil, b.noKernel(t)
	}
	blocks, chunk := stretches(t.Elems(), op.MaxStretches, op.StretchElems)
	partials, err := b.partials(0, 8*int64(blocks))
	if err != nil {
		return nil, err
	}
	if err := b.launch(module, name, [3]int{blocks, 1, 1}, threads, 0, append([]any{partials, b.in[operand], t.Elems(), chunk}, tail...)...); err != nil {
		return nil, err
	}
	args := []any{b.out[0], partials, int64(blocks)}
	if operand == 1 {
		args = []any{b.out[0], b.in[0], partials, int64(blocks)}
	}
	return b.k, b.launch(module, name+"_finish", [3]int{1, 1, 1}, 32, 0, args...)
}

// stretches cuts n elements into at most so many stretches of at least a number of elements; none where there are no elements.
func stretches(n, most, least int64) (blocks int, chunk int64) {
	if n == 0 {
		return 0, 0
	}
	chunk = max(least, (n+most-1)/most)
	return int((n + chunk - 1) / chunk), chunk
}
