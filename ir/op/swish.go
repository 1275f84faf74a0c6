package op

import (
	"errors"
	"math"

	"aitk/ir"
)

// Swish is x * sigmoid(Alpha*x); with Alpha 1 it is SiLU. It keeps shape and element type, may be written over its operand and lets NaN through.
// One op rather than a product, because its gradient needs x alone: apart, x and the sigmoid are both kept for the backward half.
//
// Ramachandran, Zoph and Le, "Searching for Activation Functions" (2017).
type Swish struct {
	over0
	transcendental
	Alpha float64
}

// SwishGrad (x, dy) is the gradient of Swish: dy * (s + Alpha*x*s*(1-s)) with s = sigmoid(Alpha*x).
type SwishGrad struct {
	over01
	firstOrder
	transcendental
	Alpha float64
}

// Infer gives x's type, which holds floats.
func (o Swish) Infer(in []ir.Type) ([]ir.Type, error) {
	if err := wantFinite("alpha", o.Alpha); err != nil {
		return nil, err
	}
	return inferFloats(in)
}

// Infer gives the type that x and dy share.
func (o SwishGrad) Infer(in []ir.Type) ([]ir.Type, error) {
	if err := wantFinite("alpha", o.Alpha); err != nil {
		return nil, err
	}
	return inferFloatPair(in)
}

func wantFinite(name string, x float64) error {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return errors.New(name + " must be finite")
	}
	return nil
}

func (o Swish) Eval(in, out []ir.Tensor) {
	each(in, out, func(x float64) float64 { return x * sigmoid(o.Alpha*x) }, nil)
}

func (o SwishGrad) Eval(in, out []ir.Tensor) {
	eachPair(in, out, func(x, dy float64) float64 {
		s := sigmoid(o.Alpha * x)
		return dy * (s + o.Alpha*x*s*(1-s))
	})
}

// Grad is SwishGrad.
func (o Swish) Grad(b *ir.Builder, n *ir.Node, dOut []*ir.Value) []*ir.Value {
	return []*ir.Value{b.Add(SwishGrad{Alpha: o.Alpha}, n.In[0], dOut[0])}
}

func (Swish) Samples() []ir.Sample {
	return append(append(unarySamples(Swish{Alpha: 1}, -4, 4, false), unarySamples(Swish{Alpha: 1.702}, -4, 4, false)...),
		bad(Swish{Alpha: math.Inf(1)}, "alpha must be finite", ir.T(ir.F32, 2)))
}

func (SwishGrad) Samples() []ir.Sample {
	return append(append(pairSamples(SwishGrad{Alpha: 1}, -4, 4), pairSamples(SwishGrad{Alpha: 1.702}, -4, 4)...),
		bad(SwishGrad{Alpha: math.NaN()}, "alpha must be finite", ir.T(ir.F32, 2), ir.T(ir.F32, 2)))
}
