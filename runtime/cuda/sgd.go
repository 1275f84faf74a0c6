//go:build cuda && linux

package cuda

import "aitk/ir/op"

// sgdKernel serves SGD and MovingAverage.
func sgdKernel(b *builder) (*kernel, error) {
	switch o := b.x.Op.(type) {
	case op.SGD:
		t := b.inType(0)
		module, tail, ok := floatVariant("sgd", t.DType)
		if !ok {
			return nil, b.noKernel(t)
		}
		n, at := t.Elems(), len(b.in)-3
		args := []any{b.out[0], uint64(0), b.in[0], b.in[1], uint64(0), b.in[at], b.in[at+1], b.in[at+2], n}
		if o.Momentum != 0 {
			args[1], args[4] = b.out[1], b.in[2]
		}
		args = append(args, number(t.DType, o.Momentum), number(t.DType, 1-o.Dampening), number(t.DType, o.WeightDecay), o.Nesterov)
		return b.k, b.launch(module, "sgd", b.dev.blocksFor(n), threads, 0, append(args, tail...)...)
	case op.MovingAverage:
		t := b.inType(0)
		module, tail, ok := floatVariant("sgd", t.DType)
		if !ok {
			return nil, b.noKernel(t)
		}
		n := t.Elems()
		args := []any{b.out[0], b.in[0], b.in[1], n, number(t.DType, o.Momentum), number(t.DType, 1-o.Momentum)}
		return b.k, b.launch(module, "moving_average", b.dev.blocksFor(n), threads, 0, append(args, tail...)...)
	}
	return nil, nil
}
