package op

import (
	"fmt"
	"math"

	"aitk/ir"
)

// SoftmaxCrossEntropy is the cross-entropy of softmax(logits) against class labels.
//
//	logits [..., classes at Axis, ...], target i64 or i32 without that axis -> scalar of logits' dtype
//
// A label's loss is -(1-s)*logp[label] - s/classes*sum(logp) with logp the log-softmax and s = LabelSmoothing in [0,1]. With HasIgnore,
// labels equal to IgnoreIndex are left out. Reduction "mean" divides the sum by the number of labels kept, "sum" does not. The mean over
// no label at all (everything ignored, or an empty batch) is NaN, as in PyTorch; the sum is 0. Any other label outside [0, classes) is an
// error of the data, which CheckData and devices report. Losses are summed in row-major order of target, wider than f32; devices sum
// stretches of target whose extent depends on target's shape alone, then the stretches in order.
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

// kept tells whether a label counts.
func (o SoftmaxCrossEntropy) kept(label int64) bool {
	return !o.HasIgnore || label != o.IgnoreIndex
}

// BadLabel is the error of a label outside the classes. element is its row-major position in target, whose shape is given.
func BadLabel(label, classes, element int64, target ir.Shape) *ir.Error {
	where := "the target"
	if len(target) > 0 {
		where = fmt.Sprintf("sample %d", element/target[1:].Elems())
	}
	if len(target) > 1 {
		where += fmt.Sprintf(" (target element %d)", element)
	}
	e := ir.Errorf(ir.Failed, ir.Origin{}, "%s has label %d, but the logits have %d classes, numbered from 0", where, label, classes)
	e.Remedy = "correct the data, or name the label to be left out as the ignore index"
	return e
}

// checkData finds the first label that is neither a class nor ignored.
func (o SoftmaxCrossEntropy) checkData(in []ir.Tensor) error {
	classes := in[0].Type.Shape[o.Axis]
	for i, label := range in[1].I {
		if o.kept(label) && (label < 0 || label >= classes) {
			return BadLabel(label, classes, int64(i), in[1].Type.Shape)
		}
	}
	return nil
}

// divisor is what the sum of losses is divided by.
func (o SoftmaxCrossEntropy) divisor(labels []int64) float64 {
	if o.Reduction == "sum" {
		return 1
	}
	var n float64
	for _, l := range labels {
		if o.kept(l) {
			n++
		}
	}
	return n
}

// Eval adds up the loss of each label.
func (o SoftmaxCrossEntropy) Eval(in, out []ir.Tensor) {
	x, labels := in[0].F, in[1].I
	s := o.LabelSmoothing
	var total float64
	for i, l := range lines(in[0].Type.Shape, o.Axis) {
		if !o.kept(labels[i]) {
			continue
		}
		largest, log := logSumExp(x, l)
		logp := func(c int64) float64 { return x[l.first+c*l.step] - largest - log }
		total -= (1 - s) * logp(entry(labels[i], l.n))
		if s != 0 {
			var sum float64
			for c := range l.n {
				sum += logp(c)
			}
			total -= s / float64(l.n) * sum
		}
	}
	out[0].F[0] = total / o.divisor(labels)
}

// Grad is SoftmaxCrossEntropyGrad.
func (o SoftmaxCrossEntropy) Grad(b *ir.Builder, n *ir.Node, dOut []*ir.Value) []*ir.Value {
	g := SoftmaxCrossEntropyGrad{Axis: o.Axis, LabelSmoothing: o.LabelSmoothing, IgnoreIndex: o.IgnoreIndex, HasIgnore: o.HasIgnore, Reduction: o.Reduction}
	return []*ir.Value{b.Add(g, n.In[0], n.In[1], dOut[0]), nil}
}

// Decompose is the definition: losses of ignored labels are replaced by 0, for which their logits are read at class 0.
func (o SoftmaxCrossEntropy) Decompose(b *ir.Builder, in []*ir.Value) []*ir.Value {
	logits, target := wide(b, in[0]), in[1]
	d, shape := logits.Type.DType, target.Type.Shape
	classes := logits.Type.Shape[o.Axis]
	var ignored *ir.Value
	if o.HasIgnore {
		ignored = b.Add(Equal{}, target, b.Scalar(target.Type.DType, float64(o.IgnoreIndex)))
		target = b.Add(Where{}, ignored, b.Scalar(target.Type.DType, 0), target)
	}
	logp := b.Add(LogSoftmax{Axis: o.Axis}, logits)
	column := logits.Type.Shape.Clone()
	column[o.Axis] = 1
	picked := b.Add(GatherElements{Axis: o.Axis}, logp, shaped(b, target, column))
	loss := b.Add(Mul{}, shaped(b, picked, shape), b.Scalar(d, o.LabelSmoothing-1))
	if o.LabelSmoothing != 0 {
		sum := b.Add(ReduceSum{Axes: []int64{o.Axis}}, logp)
		loss = b.Add(Sub{}, loss, b.Add(Mul{}, sum, b.Scalar(d, o.LabelSmoothing/float64(classes))))
	}
	all := axesFrom(0, len(shape))
	kept := b.Scalar(d, float64(shape.Elems()))
	if o.HasIgnore {
		loss = b.Add(Where{}, ignored, b.Scalar(d, 0), loss)
		kept = b.Add(ReduceSum{Axes: all}, b.Add(Cast{To: d}, b.Add(Not{}, ignored)))
	}
	total := b.Add(ReduceSum{Axes: all}, loss)
	if o.Reduction == "mean" {
		total = b.Add(Div{}, total, kept)
	}
	return []*ir.Value{narrow(b, total, in[0].Type.DType)}
}

// Cost: maximum, difference, exponential, sum of the logits.
func (SoftmaxCrossEntropy) Cost(in, out []ir.Type) ir.Work {
	w := perElement(4, in, out)
	w.PartialBytes = 2 * stretchBytes(in[1].Elems(), 1) // sums and counts
	return w
}

// SoftmaxCrossEntropyGrad is the gradient of SoftmaxCrossEntropy to the logits:
// dloss/kept * (softmax - (1-s)*onehot(label) - s/classes), zero where the label is ignored.
//
//	logits, target as in SoftmaxCrossEntropy, dloss scalar -> dlogits like logits
//
// dlogits may be written over the logits.
type SoftmaxCrossEntropyGrad struct {
	over0
	Axis           int64
	LabelSmoothing float64
	IgnoreIndex    int64
	HasIgnore      bool
	Reduction      string
}

func (o SoftmaxCrossEntropyGrad) loss() SoftmaxCrossEntropy {
	return SoftmaxCrossEntropy{o.Axis, o.LabelSmoothing, o.IgnoreIndex, o.HasIgnore, o.Reduction}
}

// Infer gives logits' type.
func (o SoftmaxCrossEntropyGrad) Infer(in []ir.Type) ([]ir.Type, error) {
	if err := wantOperands(in, "logits", "target", "dloss"); err != nil {
		return nil, err
	}
	if err := o.loss().check(in); err != nil {
		return nil, err
	}
	if err := wantScalar(in, 2, "dloss", in[0].DType); err != nil {
		return nil, err
	}
	return []ir.Type{in[0]}, nil
}

func (o SoftmaxCrossEntropyGrad) checkData(in []ir.Tensor) error { return o.loss().checkData(in) }

// Eval takes label by label.
func (o SoftmaxCrossEntropyGrad) Eval(in, out []ir.Tensor) {
	x, labels, dx := in[0].F, in[1].I, out[0].F
	s := o.LabelSmoothing
	scale := in[2].F[0] / o.loss().divisor(labels)
	for i, l := range lines(in[0].Type.Shape, o.Axis) {
		if !o.loss().kept(labels[i]) {
			continue
		}
		largest, log := logSumExp(x, l)
		label := entry(labels[i], l.n)
		for c := range l.n {
			at := l.first + c*l.step
			g := math.Exp(x[at]-largest-log) - s/float64(l.n)
			if c == label {
				g -= 1 - s
			}
			dx[at] = scale * g
		}
	}
}

// NoGradReason says why gradients stop here.
func (SoftmaxCrossEntropyGrad) NoGradReason() string { return noSecond }

// Cost: four for the softmax's sum, four for the result.
func (SoftmaxCrossEntropyGrad) Cost(in, out []ir.Type) ir.Work {
	w := perElement(8, in, out)
	w.PartialBytes = 8 // how many labels count
	return w
}

// Samples are lossSamples.
func (SoftmaxCrossEntropy) Samples() []ir.Sample {
	return lossSamples(func(o SoftmaxCrossEntropy) ir.Op { return o }, false)
}

// Samples are lossSamples with a gradient of the loss.
func (SoftmaxCrossEntropyGrad) Samples() []ir.Sample {
	return lossSamples(func(o SoftmaxCrossEntropy) ir.Op {
		return SoftmaxCrossEntropyGrad{Axis: o.Axis, LabelSmoothing: o.LabelSmoothing, IgnoreIndex: o.IgnoreIndex, HasIgnore: o.HasIgnore, Reduction: o.Reduction}
	}, true)
}
