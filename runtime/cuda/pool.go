//go:build cuda && linux

package cuda

import "aitk/ir/op"

// poolKernel serves the pools and their gradients.
func poolKernel(b *builder) (*kernel, error) {
	var kernel, strides, dilations, pads []int64
	name, x, pooled := "", b.x.In, b.x.Out
	countPad, avg := false, false
	switch o := b.x.Op.(type) {
	case op.MaxPool:
		name, kernel, strides, dilations, pads = "max_pool", o.Kernel, o.Strides, o.Dilations, o.Pads
	case op.MaxPoolGrad:
		name, kernel, strides, dilations, pads = "max_pool_grad", o.Kernel, o.Strides, o.Dilations, o.Pads
		pooled = b.x.In[1:]
	case op.AvgPool:
		name, kernel, strides, dilations, pads = "avg_pool", o.Kernel, o.Strides, o.Dilations, o.Pads
		countPad, avg = o.CountPad, true
	case op.AvgPoolGrad:
		name, kernel, strides, dilations, pads = "avg_pool_grad", o.Kernel, o.Strides, o.Dilations, o.Pads
		countPad, avg = o.CountPad, true
		x, pooled = b.x.Out, b.x.In
	default:
		return nil, nil
	}
	t := x[0].Type
	module, tail, ok := floatVariant("pool", t.DType)
	if !ok {
		return nil, b.noKernel(t)
	}
	window, ok := windowArgs(t.Shape[2:], pooled[0].Type.Shape[2:], kernel, strides, dilations, pads)
	if !ok {
		return nil, b.noKernel(t)
	}
	args := []any{b.out[0]}
	for _, s := range b.in {
		args = append(args, s)
	}
	args = append(args, t.Shape[:2].Elems())
	if avg {
		args = append(args, countPad)
	}
	return b.k, b.launch(module, name, b.dev.blocksFor(b.outType(0).Elems()), threads, 0, append(append(args, window...), tail...)...)
}
