package op

import "aitk/ir"

// Softmax is exp(x - max) / sum(exp(x - max)) along Axis (0 <= Axis < rank).
//
//	x [...] -> like x
//
// Exponentials are summed in index order. A row of -inf alone gives NaN, as in PyTorch.
type Softmax struct{ Axis int64 }

// Infer gives x's type.
func (o Softmax) Infer(in []ir.Type) ([]ir.Type, error) { return inferAlong(in, o.Axis, "x") }

// SoftmaxGrad is the gradient of Softmax from its output: y * (dy - sum(y*dy)) along Axis.
//
//	y [...], dy like y -> dx like y
type SoftmaxGrad struct{ Axis int64 }

// Infer gives y's type.
func (o SoftmaxGrad) Infer(in []ir.Type) ([]ir.Type, error) { return inferAlong(in, o.Axis, "y", "dy") }

// LogSoftmax is x - max - log(sum(exp(x - max))) along Axis (0 <= Axis < rank).
//
//	x [...] -> like x
type LogSoftmax struct{ Axis int64 }

// Infer gives x's type.
func (o LogSoftmax) Infer(in []ir.Type) ([]ir.Type, error) { return inferAlong(in, o.Axis, "x") }

// LogSoftmaxGrad is the gradient of LogSoftmax from its output: dy - exp(y) * sum(dy) along Axis.
//
//	y [...], dy like y -> dx like y
type LogSoftmaxGrad struct{ Axis int64 }

// Infer gives y's type.
func (o LogSoftmaxGrad) Infer(in []ir.Type) ([]ir.Type, error) {
	return inferAlong(in, o.Axis, "y", "dy")
}

// inferAlong is the shape rule of ops that keep the type of their operands, which are all alike, and work along one axis.
func inferAlong(in []ir.Type, axis int64, names ...string) ([]ir.Type, error) {
	if err := wantOperands(in, names...); err != nil {
		return nil, err
	}
	for i, name := range names {
		if err := wantFloats(in, 0, i); err != nil {
			return nil, err
		}
		if err := wantShape(in, i, name, in[0].Shape); err != nil {
			return nil, err
		}
	}
	if err := wantAxis(axis, len(in[0].Shape)); err != nil {
		return nil, err
	}
	return []ir.Type{in[0]}, nil
}

// NoGradReason says why gradients stop here.
func (SoftmaxGrad) NoGradReason() string { return noSecond }

// NoGradReason says why gradients stop here.
func (LogSoftmaxGrad) NoGradReason() string { return noSecond }
