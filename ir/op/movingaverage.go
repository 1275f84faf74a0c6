package op

import (
	"fmt"

	"aitk/ir"
)

// MovingAverage is Momentum*running + (1-Momentum)*batch: ONNX's rule, in which Momentum weighs the old value.
//
//	running [...], batch like running -> like running
//
// It updates state: it runs exactly once a step and may write over running.
type MovingAverage struct{ Momentum float64 }

// Infer gives running's type.
func (o MovingAverage) Infer(in []ir.Type) ([]ir.Type, error) {
	if err := wantOperands(in, "running", "batch"); err != nil {
		return nil, err
	}
	if err := wantFloats(in, 0, 1); err != nil {
		return nil, err
	}
	if err := wantShape(in, 1, "batch", in[0].Shape); err != nil {
		return nil, err
	}
	if !(o.Momentum >= 0 && o.Momentum <= 1) {
		return nil, fmt.Errorf("momentum must lie in [0,1], got %v", o.Momentum)
	}
	return []ir.Type{in[0]}, nil
}

// NoGradReason says why gradients stop here.
func (MovingAverage) NoGradReason() string { return "running statistics are state" }
