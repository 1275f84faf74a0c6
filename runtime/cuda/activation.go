//go:build cuda && linux

package cuda

import (
	"math"

	"aitk/ir/op"
)

// activationKernel serves the activations and their gradients.
func activationKernel(b *builder) (*kernel, error) {
	f, lo, hi := -1, 0.0, 0.0
	switch o := b.x.Op.(type) {
	case op.Tanh:
		f = 0
	case op.Erf:
		f = 1
	case op.Sigmoid:
		f = 2
	case op.Relu:
		f, hi = 3, math.Inf(1)
	case op.Softplus:
		f = 4
	case op.Gelu:
		f = 5
		if o.Tanh {
			f = 6
		}
	case op.LeakyRelu:
		f, lo = 7, o.Alpha
	case op.Swish:
		f, lo = 9, o.Alpha
	case op.Clip:
		f, lo, hi = 8, o.Min, o.Max
	default:
		return activationGrad(b)
	}
	t := b.inType(0)
	n := t.Elems()
	module, tail, ok := variant("activation", t.DType)
	if !ok {
		return nil, b.noKernel(t)
	}
	args := []any{b.out[0], b.in[0], n}
	if t.DType.IsFloat() {
		args = append(args, f, number(t.DType, lo), number(t.DType, hi))
	} else {
		if f != 3 && f != 8 {
			return nil, b.noKernel(t)
		}
		least, most := op.Clip{Min: lo, Max: hi}.IntBounds(t.DType)
		args = append(args, least, most)
	}
	return b.k, b.launch(module, "activation", b.dev.blocksFor(n), threads, 0, append(args, tail...)...)
}

func activationGrad(b *builder) (*kernel, error) {
	f, alpha := -1, 0.0
	switch o := b.x.Op.(type) {
	case op.ReluGrad:
		f = 0
	case op.TanhGrad:
		f = 1
	case op.ErfGrad:
		f = 2
	case op.SigmoidGrad:
		f = 3
	case op.GeluGrad:
		f = 4
		if o.Tanh {
			f = 5
		}
	case op.SwishGrad:
		f, alpha = 6, o.Alpha
	default:
		return nil, nil
	}
	t := b.inType(0)
	n := t.Elems()
	module, tail, ok := floatVariant("activation", t.DType)
	if !ok {
		return nil, b.noKernel(t)
	}
	return b.k, b.launch(module, "activation_grad", b.dev.blocksFor(n), threads, 0, append([]any{b.out[0], b.in[0], b.in[1], n, f, number(t.DType, alpha)}, tail...)...)
}
