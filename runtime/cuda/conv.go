//go:build cuda && linux

package cuda

import "aitk/ir/op"

// tileSide is the side of the tiles of matmul.c and conv.c.
const tileSide = 64

// convKernel serves Conv and its gradients.
func convKernel(b *builder) (*kernel, error) {
	var c op.Conv
	var x, w, y int // operands, or -1 for the result
	name := ""
	switch o := b.x.Op.(type) {
	case op.Conv:
		name, c, x, w, y = "conv", o, 0, 1, -1
	case op.ConvGradInput:
		name, c, x, w, y = "conv_grad_input", op.Conv{Strides: o.Strides, Dilations: o.Dilations, Pads: o.Pads, Group: o.Group}, -1, 0, 1
	case op.ConvGradWeight:
		name, c, x, w, y = "conv_grad_weight", op.Conv{Strides: o.Strides, Dilations: o.Dilations, Pads: o.Pads, Group: o.Group}, 0, -1, 1
	default:
		return nil, nil
	}
	shape := func(i int) []int64 {
		if i < 0 {
			return b.outType(0).Shape
		}
		return b.inType(i).Shape
	}
	t := b.outType(0)
	module, tail, ok := floatVariant("conv", t.DType)
	if !ok {
		return nil, b.noKernel(t)
	}
	xs, ws, ys := shape(x), shape(w), shape(y)
	window, ok := windowArgs(xs[2:], ys[2:], ws[2:], c.Strides, c.Dilations, c.Pads)
	if !ok {
		return nil, b.noKernel(t)
	}
	channels, outs := xs[1]/c.Group, ws[0]/c.Group
	cells, positions, taps := elems(xs[2:]), elems(ys[2:]), elems(ws[2:])
	rows, cols := outs, xs[0]*positions
	switch name {
	case "conv_grad_input":
		rows, cols = channels, xs[0]*cells
	case "conv_grad_weight":
		cols = channels * taps
	}
	depth := channels * taps
	switch name {
	case "conv_grad_input":
		depth = outs * taps
	case "conv_grad_weight":
		depth = xs[0] * positions
	}
	if max(cols, rows, depth, cells, positions) >= 1<<31 {
		return nil, b.noKernel(t)
	}
	grid := [3]int{int((cols + tileSide - 1) / tileSide), int((rows + tileSide - 1) / tileSide), int(c.Group)}
	args := append([]any{b.out[0], b.in[0], b.in[1], xs[0], channels, outs, c.Group}, window...)
	return b.k, b.launch(module, name, grid, threads, 0, append(args, tail...)...)
}

func elems(s []int64) int64 {
	n := int64(1)
	for _, d := range s {
		n *= d
	}
	return n
}
