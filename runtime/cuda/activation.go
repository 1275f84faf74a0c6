//go:build cuda && linux

package cuda

import (
	"math"

	"aitk/ir"
	"aitk/ir/op"
)

// activationOf is the number of an activation in activation.h, with its two numbers; -1 for other ops.
func activationOf(o ir.Op) (f int, lo, hi float64) {
	switch o := o.(type) {
	case op.Tanh:
		return 0, 0, 0
	case op.Erf:
		return 1, 0, 0
	case op.Sigmoid:
		return 2, 0, 0
	case op.Relu:
		return 3, 0, math.Inf(1)
	case op.Softplus:
		return 4, 0, 0
	case op.Gelu:
		if o.Tanh {
			return 6, 0, 0
		}
		return 5, 0, 0
	case op.LeakyRelu:
		return 7, o.Alpha, 0
	case op.Clip:
		return 8, o.Min, o.Max
	case op.Swish:
		return 9, o.Alpha, 0
	}
	return -1, 0, 0
}

// activationKernel serves the activations and their gradients.
func activationKernel(b *builder) (*kernel, error) {
	f, lo, hi := activationOf(b.x.Op)
	if f < 0 {
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
