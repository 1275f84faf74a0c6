package op

import (
	"math"

	"aitk/ir"
)

// The element-wise functions of one operand. All keep shape and element type, may write over their operand and let NaN through.
type (
	// Neg is -x. Integers wrap.
	Neg struct{ over0 }
	// Abs is |x|. Integers wrap at the least one. The gradient at 0 is 0.
	Abs struct{ over0 }
	// Sign is -1, 0 or 1 by the sign of x. Both zeros give 0.
	Sign struct {
		over0
		piecewiseConstant
	}
	// Floor is the greatest whole number not above x.
	Floor struct {
		over0
		piecewiseConstant
	}
	// Ceil is the least whole number not below x.
	Ceil struct {
		over0
		piecewiseConstant
	}
	// Round is the nearest whole number, halves to even.
	Round struct {
		over0
		piecewiseConstant
	}
	// Exp is e to the power x. The gradient is computed from the output.
	Exp struct {
		over0
		transcendental
	}
	// Log is the natural logarithm of x: NaN below 0, -Inf at 0.
	Log struct {
		over0
		transcendental
	}
	// Sqrt is the square root of x: NaN below 0. The gradient is computed from the output; at 0 it is dy/0, as in PyTorch.
	Sqrt struct{ over0 }
	// Rsqrt is 1/sqrt(x). The gradient is computed from the output.
	Rsqrt struct{ over0 }
	// Reciprocal is 1/x. The gradient is computed from the output.
	Reciprocal struct{ over0 }
	// Sin is the sine of x in radians.
	Sin struct {
		over0
		transcendental
	}
	// Atan is the angle between -pi/2 and pi/2 whose tangent is x. The other inverse functions of angles are made from it.
	Atan struct {
		over0
		transcendental
	}
	// Cos is the cosine of x in radians.
	Cos struct {
		over0
		transcendental
	}
)

// inferFloats keeps the type of the one operand, which holds floats.
func inferFloats(in []ir.Type) ([]ir.Type, error) {
	if err := operands(in, 1); err != nil {
		return nil, err
	}
	if err := wantFloat(in, 0); err != nil {
		return nil, err
	}
	return one(in[0].DType, in[0].Shape), nil
}

// inferNumbers keeps the type of the one operand, which holds floats or integers.
func inferNumbers(in []ir.Type) ([]ir.Type, error) {
	if err := operands(in, 1); err != nil {
		return nil, err
	}
	if err := wantNumber(in, 0); err != nil {
		return nil, err
	}
	return one(in[0].DType, in[0].Shape), nil
}

// Infer keeps the operand's type.

func (Neg) Infer(in []ir.Type) ([]ir.Type, error)        { return inferNumbers(in) }
func (Abs) Infer(in []ir.Type) ([]ir.Type, error)        { return inferNumbers(in) }
func (Sign) Infer(in []ir.Type) ([]ir.Type, error)       { return inferNumbers(in) }
func (Floor) Infer(in []ir.Type) ([]ir.Type, error)      { return inferFloats(in) }
func (Ceil) Infer(in []ir.Type) ([]ir.Type, error)       { return inferFloats(in) }
func (Round) Infer(in []ir.Type) ([]ir.Type, error)      { return inferFloats(in) }
func (Exp) Infer(in []ir.Type) ([]ir.Type, error)        { return inferFloats(in) }
func (Log) Infer(in []ir.Type) ([]ir.Type, error)        { return inferFloats(in) }
func (Sqrt) Infer(in []ir.Type) ([]ir.Type, error)       { return inferFloats(in) }
func (Rsqrt) Infer(in []ir.Type) ([]ir.Type, error)      { return inferFloats(in) }
func (Reciprocal) Infer(in []ir.Type) ([]ir.Type, error) { return inferFloats(in) }
func (Sin) Infer(in []ir.Type) ([]ir.Type, error)        { return inferFloats(in) }
func (Atan) Infer(in []ir.Type) ([]ir.Type, error)       { return inferFloats(in) }
func (Cos) Infer(in []ir.Type) ([]ir.Type, error)        { return inferFloats(in) }

// each applies f to floats or g to integers; g is nil where the op has no integers.
func each(in, out []ir.Tensor, f func(float64) float64, g func(int64) int64) {
	for i, x := range in[0].F {
		out[0].F[i] = f(x)
	}
	for i, x := range in[0].I {
		out[0].I[i] = g(x)
	}
}

func sign(x float64) float64 {
	switch {
	case x > 0:
		return 1
	case x < 0:
		return -1
	case x == 0:
		return 0
	}
	return x
}

func signInt(x int64) int64 { return max(-1, min(x, 1)) }

func negInt(x int64) int64 { return -x }

func absInt(x int64) int64 { return max(x, -x) }

func (Neg) Eval(in, out []ir.Tensor) {
	each(in, out, func(x float64) float64 { return -x }, negInt)
}
func (Abs) Eval(in, out []ir.Tensor)   { each(in, out, math.Abs, absInt) }
func (Sign) Eval(in, out []ir.Tensor)  { each(in, out, sign, signInt) }
func (Floor) Eval(in, out []ir.Tensor) { each(in, out, math.Floor, nil) }
func (Ceil) Eval(in, out []ir.Tensor)  { each(in, out, math.Ceil, nil) }
func (Round) Eval(in, out []ir.Tensor) { each(in, out, math.RoundToEven, nil) }
func (Exp) Eval(in, out []ir.Tensor)   { each(in, out, math.Exp, nil) }
func (Log) Eval(in, out []ir.Tensor)   { each(in, out, math.Log, nil) }
func (Sqrt) Eval(in, out []ir.Tensor)  { each(in, out, math.Sqrt, nil) }
func (Rsqrt) Eval(in, out []ir.Tensor) {
	each(in, out, func(x float64) float64 { return 1 / math.Sqrt(x) }, nil)
}
func (Reciprocal) Eval(in, out []ir.Tensor) {
	each(in, out, func(x float64) float64 { return 1 / x }, nil)
}
func (Sin) Eval(in, out []ir.Tensor)  { each(in, out, math.Sin, nil) }
func (Atan) Eval(in, out []ir.Tensor) { each(in, out, math.Atan, nil) }
func (Cos) Eval(in, out []ir.Tensor)  { each(in, out, math.Cos, nil) }

func (Neg) Grad(b *ir.Builder, n *ir.Node, dOut []*ir.Value) []*ir.Value {
	if !differentiable(n) {
		return none(1)
	}
	return []*ir.Value{b.Add(Neg{}, dOut[0])}
}

func (Abs) Grad(b *ir.Builder, n *ir.Node, dOut []*ir.Value) []*ir.Value {
	if !differentiable(n) {
		return none(1)
	}
	return []*ir.Value{b.Add(Mul{}, dOut[0], b.Add(Sign{}, n.In[0]))}
}

func (Exp) Grad(b *ir.Builder, n *ir.Node, dOut []*ir.Value) []*ir.Value {
	return []*ir.Value{b.Add(Mul{}, dOut[0], n.Out[0])}
}

func (Log) Grad(b *ir.Builder, n *ir.Node, dOut []*ir.Value) []*ir.Value {
	return []*ir.Value{b.Add(Div{}, dOut[0], n.In[0])}
}

func (Sqrt) Grad(b *ir.Builder, n *ir.Node, dOut []*ir.Value) []*ir.Value {
	return []*ir.Value{b.Add(Div{}, scale(b, dOut[0], 0.5), n.Out[0])}
}

func (Rsqrt) Grad(b *ir.Builder, n *ir.Node, dOut []*ir.Value) []*ir.Value {
	y := n.Out[0]
	cube := b.Add(Mul{}, y, b.Add(Mul{}, y, y))
	return []*ir.Value{b.Add(Mul{}, scale(b, dOut[0], -0.5), cube)}
}

func (Reciprocal) Grad(b *ir.Builder, n *ir.Node, dOut []*ir.Value) []*ir.Value {
	y := n.Out[0]
	return []*ir.Value{b.Add(Neg{}, b.Add(Mul{}, dOut[0], b.Add(Mul{}, y, y)))}
}

func (Sin) Grad(b *ir.Builder, n *ir.Node, dOut []*ir.Value) []*ir.Value {
	return []*ir.Value{b.Add(Mul{}, dOut[0], b.Add(Cos{}, n.In[0]))}
}

func (Atan) Grad(b *ir.Builder, n *ir.Node, dOut []*ir.Value) []*ir.Value {
	x := n.In[0]
	unit := b.Scalar(x.Type.DType, 1)
	return []*ir.Value{b.Add(Div{}, dOut[0], b.Add(Add{}, b.Add(Mul{}, x, x), unit))}
}

func (Cos) Grad(b *ir.Builder, n *ir.Node, dOut []*ir.Value) []*ir.Value {
	return []*ir.Value{b.Add(Neg{}, b.Add(Mul{}, dOut[0], b.Add(Sin{}, n.In[0])))}
}

// differentiable tells whether a node that takes integers too was given floats.
func differentiable(n *ir.Node) bool { return n.Out[0].Type.DType.IsFloat() }

// unarySamples are samples of a function of one operand, smooth between lo and hi but at multiples of 1/64.
func unarySamples(o ir.Op, lo, hi float64, integers bool) []ir.Sample {
	list := []ir.Sample{
		good(o, ramp(ir.F32, 0, lo, hi)),
		good(o, ramp(ir.F32, 1, lo, hi, 7)),
		good(o, ramp(ir.F32, 2, lo, hi, 2, 3, 4)),
		good(o, ramp(ir.F32, 3, lo, hi, 0, 3)),
		good(o, ramp(ir.F64, 4, lo, hi, 5)),
		good(o, ramp(ir.F16, 5, lo, hi, 3, 3)),
		good(o, ramp(ir.BF16, 6, lo, hi, 1, 9)),
		kinked(o, special(ir.F32)),
		kinked(o, special(ir.BF16)),
	}
	list = append(list, badOperands(o, ir.T(ir.F32, 2))...)
	if integers {
		for _, d := range []ir.DType{ir.I64, ir.I32, ir.I8} {
			list = append(list, good(o, ramp(d, 7, -9, 9, 3, 5)))
		}
		list = append(list, good(o, listed(ir.I8, -128, -127, 0, 127)), good(o, listed(ir.U8, 0, 1, 200, 255)))
		return append(list, bad(o, "operand 0 is bool, want numbers", ir.T(ir.Bool, 2)))
	}
	return append(list, bad(o, "operand 0 is i64, want floats", ir.T(ir.I64, 2)))
}

func (o Neg) Samples() []ir.Sample        { return unarySamples(o, -2, 2, true) }
func (o Abs) Samples() []ir.Sample        { return unarySamples(o, -2, 2, true) }
func (o Sign) Samples() []ir.Sample       { return unarySamples(o, -2, 2, true) }
func (o Floor) Samples() []ir.Sample      { return unarySamples(o, -2, 2, false) }
func (o Ceil) Samples() []ir.Sample       { return unarySamples(o, -2, 2, false) }
func (o Round) Samples() []ir.Sample      { return unarySamples(o, -2, 2, false) }
func (o Exp) Samples() []ir.Sample        { return unarySamples(o, -2, 2, false) }
func (o Log) Samples() []ir.Sample        { return unarySamples(o, 0.5, 4, false) }
func (o Sqrt) Samples() []ir.Sample       { return unarySamples(o, 0.5, 4, false) }
func (o Rsqrt) Samples() []ir.Sample      { return unarySamples(o, 0.5, 4, false) }
func (o Reciprocal) Samples() []ir.Sample { return unarySamples(o, 0.5, 2, false) }
func (o Sin) Samples() []ir.Sample        { return unarySamples(o, -4, 4, false) }
func (o Atan) Samples() []ir.Sample       { return unarySamples(o, -4, 4, false) }
func (o Cos) Samples() []ir.Sample        { return unarySamples(o, -4, 4, false) }
