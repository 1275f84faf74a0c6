//go:build cuda && linux

package cuda

import (
	"fmt"

	"aitk/ir"
	"aitk/ir/op"
)

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
	var small int64 // most elements of a tensor
	for _, e := range [][]int64{xs, ws, ys} {
		small = max(small, elems(e))
	}
	side := int64(tileSide)
	// Places of elements are numbers of 31 bits in convmma.c, kernel cells bits of one word.
	if b.dev.multiplies(t.DType) && min(rows, cols, depth) >= mmaLeast && small < 1<<30 && (taps < 64 || name == "conv_grad_weight") {
		side = mmaSide
		module, tail = mmaModule("convmma", t.DType), nil
		if name == "conv" && depth%mmaPiece == 0 && addressOf(b.in[1])%16 == 0 {
			name = "conv_pieces"
		}
	}
	args := []any{b.out[0], b.in[0], b.in[1]}
	stretches := int64(1)
	if o, ok := b.x.Op.(op.ConvGradWeight); ok {
		stretch := (depth + o.Stretches(ys) - 1) / o.Stretches(ys)
		stretch = max(mmaLeast, (stretch+mmaLeast-1)/mmaLeast*mmaLeast)
		if stretches = max(1, (depth+stretch-1)/stretch); stretches > 1 {
			if need := b.partialBytes(); b.scratch.Bytes < need {
				return nil, fmt.Errorf("%s needs %d bytes of scratch for partial sums, the plan gives %d", ir.OpName(o), need, b.scratch.Bytes)
			}
			args = append(args, b.scratch, stretch)
		} else {
			args = append(args, uint64(0), stretch)
		}
	}
	grid := [3]int{int((cols + side - 1) / side), int((rows + side - 1) / side), int(c.Group * stretches)}
	args = append(append(args, xs[0], channels, outs, c.Group), window...)
	if err := b.launch(module, name, grid, threads, 0, append(args, tail...)...); err != nil || stretches == 1 {
		return b.k, err
	}
	module, tail, _ = floatVariant("conv", t.DType)
	n := t.Elems()
	return b.k, b.launch(module, "conv_join", b.dev.blocksFor(n), threads, 0, append([]any{b.out[0], b.scratch, n, stretches}, tail...)...)
}

// partialBytes is what the op says that its partial sums take.
func (b *builder) partialBytes() int64 {
	var in, out []ir.Type
	for i := range b.x.In {
		in = append(in, b.inType(i))
	}
	for i := range b.x.Out {
		out = append(out, b.outType(i))
	}
	return ir.WorkOf(b.x.Op, in, out).PartialBytes
}

func elems(s []int64) int64 {
	n := int64(1)
	for _, d := range s {
		n *= d
	}
	return n
}
