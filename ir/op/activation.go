package op

import (
	"errors"
	"math"

	"aitk/ir"
)

// The element-wise activation functions. All keep shape and element type, may write over their operand and let NaN through.
type (
	// Tanh is the hyperbolic tangent. The gradient is computed from the output.
	Tanh struct {
		over0
		transcendental
	}
	// Erf is the error function 2/sqrt(pi) * integral of exp(-t*t) from 0 to x.
	Erf struct {
		over0
		transcendental
	}
	// Sigmoid is 1/(1+exp(-x)). The gradient is computed from the output.
	Sigmoid struct {
		over0
		transcendental
	}
	// Relu is x where x is above 0, else 0; integers too. The gradient is computed from the output and is 0 at 0.
	Relu struct{ over0 }
	// Softplus is log(1+exp(x)), computed as max(x,0) + log1p(exp(-|x|)).
	Softplus struct {
		over0
		transcendental
	}
	// Gelu is x times the normal distribution function: x/2 * (1+erf(x/sqrt(2))).
	// With Tanh it is the approximation x/2 * (1+tanh(sqrt(2/pi) * (x+0.044715*x*x*x))).
	Gelu struct {
		over0
		transcendental
		Tanh bool
	}
	// LeakyRelu is x where x is above 0, else Alpha*x. The gradient at 0 is Alpha.
	LeakyRelu struct {
		over0
		Alpha float64
	}
	// Clip is min(max(x, Min), Max); infinite bounds are legal, and for integers the bounds are cut to what the type holds.
	// The gradient is 1 between the bounds and on them, 0 outside.
	Clip struct {
		over0
		Min, Max float64
	}
)

// The gradients that are one op because a kernel of one pass over memory serves them. Both operands have one type; the result has it too.
type (
	// ReluGrad (y, dy) is the gradient of Relu: 0 where y <= 0, else dy.
	ReluGrad struct {
		over01
		firstOrder
	}
	// TanhGrad (y, dy) is the gradient of Tanh: dy * (1-y*y).
	TanhGrad struct {
		over01
		firstOrder
	}
	// ErfGrad (x, dy) is the gradient of Erf: dy * 2/sqrt(pi) * exp(-x*x).
	ErfGrad struct {
		over01
		firstOrder
		transcendental
	}
	// SigmoidGrad (y, dy) is the gradient of Sigmoid: dy * y * (1-y).
	SigmoidGrad struct {
		over01
		firstOrder
	}
	// GeluGrad (x, dy) is the gradient of Gelu, which is computed from its operand.
	GeluGrad struct {
		over01
		firstOrder
		transcendental
		Tanh bool
	}
)

func (Tanh) Infer(in []ir.Type) ([]ir.Type, error)      { return inferFloats(in) }
func (Erf) Infer(in []ir.Type) ([]ir.Type, error)       { return inferFloats(in) }
func (Sigmoid) Infer(in []ir.Type) ([]ir.Type, error)   { return inferFloats(in) }
func (Relu) Infer(in []ir.Type) ([]ir.Type, error)      { return inferNumbers(in) }
func (Softplus) Infer(in []ir.Type) ([]ir.Type, error)  { return inferFloats(in) }
func (Gelu) Infer(in []ir.Type) ([]ir.Type, error)      { return inferFloats(in) }
func (LeakyRelu) Infer(in []ir.Type) ([]ir.Type, error) { return inferFloats(in) }

func (o Clip) Infer(in []ir.Type) ([]ir.Type, error) {
	if math.IsNaN(o.Min) || math.IsNaN(o.Max) {
		return nil, errors.New("a bound is NaN")
	}
	return inferNumbers(in)
}

func (ReluGrad) Infer(in []ir.Type) ([]ir.Type, error)    { return inferFloatPair(in) }
func (TanhGrad) Infer(in []ir.Type) ([]ir.Type, error)    { return inferFloatPair(in) }
func (ErfGrad) Infer(in []ir.Type) ([]ir.Type, error)     { return inferFloatPair(in) }
func (SigmoidGrad) Infer(in []ir.Type) ([]ir.Type, error) { return inferFloatPair(in) }
func (GeluGrad) Infer(in []ir.Type) ([]ir.Type, error)    { return inferFloatPair(in) }

// inferFloatPair keeps the type that both operands share, which holds floats.
func inferFloatPair(in []ir.Type) ([]ir.Type, error) {
	if err := operands(in, 2); err != nil {
		return nil, err
	}
	if err := wantFloat(in, 0); err != nil {
		return nil, err
	}
	if err := wantSameType(in, 0, 1); err != nil {
		return nil, err
	}
	return one(in[0].DType, in[0].Shape), nil
}

func (Tanh) Eval(in, out []ir.Tensor)     { each(in, out, math.Tanh, nil) }
func (Erf) Eval(in, out []ir.Tensor)      { each(in, out, math.Erf, nil) }
func (Sigmoid) Eval(in, out []ir.Tensor)  { each(in, out, sigmoid, nil) }
func (Softplus) Eval(in, out []ir.Tensor) { each(in, out, softplus, nil) }

func (Relu) Eval(in, out []ir.Tensor) {
	each(in, out, func(x float64) float64 {
		if x <= 0 { // false for NaN, which stays
			return 0
		}
		return x
	}, func(x int64) int64 { return max(x, 0) })
}

func (o Gelu) Eval(in, out []ir.Tensor) {
	each(in, out, func(x float64) float64 {
		if o.Tanh {
			return x / 2 * (1 + math.Tanh(geluInner(x)))
		}
		return x / 2 * (1 + math.Erf(x/math.Sqrt2))
	}, nil)
}

func (o LeakyRelu) Eval(in, out []ir.Tensor) {
	each(in, out, func(x float64) float64 {
		if x <= 0 {
			return o.Alpha * x
		}
		return x
	}, nil)
}

func (o Clip) Eval(in, out []ir.Tensor) {
	lo, hi := o.IntBounds(in[0].Type.DType)
	each(in, out, func(x float64) float64 {
		return min(max(x, o.Min), o.Max)
	}, func(x int64) int64 {
		return min(max(x, lo), hi)
	})
}

// IntBounds are the bounds that integers of type d are clipped to. Fractions move inward.
func (o Clip) IntBounds(d ir.DType) (lo, hi int64) {
	return clampInt(d, math.Ceil(o.Min)), clampInt(d, math.Floor(o.Max))
}

func sigmoid(x float64) float64 { return 1 / (1 + math.Exp(-x)) }

func softplus(x float64) float64 { return math.Max(x, 0) + math.Log1p(math.Exp(-math.Abs(x))) }

// geluInner is the argument of the tanh in the approximation of Gelu.
func geluInner(x float64) float64 { return math.Sqrt(2/math.Pi) * (x + 0.044715*x*x*x) }

// geluSlope is the derivative of Gelu.
func geluSlope(x float64, approximate bool) float64 {
	if approximate {
		t := math.Tanh(geluInner(x))
		return (1+t)/2 + x/2*(1-t*t)*math.Sqrt(2/math.Pi)*(1+3*0.044715*x*x)
	}
	return (1+math.Erf(x/math.Sqrt2))/2 + x*math.Exp(-x*x/2)/math.Sqrt(2*math.Pi)
}

// eachPair applies f to two operands of one shape.
func eachPair(in, out []ir.Tensor, f func(x, dy float64) float64) {
	for i, x := range in[0].F {
		out[0].F[i] = f(x, in[1].F[i])
	}
}

func (ReluGrad) Eval(in, out []ir.Tensor) {
	eachPair(in, out, func(y, dy float64) float64 {
		if y <= 0 {
			return 0
		}
		return dy
	})
}

func (TanhGrad) Eval(in, out []ir.Tensor) {
	eachPair(in, out, func(y, dy float64) float64 { return dy * (1 - y*y) })
}

func (ErfGrad) Eval(in, out []ir.Tensor) {
	eachPair(in, out, func(x, dy float64) float64 { return dy * 2 / math.Sqrt(math.Pi) * math.Exp(-x*x) })
}

func (SigmoidGrad) Eval(in, out []ir.Tensor) {
	eachPair(in, out, func(y, dy float64) float64 { return dy * y * (1 - y) })
}

func (o GeluGrad) Eval(in, out []ir.Tensor) {
	eachPair(in, out, func(x, dy float64) float64 { return dy * geluSlope(x, o.Tanh) })
}

func (Tanh) Grad(b *ir.Builder, n *ir.Node, dOut []*ir.Value) []*ir.Value {
	return []*ir.Value{b.Add(TanhGrad{}, n.Out[0], dOut[0])}
}

func (Erf) Grad(b *ir.Builder, n *ir.Node, dOut []*ir.Value) []*ir.Value {
	return []*ir.Value{b.Add(ErfGrad{}, n.In[0], dOut[0])}
}

func (Sigmoid) Grad(b *ir.Builder, n *ir.Node, dOut []*ir.Value) []*ir.Value {
	return []*ir.Value{b.Add(SigmoidGrad{}, n.Out[0], dOut[0])}
}

func (Relu) Grad(b *ir.Builder, n *ir.Node, dOut []*ir.Value) []*ir.Value {
	if !differentiable(n) {
		return none(1)
	}
	return []*ir.Value{b.Add(ReluGrad{}, n.Out[0], dOut[0])}
}

func (Softplus) Grad(b *ir.Builder, n *ir.Node, dOut []*ir.Value) []*ir.Value {
	return []*ir.Value{b.Add(Mul{}, dOut[0], b.Add(Sigmoid{}, n.In[0]))}
}

func (o Gelu) Grad(b *ir.Builder, n *ir.Node, dOut []*ir.Value) []*ir.Value {
	return []*ir.Value{b.Add(GeluGrad{Tanh: o.Tanh}, n.In[0], dOut[0])}
}

func (o LeakyRelu) Grad(b *ir.Builder, n *ir.Node, dOut []*ir.Value) []*ir.Value {
	dy := dOut[0]
	positive := b.Add(Less{}, b.Scalar(dy.Type.DType, 0), n.In[0])
	return []*ir.Value{b.Add(Where{}, positive, dy, scale(b, dy, o.Alpha))}
}

func (o Clip) Grad(b *ir.Builder, n *ir.Node, dOut []*ir.Value) []*ir.Value {
	if !differentiable(n) {
		return none(1)
	}
	x, dy := n.In[0], dOut[0]
	d := dy.Type.DType
	inside := b.Add(And{}, b.Add(LessEqual{}, b.Scalar(d, o.Min), x), b.Add(LessEqual{}, x, b.Scalar(d, o.Max)))
	return []*ir.Value{b.Add(Where{}, inside, dy, b.Scalar(d, 0))}
}

func (o Tanh) Samples() []ir.Sample     { return unarySamples(o, -2, 2, false) }
func (o Erf) Samples() []ir.Sample      { return unarySamples(o, -2, 2, false) }
func (o Sigmoid) Samples() []ir.Sample  { return unarySamples(o, -4, 4, false) }
func (o Softplus) Samples() []ir.Sample { return unarySamples(o, -4, 4, false) }
func (o Relu) Samples() []ir.Sample     { return unarySamples(o, -2, 2, true) }

func (Gelu) Samples() []ir.Sample {
	return append(unarySamples(Gelu{}, -3, 3, false), unarySamples(Gelu{Tanh: true}, -3, 3, false)...)
}

func (LeakyRelu) Samples() []ir.Sample {
	return append(unarySamples(LeakyRelu{Alpha: 0.125}, -2, 2, false), unarySamples(LeakyRelu{Alpha: -1}, -2, 2, false)...)
}

func (Clip) Samples() []ir.Sample {
	list := unarySamples(Clip{Min: -0.5, Max: 1}, -2, 2, true)
	for _, o := range []Clip{{Min: math.Inf(-1), Max: 0}, {Min: -2.5, Max: math.Inf(1)}, {Min: 1, Max: -1}} {
		list = append(list, good(o, ramp(ir.F32, 0, -2, 2, 9)), good(o, ramp(ir.I64, 0, -9, 9, 9)), good(o, ramp(ir.U8, 0, 0, 9, 9)))
	}
	return append(list,
		kinked(Clip{Min: -0.5, Max: 1}, listed(ir.F32, -0.5, 1)),
		bad(Clip{Min: math.NaN(), Max: 1}, "a bound is NaN", ir.T(ir.F32, 2)),
		bad(Clip{Max: math.NaN()}, "a bound is NaN", ir.T(ir.F32, 2)))
}

// pairSamples are samples of a function of two operands of one type.
func pairSamples(o ir.Op, lo, hi float64) []ir.Sample {
	list := badOperands(o, ir.T(ir.F32, 2), ir.T(ir.F32, 2))
	for _, d := range []ir.DType{ir.F32, ir.F64, ir.F16, ir.BF16} {
		for _, s := range []ir.Shape{{}, {5}, {2, 3, 4}, {3, 0}} {
			list = append(list, good(o, ramp(d, 0, lo, hi, s...), ramp(d, 1, -1, 1, s...)))
		}
	}
	return append(list,
		kinked(o, special(ir.F32), ramp(ir.F32, 1, 1, 2, 16)),
		bad(o, "operand 0 is i64, want floats", ir.T(ir.I64, 2), ir.T(ir.I64, 2)),
		bad(o, "want one element type", ir.T(ir.F32, 2), ir.T(ir.F64, 2)),
		bad(o, "want one shape", ir.T(ir.F32, 2), ir.T(ir.F32, 1)))
}

func (o ReluGrad) Samples() []ir.Sample    { return pairSamples(o, -1, 1) }
func (o TanhGrad) Samples() []ir.Sample    { return pairSamples(o, -1, 1) }
func (o ErfGrad) Samples() []ir.Sample     { return pairSamples(o, -2, 2) }
func (o SigmoidGrad) Samples() []ir.Sample { return pairSamples(o, 0, 1) }

func (GeluGrad) Samples() []ir.Sample {
	return append(pairSamples(GeluGrad{}, -3, 3), pairSamples(GeluGrad{Tanh: true}, -3, 3)...)
}
