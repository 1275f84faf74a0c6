package gen

import (
	"math"

	"aitk/ir"
	"aitk/ir/op"
)

// unary makes an op on a float value, if the value's span suits it.
func unary(o ir.Op, f func(s span) (span, bool)) maker {
	return func(g *generator) {
		if x := g.float(0); x != nil {
			if s, ok := f(g.span(x)); ok {
				g.add(o, s, x)
			}
		}
	}
}

// rising is the rule of a function that grows with its operand, between bounds on it.
func rising(lo, hi float64, f func(float64) float64) func(span) (span, bool) {
	return func(s span) (span, bool) { return span{f(s.lo), f(s.hi)}, s.lo >= lo && s.hi <= hi }
}

func always(s span) func(span) (span, bool) { return func(span) (span, bool) { return s, true } }

func elementwise() []maker {
	inf := math.Inf(1)
	wide := func(s span) (span, bool) { return join(s, span{0, 0}), true }
	return []maker{
		unary(op.Neg{}, func(s span) (span, bool) { return span{-s.hi, -s.lo}, true }),
		unary(op.Abs{}, func(s span) (span, bool) { return span{0, s.size()}, true }),
		unary(op.Sign{}, always(span{-1, 1})),
		unary(op.Floor{}, rising(-inf, inf, math.Floor)),
		unary(op.Ceil{}, rising(-inf, inf, math.Ceil)),
		unary(op.Round{}, rising(-inf, inf, math.RoundToEven)),
		unary(op.Exp{}, rising(-inf, 4, math.Exp)),
		unary(op.Sin{}, always(span{-1, 1})),
		unary(op.Cos{}, always(span{-1, 1})),
		unary(op.Atan{}, always(span{-2, 2})),
		unary(op.Tanh{}, always(span{-1, 1})),
		unary(op.Erf{}, always(span{-1, 1})),
		unary(op.Sigmoid{}, always(span{0, 1})),
		unary(op.Relu{}, rising(-inf, inf, func(x float64) float64 { return max(x, 0) })),
		unary(op.Softplus{}, func(s span) (span, bool) { return span{0, max(s.hi, 0) + 1}, true }),
		unary(op.Gelu{}, func(s span) (span, bool) { return span{-1, max(s.hi, 0)}, true }),
		unary(op.Gelu{Tanh: true}, func(s span) (span, bool) { return span{-1, max(s.hi, 0)}, true }),
		unary(op.Swish{Alpha: 1}, func(s span) (span, bool) { return span{-1, max(s.hi, 0)}, true }),
		unary(op.Swish{Alpha: 1.702}, func(s span) (span, bool) { return span{-1, max(s.hi, 0)}, true }),
		unary(op.LeakyRelu{Alpha: 0.25}, wide),
		unary(op.Clip{Min: -0.5, Max: 0.75}, always(span{-0.5, 0.75})),
		// functions that want positive operands
		positive(op.Log{}, 0.5, math.Log), positive(op.Sqrt{}, 0.25, math.Sqrt),
		positive(op.Rsqrt{}, 0.5, func(x float64) float64 { return 1 / math.Sqrt(x) }),
		positive(op.Reciprocal{}, 0.5, func(x float64) float64 { return 1 / x }),
		binary(op.Add{}, func(a, b span) span { return span{a.lo + b.lo, a.hi + b.hi} }),
		binary(op.Sub{}, func(a, b span) span { return span{a.lo - b.hi, a.hi - b.lo} }),
		binary(op.Mul{}, func(a, b span) span { return around(a.size() * b.size()) }),
		binary(op.Max{}, join), binary(op.Min{}, join),
		divide, power, modulo, whereMaker, compare, logic, bits, cast, question,
	}
}

// positive makes |x|+least first, which no function of these refuses.
func positive(o ir.Op, least float64, f func(float64) float64) maker {
	return func(g *generator) {
		x := g.float(0)
		if x == nil {
			return
		}
		hi := g.span(x).size() + least
		if x = g.above(x, least); x != nil {
			g.add(o, join(span{f(hi), f(hi)}, span{f(least), f(least)}), x)
		}
	}
}

// above is |x| + least.
func (g *generator) above(x *ir.Value, least float64) *ir.Value {
	s := g.span(x)
	if s.lo >= least {
		return x
	}
	abs := g.add(op.Abs{}, span{0, s.size()}, x)
	if abs == nil {
		return nil
	}
	return g.add(op.Add{}, span{least, s.size() + least}, abs, g.b.Scalar(g.DType, least))
}

// partner finds an operand that broadcasts with x.
func (g *generator) partner(x *ir.Value) *ir.Value {
	y := g.pick(func(v *ir.Value) bool {
		if v.Type.DType != x.Type.DType {
			return false
		}
		s, err := ir.Broadcast(x.Type.Shape, v.Type.Shape)
		return err == nil && s.Elems() <= g.MaxElems
	})
	if y != nil && (y != x || g.rand.IntN(4) == 0) {
		return y
	}
	// One that is made to stretch: some extents of x become 1, some leading axes go.
	s := x.Type.Shape[g.rand.IntN(len(x.Type.Shape)+1):].Clone()
	for i := range s {
		if g.rand.IntN(3) == 0 {
			s[i] = 1
		}
	}
	return g.of(ir.Type{DType: x.Type.DType, Shape: s})
}

func binary(o ir.Op, f func(a, b span) span) maker {
	return func(g *generator) {
		x := g.pick(func(v *ir.Value) bool { return g.isFloat(v) || v.Type.DType == ir.I64 })
		y := g.partner(x)
		if g.rand.IntN(2) == 0 {
			x, y = y, x
		}
		g.add(o, f(g.span(x), g.span(y)), x, y)
	}
}

func divide(g *generator) {
	x := g.pick(func(v *ir.Value) bool { return g.isFloat(v) || v.Type.DType == ir.I64 })
	y := g.partner(x)
	if g.isFloat(x) {
		if y = g.above(y, 0.5); y != nil {
			g.add(op.Div{}, around(g.span(x).size()*2), x, y)
		}
		return
	}
	g.add(op.Div{}, around(g.span(x).size()), x, y) // by zero gives 0
}

func power(g *generator) {
	x := g.float(0)
	if g.span(x).size() > 3 {
		return
	}
	y := g.partner(x)
	if g.span(y).size() > 3 {
		return
	}
	if x = g.above(x, 0.5); x != nil {
		g.add(op.Pow{}, span{0, math.Pow(4, 3)}, x, y)
	}
}

func modulo(g *generator) {
	x := g.float(0)
	if y := g.above(g.partner(x), 0.5); y != nil {
		g.add(op.Mod{Fmod: true}, around(g.span(x).size()), x, y)
	}
}

func whereMaker(g *generator) {
	x := g.pick(func(v *ir.Value) bool { return g.isFloat(v) || v.Type.DType == ir.I64 })
	y := g.partner(x)
	s, err := ir.Broadcast(x.Type.Shape, y.Type.Shape)
	if err != nil || s.Elems() > g.MaxElems {
		return
	}
	cond := g.pick(func(v *ir.Value) bool {
		all, err := ir.Broadcast(s, v.Type.Shape)
		return v.Type.DType == ir.Bool && err == nil && all.Elems() <= g.MaxElems
	})
	if cond == nil {
		cond = g.of(ir.Type{DType: ir.Bool, Shape: s})
	}
	g.add(op.Where{}, join(g.span(x), g.span(y)), cond, x, y)
}

func compare(g *generator) {
	x := g.pick(func(v *ir.Value) bool { return g.isFloat(v) || v.Type.DType == ir.I64 })
	g.add([]ir.Op{op.Equal{}, op.Less{}, op.LessEqual{}}[g.rand.IntN(3)], span{0, 1}, x, g.partner(x))
}

func logic(g *generator) {
	x := g.pick(func(v *ir.Value) bool { return v.Type.DType == ir.Bool })
	if x == nil {
		return
	}
	if g.rand.IntN(4) == 0 {
		g.add(op.Not{}, span{0, 1}, x)
		return
	}
	g.add([]ir.Op{op.And{}, op.Or{}, op.Xor{}}[g.rand.IntN(3)], span{0, 1}, x, g.partner(x))
}

func bits(g *generator) {
	if x := g.pick(func(v *ir.Value) bool { return v.Type.DType == ir.I64 }); x != nil {
		y := g.partner(x)
		s := around(2 * max(g.span(x).size(), g.span(y).size(), 1))
		g.add(op.Bits{Fn: []string{"and", "or", "xor"}[g.rand.IntN(3)]}, s, x, y)
	}
}

func question(g *generator) {
	g.add([]ir.Op{op.IsNaN{}, op.IsInf{}}[g.rand.IntN(2)], span{0, 1}, g.float(0))
}

// cast leads from floats to integers and booleans and back. Integers narrower than i64 go straight back: few ops take them.
func cast(g *generator) {
	x := g.pick(func(*ir.Value) bool { return true })
	s := g.span(x)
	switch d := x.Type.DType; {
	case d == ir.I64 || d == ir.Bool:
		g.add(op.Cast{To: g.DType}, s, x)
	case s.size() < 100:
		to := []ir.DType{ir.I64, ir.Bool, ir.I32, ir.I8}[g.rand.IntN(4)]
		if to == ir.Bool {
			s = span{0, 1}
		}
		y := g.add(op.Cast{To: to}, join(s, span{0, 0}), x)
		if y != nil && (to == ir.I32 || to == ir.I8) {
			g.add(op.Cast{To: g.DType}, g.span(y), y)
		}
	}
}
