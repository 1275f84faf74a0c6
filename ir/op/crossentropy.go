package op

import (
	"fmt"

	"aitk/ir"
)

// SoftmaxCrossEntropy is the cross-entropy of softmax(logits) against class labels.
//
//	logits [..., classes at Axis, ...], target i64 or i32 without that axis -> scalar of logits' dtype
//
// A label's loss is -(1-s)*logp[label] - s/classes*sum(logp) with logp the log-softmax and s = LabelSmoothing in [0,1]. With HasIgnore,
// labels equal to IgnoreIndex are left out. Reduction "mean" divides the sum by the number of labels kept, "sum" does not. The mean over
// no label at all (everything ignored, or an empty batch) is NaN, as in PyTorch; the sum is 0. Any other label outside [0, classes) is an
// error of the data, which devices report. Losses are summed in row-major order of target.
type SoftmaxCrossEntropy struct {
	Axis           int64
	LabelSmoothing float64
	IgnoreIndex    int64
	HasIgnore      bool
	Reduction      string // "mean" | "sum"
}

// Infer gives a scalar of logits' dtype.
func (o SoftmaxCrossEntropy) Infer(in []ir.Type) ([]ir.Type, error) {
	if err := wantOperands(in, "logits", "target"); err != nil {
		return nil, err
	}
	if err := o.check(in); err != nil {
		return nil, err
	}
	return []ir.Type{ir.T(in[0].DType)}, nil
}

func (o SoftmaxCrossEntropy) check(in []ir.Type) error {
	if err := wantFloats(in, 0); err != nil {
		return err
	}
	x := in[0].Shape
	if err := wantAxis(o.Axis, len(x)); err != nil {
		return err
	}
	if d := in[1].DType; d != ir.I64 && d != ir.I32 {
		return fmt.Errorf("target must hold class labels of dtype i64 or i32, got %v", in[1])
	}
	want := append(x[:o.Axis].Clone(), x[o.Axis+1:]...)
	if err := wantShape(in, 1, "target", want); err != nil {
		return err
	}
	if x[o.Axis] == 0 {
		return fmt.Errorf("logits %v have no classes along axis %d", x, o.Axis)
	}
	if !(o.LabelSmoothing >= 0 && o.LabelSmoothing <= 1) {
		return fmt.Errorf("label smoothing must lie in [0,1], got %v", o.LabelSmoothing)
	}
	if o.Reduction != "mean" && o.Reduction != "sum" {
		return fmt.Errorf("reduction must be mean or sum, got %q", o.Reduction)
	}
	return nil
}

// SoftmaxCrossEntropyGrad is the gradient of SoftmaxCrossEntropy to the logits:
// dloss/kept * (softmax - (1-s)*onehot(label) - s/classes), zero where the label is ignored.
//
//	logits, target as in SoftmaxCrossEntropy, dloss scalar -> dlogits like logits
type SoftmaxCrossEntropyGrad struct {
	Axis           int64
	LabelSmoothing float64
	IgnoreIndex    int64
	HasIgnore      bool
	Reduction      string
}

// Infer gives logits' type.
func (o SoftmaxCrossEntropyGrad) Infer(in []ir.Type) ([]ir.Type, error) {
	if err := wantOperands(in, "logits", "target", "dloss"); err != nil {
		return nil, err
	}
	if err := SoftmaxCrossEntropy(o).check(in); err != nil {
		return nil, err
	}
	if err := wantScalar(in, 2, "dloss", in[0].DType); err != nil {
		return nil, err
	}
	return []ir.Type{in[0]}, nil
}

// NoGradReason says why gradients stop here.
func (SoftmaxCrossEntropyGrad) NoGradReason() string { return noSecond }
