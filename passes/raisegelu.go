package passes

import (
	"math"

	"aitk/ir"
	"aitk/ir/op"
)

// matchGelu recognises, with factors in any order and grouping,
//
//	x * 0.5 * (1 + erf(x / sqrt(2)))
//	x * 0.5 * (1 + tanh(sqrt(2/pi) * (x + 0.044715 * x^3)))
func (x *raiser) matchGelu(n *ir.Node) bool {
	p := x.product(n.Out[0])
	d := n.Out[0].Type.DType
	if len(p.factors) != 2 || !about(d, p.number, 0.5) {
		return false
	}
	for i, sum := range p.factors {
		of, tanh, ok := x.bell(sum, d)
		if ok && p.factors[1-i] == of && of.Type.Equal(n.Out[0].Type) {
			x.put("Gelus", n, func() *ir.Value { return x.b.Add(op.Gelu{Tanh: tanh}, of) })
			return true
		}
	}
	return false
}

// matchSwish recognises x * sigmoid(x) and x * sigmoid(a*x), where nothing else reads the sigmoid.
func (x *raiser) matchSwish(n *ir.Node) {
	if defBy[op.Mul](n.Out[0]) == nil {
		return
	}
	for i, y := range n.In {
		of, s := n.In[1-i], defBy[op.Sigmoid](y)
		if s == nil || x.only(y) != n || !of.Type.Equal(n.Out[0].Type) {
			continue
		}
		alpha := 1.0
		if s.In[0] != of {
			scaled, c, ok := x.byNumber(s.In[0])
			if !ok || scaled != of || math.IsInf(c, 0) || math.IsNaN(c) {
				continue
			}
			alpha = c
		}
		x.put("Swishes", n, func() *ir.Value { return x.b.Add(op.Swish{Alpha: alpha}, of) })
		return
	}
}

// product is a product taken apart: a number and other factors.
type product struct {
	number  float64
	factors []*ir.Value
}

// product takes apart products and quotients that have one reader each.
func (x *raiser) product(v *ir.Value) product {
	p := product{number: 1}
	stack := []*ir.Value{v}
	for len(stack) > 0 && len(p.factors) < 6 {
		w := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		if c, ok := x.splat(w); ok {
			p.number *= c
			continue
		}
		inner := w == v || x.only(w) != nil
		if n := defBy[op.Mul](w); n != nil && inner {
			stack = append(stack, n.In[1], n.In[0])
			continue
		}
		if n := defBy[op.Mul](w); n != nil && n.In[0] == n.In[1] { // a square that both the cube and others read
			p.factors = append(p.factors, n.In[0], n.In[0])
			continue
		}
		if n := defBy[op.Div](w); n != nil && inner {
			if c, ok := x.splat(n.In[1]); ok && c != 0 {
				p.number /= c
				stack = append(stack, n.In[0])
				continue
			}
		}
		if n := defBy[op.Pow](w); n != nil {
			if c, ok := x.splat(n.In[1]); ok && (c == 2 || c == 3) {
				for range int(c) {
					p.factors = append(p.factors, n.In[0])
				}
				continue
			}
		}
		p.factors = append(p.factors, w)
	}
	return p
}

// plus splits a sum of a number and another value.
func (x *raiser) plus(v *ir.Value) (of *ir.Value, number float64, ok bool) {
	n := defBy[op.Add](v)
	if n == nil {
		return nil, 0, false
	}
	for i, in := range n.In {
		if c, ok := x.splat(in); ok {
			return n.In[1-i], c, true
		}
	}
	return nil, 0, false
}

// bell recognises 1 + erf(x/sqrt 2) and 1 + tanh(...).
func (x *raiser) bell(v *ir.Value, d ir.DType) (of *ir.Value, tanh, ok bool) {
	s, c, ok := x.plus(v)
	if !ok || c != 1 {
		return nil, false, false
	}
	if n := defBy[op.Erf](s); n != nil {
		p := x.product(n.In[0])
		return firstFactor(p), false, len(p.factors) == 1 && about(d, p.number, 1/math.Sqrt2)
	}
	n := defBy[op.Tanh](s)
	if n == nil {
		return nil, false, false
	}
	p := x.product(n.In[0])
	if len(p.factors) != 1 || !about(d, p.number, math.Sqrt(2/math.Pi)) {
		return nil, false, false
	}
	sum := defBy[op.Add](p.factors[0])
	if sum == nil {
		return nil, false, false
	}
	for i, z := range sum.In {
		cube := x.product(sum.In[1-i])
		if len(cube.factors) == 3 && cube.factors[0] == z && cube.factors[1] == z && cube.factors[2] == z && about(d, cube.number, 0.044715) {
			return z, true, true
		}
	}
	return nil, false, false
}

func firstFactor(p product) *ir.Value {
	if len(p.factors) == 0 {
		return nil
	}
	return p.factors[0]
}
