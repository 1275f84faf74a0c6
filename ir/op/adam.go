package op

import (
	"math"

	"aitk/ir"
)

// Adam is PyTorch's Adam and, with Decoupled, AdamW.
//
//	p [...], g, m, v like p, lr f32[], step i64[], ok bool[] -> p', m', v'
//
//	Decoupled: p *= 1 - lr*WeightDecay; else: g += WeightDecay*p
//	m = Beta1*m + (1-Beta1)*g
//	v = Beta2*v + (1-Beta2)*g*g
//	p -= lr/(1-Beta1^t) * m / (sqrt(v)/sqrt(1-Beta2^t) + Eps)        t = step + 1
//
// Where ok is false every output equals its operand. It updates state: it runs exactly once a step and may write over p, m and v.
type Adam struct {
	Beta1, Beta2, Eps float64
	WeightDecay       float64
	Decoupled         bool
}

// Infer gives p's type three times.
func (o Adam) Infer(in []ir.Type) ([]ir.Type, error) {
	if err := inferUpdate(in, "p", "g", "m", "v", "lr", "step", "ok"); err != nil {
		return nil, err
	}
	below1 := math.Nextafter(1, 0)
	for _, h := range []hyper{{"beta1", o.Beta1, 0, below1}, {"beta2", o.Beta2, 0, below1}, {"eps", o.Eps, 0, math.MaxFloat64}, {"weight decay", o.WeightDecay, 0, math.MaxFloat64}} {
		if err := h.check(); err != nil {
			return nil, err
		}
	}
	return []ir.Type{in[0], in[0], in[0]}, nil
}

// NoGradReason says why gradients stop here.
func (Adam) NoGradReason() string { return noUpdateGrad }
