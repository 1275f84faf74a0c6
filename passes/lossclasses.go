package passes

import (
	"aitk/ir"
	"aitk/ir/op"
)

// ignored is the label that masked samples get where the user names none; PyTorch's default.
const ignored = -100

// overClasses builds the losses that compare with a class label: cross-entropy on logits and nll on log-probabilities.
func (l *lossBuilder) overClasses() (*ir.Value, error) {
	s := l.out.Type.Shape
	if len(s) < 2 {
		return nil, l.refuse("it needs a class axis and at least one other axis")
	}
	axis := l.spec.classAxis(len(s))
	if axis < 0 {
		return nil, l.refuse("axis %d is outside its rank %d", l.spec.Axis, len(s))
	}
	if s[axis] == 0 {
		return nil, l.refuse("there are no classes along axis %d", axis)
	}
	if k := l.spec.Shift; k > 0 {
		switch {
		case axis == 1 || len(s) < 3:
			return nil, l.refuse("shift=%d moves along axis 1, which is no sequence axis here (classes are at axis %d)", k, axis)
		case s[1] <= k:
			return nil, l.refuse("shift=%d leaves nothing of the %d positions along axis 1", k, s[1])
		}
	}
	target, err := l.target(ir.T(ir.I64, dropAxis(s, int(axis))...))
	if err != nil {
		return nil, err
	}
	x := l.out
	if k := l.spec.Shift; k > 0 {
		x = l.along1(x, 0, s[1]-k)
		target = l.along1(target, k, s[1])
	}
	x = l.widen(x)
	if l.masked && len(target.Type.Shape) > 0 {
		target = l.maskLabels(target)
		counts := l.b.Add(op.Cast{To: x.Type.DType}, l.counts(target))
		l.count = l.b.Add(op.ReduceSum{Axes: allAxes(target.Type.Shape)}, counts)
	}
	if l.spec.Name == "nll" {
		return l.nll(x, target, axis), nil
	}
	return l.b.Add(op.SoftmaxCrossEntropy{
		Axis: axis, LabelSmoothing: l.spec.LabelSmoothing,
		IgnoreIndex: l.spec.IgnoreIndex, HasIgnore: l.spec.HasIgnore, Reduction: l.spec.Reduction,
	}, x, target), nil
}

// along1 takes elements start to end along axis 1.
func (l *lossBuilder) along1(v *ir.Value, start, end int64) *ir.Value {
	s := v.Type.Shape
	o := op.Slice{Starts: make([]int64, len(s)), Ends: make([]int64, len(s)), Steps: make([]int64, len(s))}
	for i, d := range s {
		o.Ends[i], o.Steps[i] = d, 1
	}
	o.Starts[1], o.Ends[1] = start, end
	return l.b.Add(o, v)
}

// maskLabels gives samples that do not count the ignored label.
func (l *lossBuilder) maskLabels(target *ir.Value) *ir.Value {
	if !l.spec.HasIgnore {
		l.spec.IgnoreIndex, l.spec.HasIgnore = ignored, true
	}
	counts := l.b.Add(op.Less{}, l.b.Add(op.Iota{DType: ir.I64, Shape: target.Type.Shape, Step: 1}), l.valid())
	return l.b.Add(op.Where{}, counts, target, l.b.Scalar(ir.I64, float64(l.spec.IgnoreIndex)))
}

// counts tells which labels are not ignored.
func (l *lossBuilder) counts(target *ir.Value) *ir.Value {
	return l.b.Add(op.Not{}, l.b.Add(op.Equal{}, target, l.b.Scalar(ir.I64, float64(l.spec.IgnoreIndex))))
}

// nll is the negative mean (or sum) of the log-probabilities at the labels that count.
func (l *lossBuilder) nll(x, target *ir.Value, axis int64) *ir.Value {
	b, d := l.b, x.Type.DType
	var counts *ir.Value
	if l.spec.HasIgnore {
		counts = l.counts(target)
		target = b.Add(op.Where{}, counts, target, b.Scalar(ir.I64, 0))
	}
	at := x.Type.Shape.Clone()
	at[axis] = 1
	picked := b.Add(op.GatherElements{Axis: axis}, x, b.Add(op.Reshape{Shape: at}, target))
	picked = b.Add(op.Neg{}, b.Add(op.Reshape{Shape: target.Type.Shape}, picked))
	if counts == nil {
		l.masked = false
		return l.reduce(picked)
	}
	axes := allAxes(target.Type.Shape)
	sum := b.Add(op.ReduceSum{Axes: axes}, b.Add(op.Where{}, counts, picked, b.Scalar(d, 0)))
	if l.spec.Reduction == "sum" {
		return sum
	}
	return b.Add(op.Div{}, sum, b.Add(op.ReduceSum{Axes: axes}, b.Add(op.Cast{To: d}, counts)))
}
