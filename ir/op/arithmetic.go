package op

import (
	"math"

	"aitk/ir"
)

// The arithmetic of two operands of one element type, floats or integers, which broadcast. Integers wrap. The gradient to a
// broadcast operand is summed over the axes along which it was stretched.
type (
	// Add is x + y.
	Add struct{ over01 }
	// Sub is x - y.
	Sub struct{ over01 }
	// Mul is x * y.
	Mul struct{ over01 }
	// Div is x / y. Integers: truncated, division by zero gives 0.
	Div struct{ over01 }
	// Pow is x to the power y, as C's pow. Integers: repeated products; a negative exponent gives 0 unless x is 1 or -1.
	// The gradient to y is taken where x is above 0 and is 0 elsewhere; the gradient to x is 0 where y is 0.
	Pow struct {
		over01
		transcendental
	}
	// Max is the greater one; NaN where either is. At ties each operand gets half of the gradient.
	Max struct{ over01 }
	// Min is the smaller one; NaN where either is. At ties each operand gets half of the gradient.
	Min struct{ over01 }
	// Mod is the remainder of x/y with the sign of y, or with Fmod that of C's fmod, with the sign of x. Integers: 0 where y is 0.
	// The gradient holds the quotient fixed: dy to x, minus the whole quotient times dy to y.
	Mod struct {
		over01
		Fmod bool
	}
)

// inferArithmetic broadcasts two operands of one element type.
func inferArithmetic(in []ir.Type) ([]ir.Type, error) {
	if err := operands(in, 2); err != nil {
		return nil, err
	}
	if err := wantNumber(in, 0); err != nil {
		return nil, err
	}
	if err := wantSame(in, 0, 1); err != nil {
		return nil, err
	}
	s, err := ir.Broadcast(in[0].Shape, in[1].Shape)
	return one(in[0].DType, s), err
}

func (Add) Infer(in []ir.Type) ([]ir.Type, error) { return inferArithmetic(in) }
func (Sub) Infer(in []ir.Type) ([]ir.Type, error) { return inferArithmetic(in) }
func (Mul) Infer(in []ir.Type) ([]ir.Type, error) { return inferArithmetic(in) }
func (Div) Infer(in []ir.Type) ([]ir.Type, error) { return inferArithmetic(in) }
func (Pow) Infer(in []ir.Type) ([]ir.Type, error) { return inferArithmetic(in) }
func (Max) Infer(in []ir.Type) ([]ir.Type, error) { return inferArithmetic(in) }
func (Min) Infer(in []ir.Type) ([]ir.Type, error) { return inferArithmetic(in) }
func (Mod) Infer(in []ir.Type) ([]ir.Type, error) { return inferArithmetic(in) }

// eachBroadcast applies f to floats or g to integers that broadcast to the result.
func eachBroadcast(in, out []ir.Tensor, f func(x, y float64) float64, g func(x, y int64) int64) {
	x, y, z := in[0], in[1], out[0]
	s := z.Type.Shape
	xs, ys := stretched(x.Type.Shape, s), stretched(y.Type.Shape, s)
	if z.Type.DType.IsFloat() {
		walk(s, func(i int64, at []int64) { z.F[i] = f(x.F[at[0]], y.F[at[1]]) }, xs, ys)
	} else {
		walk(s, func(i int64, at []int64) { z.I[i] = g(x.I[at[0]], y.I[at[1]]) }, xs, ys)
	}
}

func (Add) Eval(in, out []ir.Tensor) {
	eachBroadcast(in, out, func(x, y float64) float64 { return x + y }, func(x, y int64) int64 { return x + y })
}

func (Sub) Eval(in, out []ir.Tensor) {
	eachBroadcast(in, out, func(x, y float64) float64 { return x - y }, func(x, y int64) int64 { return x - y })
}

func (Mul) Eval(in, out []ir.Tensor) {
	eachBroadcast(in, out, func(x, y float64) float64 { return x * y }, func(x, y int64) int64 { return x * y })
}

func (Div) Eval(in, out []ir.Tensor) {
	eachBroadcast(in, out, func(x, y float64) float64 { return x / y }, divInt)
}

func (Pow) Eval(in, out []ir.Tensor) { eachBroadcast(in, out, math.Pow, powInt) }

func (Max) Eval(in, out []ir.Tensor) {
	eachBroadcast(in, out, greater, func(x, y int64) int64 { return max(x, y) })
}

func (Min) Eval(in, out []ir.Tensor) {
	eachBroadcast(in, out, smaller, func(x, y int64) int64 { return min(x, y) })
}

func (o Mod) Eval(in, out []ir.Tensor) {
	if o.Fmod {
		eachBroadcast(in, out, math.Mod, remInt)
		return
	}
	eachBroadcast(in, out, floorMod, modInt)
}

// greater and smaller are NaN where either is; math.Max prefers an infinity.
func greater(x, y float64) float64 { return max(x, y) }
func smaller(x, y float64) float64 { return min(x, y) }

func divInt(x, y int64) int64 {
	if y == 0 {
		return 0
	}
	return x / y
}

func powInt(x, y int64) int64 {
	if y < 0 {
		switch {
		case x == 1 || x == -1 && y%2 == 0:
			return 1
		case x == -1:
			return -1
		}
		return 0
	}
	p := int64(1)
	for ; y > 0; y >>= 1 {
		if y&1 == 1 {
			p *= x
		}
		x *= x
	}
	return p
}

func remInt(x, y int64) int64 {
	if y == 0 {
		return 0
	}
	return x % y
}

func modInt(x, y int64) int64 {
	r := remInt(x, y)
	if r != 0 && r < 0 != (y < 0) {
		r += y
	}
	return r
}

func floorMod(x, y float64) float64 {
	r := math.Mod(x, y)
	if r != 0 && r < 0 != (y < 0) {
		r += y
	}
	return r
}

// toOperands reduces the gradients to the two operands to their shapes.
func toOperands(b *ir.Builder, n *ir.Node, dx, dy *ir.Value) []*ir.Value {
	return []*ir.Value{sumTo(b, dx, n.In[0].Type.Shape), sumTo(b, dy, n.In[1].Type.Shape)}
}

func (Add) Grad(b *ir.Builder, n *ir.Node, dOut []*ir.Value) []*ir.Value {
	if !differentiable(n) {
		return none(2)
	}
	return toOperands(b, n, dOut[0], dOut[0])
}

func (Sub) Grad(b *ir.Builder, n *ir.Node, dOut []*ir.Value) []*ir.Value {
	if !differentiable(n) {
		return none(2)
	}
	dy := sumTo(b, dOut[0], n.In[1].Type.Shape) // the smaller tensor is negated
	return []*ir.Value{sumTo(b, dOut[0], n.In[0].Type.Shape), b.Add(Neg{}, dy)}
}

func (Mul) Grad(b *ir.Builder, n *ir.Node, dOut []*ir.Value) []*ir.Value {
	if !differentiable(n) {
		return none(2)
	}
	return toOperands(b, n, b.Add(Mul{}, dOut[0], n.In[1]), b.Add(Mul{}, dOut[0], n.In[0]))
}

func (Div) Grad(b *ir.Builder, n *ir.Node, dOut []*ir.Value) []*ir.Value {
	if !differentiable(n) {
		return none(2)
	}
	dx := b.Add(Div{}, dOut[0], n.In[1])
	dy := sumTo(b, b.Add(Mul{}, dx, n.Out[0]), n.In[1].Type.Shape)
	return []*ir.Value{sumTo(b, dx, n.In[0].Type.Shape), b.Add(Neg{}, dy)}
}

func (Pow) Grad(b *ir.Builder, n *ir.Node, dOut []*ir.Value) []*ir.Value {
	if !differentiable(n) {
		return none(2)
	}
	x, e, dz := n.In[0], n.In[1], dOut[0]
	d := dz.Type.DType
	zero, unit := b.Scalar(d, 0), b.Scalar(d, 1)
	slope := b.Add(Mul{}, e, b.Add(Pow{}, x, b.Add(Sub{}, e, unit)))
	slope = b.Add(Where{}, b.Add(Equal{}, e, zero), zero, slope) // 0 * 0 to the power -1 would be NaN
	rise := b.Add(Mul{}, n.Out[0], b.Add(Log{}, x))
	rise = b.Add(Where{}, b.Add(Less{}, zero, x), rise, zero)
	return toOperands(b, n, b.Add(Mul{}, dz, slope), b.Add(Mul{}, dz, rise))
}

func (Max) Grad(b *ir.Builder, n *ir.Node, dOut []*ir.Value) []*ir.Value {
	return gradExtremum(b, n, dOut[0], n.In[1], n.In[0])
}

func (Min) Grad(b *ir.Builder, n *ir.Node, dOut []*ir.Value) []*ir.Value {
	return gradExtremum(b, n, dOut[0], n.In[0], n.In[1])
}

// gradExtremum gives the gradient to operand 0 where less < more, to operand 1 where more < less, and half to each at ties.
func gradExtremum(b *ir.Builder, n *ir.Node, dz, less, more *ir.Value) []*ir.Value {
	if !differentiable(n) {
		return none(2)
	}
	zero := b.Scalar(dz.Type.DType, 0)
	tie := b.Add(Where{}, b.Add(Equal{}, less, more), scale(b, dz, 0.5), zero)
	dx := b.Add(Where{}, b.Add(Less{}, less, more), dz, tie)
	dy := b.Add(Where{}, b.Add(Less{}, more, less), dz, tie)
	return toOperands(b, n, dx, dy)
}

func (o Mod) Grad(b *ir.Builder, n *ir.Node, dOut []*ir.Value) []*ir.Value {
	if !differentiable(n) {
		return none(2)
	}
	x, y, dz := n.In[0], n.In[1], dOut[0]
	whole := b.Add(Round{}, b.Add(Div{}, b.Add(Sub{}, x, n.Out[0]), y)) // exact but for the rounding of the quotient
	return toOperands(b, n, dz, b.Add(Neg{}, b.Add(Mul{}, dz, whole)))
}

// broadcastShapes are pairs that broadcast, each way.
func broadcastShapes() [][2]ir.Shape {
	return [][2]ir.Shape{
		{{}, {}}, {{7}, {7}}, {{2, 3, 4}, {2, 3, 4}},
		{{2, 3}, {3}}, {{3}, {2, 3}}, {{2, 3}, {2, 1}}, {{2, 1}, {2, 3}}, {{}, {2, 2}}, {{2, 2}, {}},
		{{2, 1, 3}, {4, 1}}, {{4, 1}, {2, 1, 3}}, {{1, 1}, {3}}, {{0, 3}, {3}}, {{1}, {2, 0}}, {{2, 3, 4}, {1, 3, 1}},
	}
}

// arithmeticSamples are samples of a function of two numbers, x between xlo and xhi, y between ylo and yhi.
func arithmeticSamples(o ir.Op, xlo, xhi, ylo, yhi float64) []ir.Sample {
	list := badOperands(o, ir.T(ir.F32, 2), ir.T(ir.F32, 2))
	for _, s := range broadcastShapes() {
		list = append(list, good(o, ramp(ir.F32, 0, xlo, xhi, s[0]...), ramp(ir.F32, 1, ylo, yhi, s[1]...)))
	}
	for _, d := range []ir.DType{ir.F64, ir.F16, ir.BF16} {
		list = append(list,
			good(o, ramp(d, 2, xlo, xhi, 3, 4), ramp(d, 3, ylo, yhi, 3, 4)),
			good(o, ramp(d, 2, xlo, xhi, 3, 4), ramp(d, 3, ylo, yhi)),
			good(o, ramp(d, 2, xlo, xhi, 3, 4), ramp(d, 3, ylo, yhi, 4)))
	}
	for _, d := range []ir.DType{ir.I64, ir.I32, ir.I8, ir.U8} {
		list = append(list,
			good(o, ramp(d, 4, -9, 9, 4, 5), ramp(d, 5, -3, 5, 4, 5)),
			good(o, ramp(d, 4, -9, 9, 4, 5), ramp(d, 5, -3, 5, 4, 1)))
	}
	x := special(ir.F32)
	y := ir.Tensor{Type: ir.T(ir.F32, 16, 1), F: x.F}
	return append(list,
		kinked(o, x, y),
		good(o, listed(ir.I64, math.MinInt64, 7, -7, 0, 1<<62), listed(ir.I64, -1, 0, 2, 0, 4)),
		good(o, listed(ir.I8, -128, 127, 100), listed(ir.I8, -1, 127, 2)),
		bad(o, "operand 0 is bool, want numbers", ir.T(ir.Bool, 2), ir.T(ir.Bool, 2)),
		bad(o, "want one element type", ir.T(ir.F32, 2), ir.T(ir.F64, 2)),
		bad(o, "do not broadcast", ir.T(ir.F32, 2), ir.T(ir.F32, 3)))
}

func (o Add) Samples() []ir.Sample { return arithmeticSamples(o, -2, 2, -2, 2) }
func (o Sub) Samples() []ir.Sample { return arithmeticSamples(o, -2, 2, -2, 2) }
func (o Mul) Samples() []ir.Sample { return arithmeticSamples(o, -2, 2, -2, 2) }
func (o Div) Samples() []ir.Sample { return arithmeticSamples(o, -2, 2, 0.5, 2) }

func (o Pow) Samples() []ir.Sample {
	return append(arithmeticSamples(o, 0.5, 2, -2, 2),
		ir.Sample{Op: o, In: []ir.Tensor{ramp(ir.F32, 0, -2, 2, 6), listed(ir.F32, 2)}, NoDiff: []int{1}},
		ir.Sample{Op: o, In: []ir.Tensor{listed(ir.F64, 0, 0, -1.5, -1.5, 2), listed(ir.F64, 0, 2, 3, 2, 0)}, NoDiff: []int{1}})
}

// The operands of Max and Min never meet: one holds odd multiples of 1/128, the other odd multiples of 1/256.
func (o Max) Samples() []ir.Sample { return extremumSamples(o) }
func (o Min) Samples() []ir.Sample { return extremumSamples(o) }

func extremumSamples(o ir.Op) []ir.Sample {
	list := arithmeticSamples(o, -1, 1, -1, 1)
	for _, s := range list {
		if len(s.In) == 2 && s.In[1].F != nil && s.NoDiff == nil {
			for i := range s.In[1].F {
				s.In[1].F[i] += 1.0 / 256
			}
			s.In[1].Round()
		}
	}
	return append(list, kinked(o, listed(ir.F32, 1, 2, 3), listed(ir.F32, 1, 3, 2)))
}

func (Mod) Samples() []ir.Sample {
	list := append(arithmeticSamples(Mod{}, -2, 2, 2.5, 3), arithmeticSamples(Mod{Fmod: true}, -2, 2, 2.5, 3)...)
	for _, o := range []Mod{{}, {Fmod: true}} {
		list = append(list,
			good(o, ramp(ir.F64, 0, -40, 40, 11), ramp(ir.F64, 1, 2.5, 3)),
			good(o, ramp(ir.F64, 0, -40, 40, 11), ramp(ir.F64, 1, -3, -2.5)))
	}
	return list
}
