package op

import (
	"errors"
	"math"

	"aitk/ir"
)

// The element-wise activation functions. All keep shape and element type, may write over their operand and let NaN through.
type (
	// Tanh is the hyperbolic tangent. The gradient is computed from the output.
	Tanh struct{ over0 }
	// Erf is the error function 2/sqrt(pi) * integral of exp(-t*t) from 0 to x.
	Erf struct{ over0 }
	// Sigmoid is 1/(1+exp(-x)). The gradient is computed from the output.
	Sigmoid struct{ over0 }
	// Relu is x where x is above 0, else 0; integers too. The gradient is computed from the output and is 0 at 0.
	Relu struct{ over0 }
	// Softplus is log(1+exp(x)), computed as max(x,0) + log1p(exp(-|x|)).
	Softplus struct{ over0 }
	// Gelu is x times the normal distribution function: x/2 * (1+erf(x/sqrt(2))).
	// With Tanh it is the approximation x/2 * (1+tanh(sqrt(2/pi) * (x+0.044715*x*x*x))).
	Gelu struct {
		over0
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
	// SigmoidGrad (y, dy) is the gradient of Sigmoid: dy * y * (1-y).
	SigmoidGrad struct {
		over01
		firstOrder
	}
	// GeluGrad (x, dy) is the gradient of Gelu, which is computed from its operand.
	GeluGrad struct {
		over01
		firstOrder
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
