//go:build cuda && linux

package cuda

import (
	"aitk/ir"
	"aitk/ir/op"
)

// shapeKernel serves the ops that move elements to other places: Transpose, Expand, Concat, Slice, Unslice, Pad, and those that make or drop
// them: Fill, Iota, Trilu.
func shapeKernel(b *builder) (*kernel, error) {
	if len(b.x.Out) != 1 || b.outType(0).DType == ir.I4 {
		return nil, nil
	}
	out := b.outType(0)
	strides := rowMajor(out.Shape)
	switch o := b.x.Op.(type) {
	case op.Transpose:
		own, turned := rowMajor(b.inType(0).Shape), make([]int64, len(o.Perm))
		for i, p := range o.Perm {
			turned[i] = own[p]
		}
		return b.k, b.move(out.DType, out.Shape, b.out[0], 0, strides, b.in[0], 0, turned)
	case op.Expand:
		return b.k, b.move(out.DType, out.Shape, b.out[0], 0, strides, b.in[0], 0, stretched(b.inType(0).Shape, out.Shape))
	case op.Concat:
		begin := int64(0)
		for i := range b.in {
			s := b.inType(i).Shape
			if err := b.move(out.DType, s, b.out[0], begin*strides[o.Axis], strides, b.in[i], 0, rowMajor(s)); err != nil {
				return nil, err
			}
			begin += s[o.Axis]
		}
		return b.k, nil
	case op.Slice:
		first, steps := places(b.inType(0).Shape, o.Starts, o.Steps, out.Shape)
		return b.k, b.move(out.DType, out.Shape, b.out[0], 0, strides, b.in[0], first, steps)
	case op.Unslice:
		part := b.inType(0).Shape
		if err := b.fill(out, b.out[0], 0); err != nil {
			return nil, err
		}
		first, steps := places(o.Shape, o.Starts, o.Steps, part)
		return b.k, b.move(out.DType, part, b.out[0], first, steps, b.in[0], 0, rowMajor(part))
	case op.Pad:
		if err := b.fill(out, b.out[0], o.Value); err != nil {
			return nil, err
		}
		first := int64(0)
		for a, n := range o.Before {
			first += n * strides[a]
		}
		s := b.inType(0).Shape
		return b.k, b.move(out.DType, s, b.out[0], first, strides, b.in[0], 0, rowMajor(s))
	case op.Fill:
		return b.k, b.fill(out, b.out[0], o.Value)
	case op.Iota:
		return b.iota(o)
	case op.Trilu:
		n, s := out.Elems(), out.Shape
		return b.k, b.launch("move", "trilu"+width(out.DType), b.dev.blocksFor(n), threads, 0, b.out[0], b.in[0], n, s[len(s)-2], s[len(s)-1], o.K, o.Upper)
	}
	return nil, nil
}

func (b *builder) iota(o op.Iota) (*kernel, error) {
	_, extent, inner := around(o.Shape, o.Axis)
	module, tail, ok := variant("iota", o.DType)
	if !ok {
		return nil, b.noKernel(b.outType(0))
	}
	n := b.outType(0).Elems()
	args := []any{b.out[0], n, extent, inner}
	if o.DType.IsFloat() {
		args = append(args, o.Start, o.Step)
	} else {
		args = append(args, int64(o.Start), int64(o.Step))
	}
	return b.k, b.launch(module, "iota", b.dev.blocksFor(n), threads, 0, append(args, tail...)...)
}

// places gives the element of the whole at which a slice begins, and how far apart its elements lie along each axis; where there is at most one
// the step may be any number and counts for nothing.
func places(whole ir.Shape, starts, steps []int64, part ir.Shape) (first int64, strides []int64) {
	strides = rowMajor(whole)
	for a := range strides {
		first += starts[a] * strides[a]
		if part[a] <= 1 {
			strides[a] = 0
			continue
		}
		strides[a] *= steps[a]
	}
	return first, strides
}
