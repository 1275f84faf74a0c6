package gen

import (
	"aitk/ir"
	"aitk/ir/op"
)

func shapes() []maker {
	return []maker{reshape, reshape, transpose, transpose, expand, concat, slice, pad, unslice, fill, counting, trilu, cumsum}
}

// any picks a value of any element type and at least that rank.
func (g *generator) any(rank int) *ir.Value {
	return g.pick(func(v *ir.Value) bool { return len(v.Type.Shape) >= rank })
}

func (g *generator) axis(v *ir.Value) int64 { return g.rand.Int64N(int64(len(v.Type.Shape))) }

// reshape takes the extents apart into factors and puts them together anew, into rank 0 to 4.
func reshape(g *generator) {
	x := g.any(0)
	left := x.Type.Elems()
	var s ir.Shape
	for range g.rand.IntN(4) {
		d := int64(1)
		for _, f := range []int64{2, 3, 5, 7} {
			if left%(d*f) == 0 && g.rand.IntN(2) == 0 {
				d *= f
			}
		}
		s = append(s, d)
		left /= d
	}
	if left != 1 {
		s = append(s, left)
	}
	g.add(op.Reshape{Shape: s}, g.span(x), x)
}

func transpose(g *generator) {
	if x := g.any(2); x != nil {
		perm := make([]int64, len(x.Type.Shape))
		for i, p := range g.rand.Perm(len(perm)) {
			perm[i] = int64(p)
		}
		g.add(op.Transpose{Perm: perm}, g.span(x), x)
	}
}

func expand(g *generator) {
	x := g.any(0)
	s := x.Type.Shape.Clone()
	for i := range s {
		if s[i] == 1 {
			s[i] = g.extent()
		}
	}
	if len(s) < 4 && g.rand.IntN(2) == 0 {
		s = append(ir.Shape{g.extent()}, s...)
	}
	g.add(op.Expand{Shape: s}, g.span(x), x)
}

func concat(g *generator) {
	x := g.any(1)
	if x == nil {
		return
	}
	a := g.axis(x)
	in, s := []*ir.Value{x}, g.span(x)
	for range 1 + g.rand.IntN(2) {
		t := ir.Type{DType: x.Type.DType, Shape: x.Type.Shape.Clone()}
		t.Shape[a] = g.extent()
		y := g.of(t)
		in, s = append(in, y), join(s, g.span(y))
	}
	g.add(op.Concat{Axis: a}, s, in...)
}

func slice(g *generator) {
	x := g.any(1)
	if x == nil {
		return
	}
	var o op.Slice
	for _, d := range x.Type.Shape {
		start := g.rand.Int64N(d)
		end, step := start+1+g.rand.Int64N(d-start), 1+g.rand.Int64N(2)
		if g.rand.IntN(4) == 0 { // backwards
			end, step = start-1-g.rand.Int64N(start+1), -step
		}
		o.Starts, o.Ends, o.Steps = append(o.Starts, start), append(o.Ends, end), append(o.Steps, step)
	}
	g.add(o, g.span(x), x)
}

func pad(g *generator) {
	x := g.float(1)
	if x == nil {
		return
	}
	o := op.Pad{Value: float64(g.rand.IntN(2)) / 2}
	for range x.Type.Shape {
		o.Before, o.After = append(o.Before, g.rand.Int64N(2)), append(o.After, g.rand.Int64N(3))
	}
	g.add(o, join(g.span(x), span{0, 0.5}), x)
}

func unslice(g *generator) {
	x := g.float(1)
	if x == nil {
		return
	}
	var o op.Unslice
	for _, d := range x.Type.Shape {
		start, step := g.rand.Int64N(2), 1+g.rand.Int64N(2)
		o.Starts, o.Steps = append(o.Starts, start), append(o.Steps, step)
		o.Shape = append(o.Shape, start+(d-1)*step+1+g.rand.Int64N(2))
	}
	g.add(o, join(g.span(x), span{0, 0}), x)
}

func fill(g *generator) {
	x := float64(g.rand.IntN(5)-2) / 2
	g.add(op.Fill{DType: g.DType, Shape: ir.Shape{g.extent(), g.extent()}, Value: x}, span{x, x})
}

func counting(g *generator) {
	o := op.Iota{DType: g.DType, Shape: ir.Shape{g.extent(), g.extent()}, Axis: g.rand.Int64N(2), Start: -1, Step: 0.5}
	if g.rand.IntN(2) == 0 {
		o.DType, o.Step = ir.I64, 1
	}
	g.add(o, span{-1, 4}, nil...)
}

func trilu(g *generator) {
	if x := g.float(2); x != nil {
		g.add(op.Trilu{Upper: g.rand.IntN(2) == 0, K: g.rand.Int64N(4) - 2}, join(g.span(x), span{0, 0}), x)
	}
}

func cumsum(g *generator) {
	if x := g.float(1); x != nil {
		a := g.axis(x)
		g.add(op.CumSum{Axis: a, Exclusive: g.rand.IntN(2) == 0, Reverse: g.rand.IntN(2) == 0}, around(g.span(x).size()*float64(x.Type.Shape[a])), x)
	}
}
