package gen

import (
	"aitk/ir"
	"aitk/ir/op"
)

func indexing() []maker {
	return []maker{gather, scatterAdd, gatherElements, scatterElements, gatherND, scatterND, argMax, topK}
}

// rows picks data whose axis a has room for every index that content gives, so at least two entries.
func (g *generator) rows(rank int) (x *ir.Value, a int64) {
	x = g.pick(func(v *ir.Value) bool {
		if !g.isFloat(v) || len(v.Type.Shape) < rank {
			return false
		}
		for _, d := range v.Type.Shape {
			if d < 2 {
				return false
			}
		}
		return true
	})
	if x == nil {
		return nil, 0
	}
	return x, g.axis(x)
}

// index finds indices between -2 and 1, of i64 or i32, of a shape; with shape nil of any rank up to 2.
func (g *generator) index(s ir.Shape) *ir.Value {
	v := g.pick(func(v *ir.Value) bool {
		d, c := v.Type.DType, g.span(v)
		return (d == ir.I64 || d == ir.I32) && c.lo >= -2 && c.hi <= 1 && (s == nil && len(v.Type.Shape) <= 2 || s != nil && v.Type.Shape.Equal(s))
	})
	if v == nil {
		t := ir.Type{DType: ir.I64, Shape: s}
		if g.rand.IntN(2) == 0 {
			t.DType = ir.I32
		}
		v = g.keep(g.g.AddConst(t, content(g.rand, t).Encode()), contentSpan(t.DType))
	}
	return v
}

func gather(g *generator) {
	if x, a := g.rows(1); x != nil {
		g.add(op.Gather{Axis: a}, g.span(x), x, g.index(nil))
	}
}

func scatterAdd(g *generator) {
	x := g.float(1)
	if x == nil {
		return
	}
	a := g.axis(x)
	n := x.Type.Shape[a]
	g.add(op.ScatterAdd{Axis: a, Size: 2 + g.extent()}, around(g.span(x).size()*float64(n)), g.index(ir.Shape{n}), x)
}

func gatherElements(g *generator) {
	if x, a := g.rows(1); x != nil {
		s := x.Type.Shape.Clone()
		s[a] = g.extent()
		g.add(op.GatherElements{Axis: a}, g.span(x), x, g.index(s))
	}
}

// scatterElements adds: without Reduce the order of equal indices would decide, which gradients leave open.
func scatterElements(g *generator) {
	if x, a := g.rows(1); x != nil {
		s := x.Type.Shape.Clone()
		s[a] = 1 + g.rand.Int64N(s[a])
		u := g.of(ir.Type{DType: g.DType, Shape: s})
		g.add(op.ScatterElements{Axis: a, Reduce: "add"}, around(g.span(x).size()+g.span(u).size()*float64(s[a])), x, g.index(s), u)
	}
}

func gatherND(g *generator) {
	if x, _ := g.rows(2); x != nil {
		g.add(op.GatherND{}, g.span(x), x, g.index(ir.Shape{g.extent(), 2}))
	}
}

func scatterND(g *generator) {
	if x, _ := g.rows(2); x != nil {
		n := g.extent()
		u := g.of(ir.Type{DType: g.DType, Shape: append(ir.Shape{n}, x.Type.Shape[2:]...)})
		g.add(op.ScatterND{Reduce: "add"}, around(g.span(x).size()+g.span(u).size()*float64(n)), x, g.index(ir.Shape{n, 2}), u)
	}
}

func argMax(g *generator) {
	if x := g.float(1); x != nil {
		a := g.axis(x)
		o := op.ArgMax{Axis: a, KeepDims: g.rand.IntN(2) == 0, Last: g.rand.IntN(2) == 0, Min: g.rand.IntN(2) == 0}
		g.add(o, span{0, float64(x.Type.Shape[a] - 1)}, x)
	}
}

// topK takes the greatest elements; both results go on.
func topK(g *generator) {
	x := g.float(1)
	if x == nil {
		return
	}
	a := g.axis(x)
	out := g.b.Multi(op.TopK{Axis: a, K: 1 + g.rand.Int64N(x.Type.Shape[a]), Smallest: g.rand.IntN(2) == 0}, x)
	s := g.span(x)
	g.keep(out[0], s)
	g.keep(out[1], span{0, float64(x.Type.Shape[a] - 1)})
}

func reductions() []maker {
	reduce := func(o func(axes []int64, keep bool) ir.Op, f func(s span, n float64) span) maker {
		return func(g *generator) {
			x := g.float(1)
			if x == nil {
				return
			}
			var axes []int64
			n := int64(1)
			for a, d := range x.Type.Shape {
				if g.rand.IntN(2) == 0 {
					axes = append(axes, int64(a))
					n *= d
				}
			}
			g.add(o(axes, g.rand.IntN(2) == 0), f(g.span(x), float64(n)), x)
		}
	}
	same := func(s span, n float64) span { return s }
	return []maker{
		reduce(func(a []int64, k bool) ir.Op { return op.ReduceSum{Axes: a, KeepDims: k} }, func(s span, n float64) span { return around(s.size() * n) }),
		reduce(func(a []int64, k bool) ir.Op { return op.ReduceMean{Axes: a, KeepDims: k} }, same),
		reduce(func(a []int64, k bool) ir.Op { return op.ReduceMax{Axes: a, KeepDims: k} }, same),
		reduce(func(a []int64, k bool) ir.Op { return op.ReduceMin{Axes: a, KeepDims: k} }, same),
		reduce(func(a []int64, k bool) ir.Op { return op.ReduceProd{Axes: a, KeepDims: k} }, func(s span, n float64) span {
			p := 1.0
			for range int(n) {
				if p *= s.size(); p > most {
					break
				}
			}
			return around(max(p, s.size()))
		}),
		func(g *generator) { // f32 for all but f64, so the result may be of another type than the rest
			if x := g.float(0); g.DType == ir.F32 || g.DType == ir.F64 {
				s := g.span(x).size()
				g.add(op.SumSquares{}, span{0, s * s * float64(x.Type.Elems())}, x)
			}
		},
	}
}
