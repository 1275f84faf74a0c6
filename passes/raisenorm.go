package passes

import (
	"aitk/ir"
	"aitk/ir/op"
)

// matchNorm recognises a norm at the node that divides by the root:
//
//	h = x * 1/sqrt(mean(x*x) + eps)          the root as Rsqrt, Reciprocal of Sqrt, Div or Pow; x perhaps cast to a wider float before
//
// and takes in what follows, where nothing else reads h: the rounding to the narrower float, the product with a scale of the normalised axes, and
// for x = z - mean(z), which makes it a LayerNorm of z, the sum with a bias.
func (x *raiser) matchNorm(n *ir.Node) bool {
	v, axis, eps, ok := x.divided(n)
	if !ok {
		return false
	}
	m := &normMatch{x: v, axis: axis, eps: eps, last: n}
	if z := centred(v, axis); z != nil {
		m.layer, m.x = true, z
	}
	cols := m.x.Type.Shape[axis:]
	m.follow(x, cols)
	what := "RMSNorms"
	if m.layer {
		what = "LayerNorms"
	}
	x.put(what, m.last, func() *ir.Value { return x.buildNorm(m, cols) })
	return true
}

// normMatch is a norm in pieces, up to and including the node last.
type normMatch struct {
	x           *ir.Value
	axis        int64
	eps         float64
	layer       bool
	scale, bias *ir.Value // nil: none
	last        *ir.Node
}

// divided recognises n = v / sqrt(mean(v*v) + eps).
func (x *raiser) divided(n *ir.Node) (v *ir.Value, axis int64, eps float64, ok bool) {
	if _, div := n.Op.(op.Div); div {
		if root := defBy[op.Sqrt](n.In[1]); root != nil {
			axis, eps, ok = x.meanSquare(root.In[0], n.In[0])
		}
		return n.In[0], axis, eps, ok
	}
	for i, r := range n.In {
		v = n.In[1-i]
		under := x.underRoot(r)
		if under == nil {
			continue
		}
		if axis, eps, ok = x.meanSquare(under, v); ok {
			return v, axis, eps, true
		}
	}
	return nil, 0, 0, false
}

// defBy is the node that defines v, if it is a T.
func defBy[T ir.Op](v *ir.Value) *ir.Node {
	if v.Def == nil {
		return nil
	}
	if _, ok := v.Def.Op.(T); !ok {
		return nil
	}
	return v.Def
}

// underRoot is a where v is 1/sqrt(a).
func (x *raiser) underRoot(v *ir.Value) *ir.Value {
	if n := defBy[op.Rsqrt](v); n != nil {
		return n.In[0]
	}
	var root *ir.Value
	if n := defBy[op.Reciprocal](v); n != nil {
		root = n.In[0]
	} else if n := defBy[op.Div](v); n != nil && x.isSplat(n.In[0], 1) {
		root = n.In[1]
	} else if n := defBy[op.Pow](v); n != nil && x.isSplat(n.In[1], -0.5) {
		return n.In[0]
	}
	if root == nil {
		return nil
	}
	if n := defBy[op.Sqrt](root); n != nil {
		return n.In[0]
	}
	return nil
}

// meanSquare recognises a = mean(v*v) + eps over the axes from axis on.
func (x *raiser) meanSquare(a, v *ir.Value) (axis int64, eps float64, ok bool) {
	n := defBy[op.Add](a)
	if n == nil {
		return 0, 0, false
	}
	for i := range n.In {
		c, known := x.splat(n.In[i])
		mean := defBy[op.ReduceMean](n.In[1-i])
		if !known || c < 0 || mean == nil {
			continue
		}
		axis, ok := trailing(mean.Op.(op.ReduceMean), v)
		if ok && x.squares(mean.In[0], v) {
			return axis, c, true
		}
	}
	return 0, 0, false
}

// trailing is the first of the reduced axes, if they are the last ones of v and are kept.
func trailing(o op.ReduceMean, v *ir.Value) (int64, bool) {
	rank := int64(len(v.Type.Shape))
	if !o.KeepDims || len(o.Axes) == 0 {
		return 0, false
	}
	first := rank - int64(len(o.Axes))
	for i, a := range o.Axes {
		if a != first+int64(i) {
			return 0, false
		}
	}
	return first, true
}

// squares tells whether s is v*v.
func (x *raiser) squares(s, v *ir.Value) bool {
	if n := defBy[op.Mul](s); n != nil {
		return n.In[0] == v && n.In[1] == v
	}
	n := defBy[op.Pow](s)
	return n != nil && n.In[0] == v && x.isSplat(n.In[1], 2)
}

// centred is z where v is z - mean(z) over the axes from axis on.
func centred(v *ir.Value, axis int64) *ir.Value {
	n := defBy[op.Sub](v)
	if n == nil {
		return nil
	}
	mean := defBy[op.ReduceMean](n.In[1])
	if mean == nil || mean.In[0] != n.In[0] {
		return nil
	}
	if a, ok := trailing(mean.Op.(op.ReduceMean), n.In[0]); !ok || a != axis {
		return nil
	}
	return n.In[0]
}

// follow takes in rounding, scale and bias.
func (m *normMatch) follow(x *raiser, cols ir.Shape) {
	rounded := false
	round := func() {
		u := x.only(m.last.Out[0])
		if u == nil || rounded {
			return
		}
		if c, ok := u.Op.(op.Cast); ok && c.To.IsFloat() && c.To.Bits() < m.last.Out[0].Type.DType.Bits() {
			m.last, rounded = u, true
		}
	}
	take := func(u *ir.Node) *ir.Value {
		for i, v := range u.In {
			if u.In[1-i] == m.last.Out[0] && v != m.last.Out[0] && fitsCols(v.Type.Shape, cols) && u.Out[0].Type.Equal(m.last.Out[0].Type) {
				m.last = u
				return v
			}
		}
		return nil
	}
	round()
	if u := x.only(m.last.Out[0]); u != nil {
		if _, ok := u.Op.(op.Mul); ok {
			m.scale = take(u)
		}
	}
	if m.layer && m.scale != nil {
		if u := x.only(m.last.Out[0]); u != nil {
			if _, ok := u.Op.(op.Add); ok {
				m.bias = take(u)
			}
		}
	}
	round()
}

// fitsCols tells whether a tensor of shape s has one element for each of the normalised ones.
func fitsCols(s, cols ir.Shape) bool {
	for len(s) > len(cols) && s[0] == 1 {
		s = s[1:]
	}
	return s.Equal(cols)
}

// buildNorm writes the op: in the narrow type where operands and result are of it, else in the type in which the pieces were.
func (x *raiser) buildNorm(m *normMatch, cols ir.Shape) *ir.Value {
	out := m.last.Out[0].Type
	v, scale, bias := m.x, m.scale, m.bias
	if w := unwidened(v); w != v && w.Type.DType == out.DType {
		narrow := w.Type.DType
		fits := func(p *ir.Value) bool { return p == nil || unwidened(p).Type.DType == narrow }
		if fits(scale) && fits(bias) {
			v = w
			if scale != nil {
				scale = unwidened(scale)
			}
			if bias != nil {
				bias = unwidened(bias)
			}
		}
	}
	d := v.Type.DType
	if scale == nil {
		scale = x.b.Add(op.Fill{DType: d, Shape: cols.Clone(), Value: 1})
	}
	in := []*ir.Value{v, x.cast(x.shape(scale, cols...), d)}
	if bias != nil {
		in = append(in, x.cast(x.shape(bias, cols...), d))
	}
	if m.layer {
		return x.cast(x.b.Add(op.LayerNorm{Axis: m.axis, Eps: m.eps}, in...), out.DType)
	}
	return x.cast(x.b.Add(op.RMSNorm{Axis: m.axis, Eps: m.eps}, in...), out.DType)
}
