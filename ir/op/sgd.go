package op

import (
	"fmt"
	"math"

	"aitk/ir"
)

// SGD is PyTorch's stochastic gradient descent.
//
//	p [...], g like p, lr f32[], step i64[], ok bool[] -> p'
//	p [...], g like p, buf like p, lr f32[], step i64[], ok bool[] -> p', buf'    (Momentum != 0)
//
//	g += WeightDecay*p
//	buf = g at step 0, else Momentum*buf + (1-Dampening)*g
//	g = g + Momentum*buf with Nesterov, else buf
//	p -= lr*g
//
// Where ok is false every output equals its operand. It updates state: it runs exactly once a step and may write over p and buf.
// Nesterov needs Momentum != 0 and Dampening 0.
type SGD struct {
	Momentum, Dampening float64
	Nesterov            bool
	WeightDecay         float64
}

// Infer gives p's type, twice with momentum.
func (o SGD) Infer(in []ir.Type) ([]ir.Type, error) {
	names := []string{"p", "g", "buf", "lr", "step", "ok"}
	if o.Momentum == 0 {
		names = []string{"p", "g", "lr", "step", "ok"}
	}
	if err := inferUpdate(in, names...); err != nil {
		return nil, err
	}
	if o.Nesterov && (o.Momentum == 0 || o.Dampening != 0) {
		return nil, fmt.Errorf("nesterov needs momentum and no dampening, got momentum %v and dampening %v", o.Momentum, o.Dampening)
	}
	for _, h := range []hyper{{"momentum", o.Momentum, 0, math.MaxFloat64}, {"dampening", o.Dampening, -math.MaxFloat64, math.MaxFloat64}, {"weight decay", o.WeightDecay, 0, math.MaxFloat64}} {
		if err := h.check(); err != nil {
			return nil, err
		}
	}
	if o.Momentum == 0 {
		return []ir.Type{in[0]}, nil
	}
	return []ir.Type{in[0], in[0]}, nil
}

// NoGradReason says why gradients stop here.
func (SGD) NoGradReason() string { return noUpdateGrad }

const noUpdateGrad = "updates of parameters are not differentiated"

// hyper is a setting with its closed range.
type hyper struct {
	name        string
	x, min, max float64
}

func (h hyper) check() error {
	if h.x >= h.min && h.x <= h.max {
		return nil
	}
	return fmt.Errorf("%s must lie in [%v,%v], got %v", h.name, h.min, h.max, h.x)
}

// inferUpdate checks the operands of an optimizer: tensors like the first, then lr, step and ok.
func inferUpdate(in []ir.Type, names ...string) error {
	if err := wantOperands(in, names...); err != nil {
		return err
	}
	n := len(in) - 3
	for i := range n {
		if err := wantFloats(in, 0, i); err != nil {
			return err
		}
		if err := wantShape(in, i, names[i], in[0].Shape); err != nil {
			return err
		}
	}
	if err := wantScalar(in, n, "lr", ir.F32); err != nil {
		return err
	}
	if err := wantScalar(in, n+1, "step", ir.I64); err != nil {
		return err
	}
	return wantScalar(in, n+2, "ok", ir.Bool)
}
