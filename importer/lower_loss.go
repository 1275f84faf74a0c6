package importer

import (
	"slices"

	"aitk/ir"
	"aitk/ir/op"
)

// lossOptions are what both loss ops have in common.
type lossOptions struct {
	reduction string // "mean", "sum" or "none"
	ignore    int64
	hasIgnore bool
}

func (c *call) lossOptions() lossOptions {
	o := lossOptions{reduction: c.string("reduction", "mean"), ignore: c.int("ignore_index", 0)}
	for _, a := range c.n.Attribute {
		o.hasIgnore = o.hasIgnore || a.GetName() == "ignore_index"
	}
	if !slices.Contains([]string{"mean", "sum", "none"}, o.reduction) {
		c.invalid("reduction=%q", o.reduction)
	}
	return o
}

// lowerCrossEntropy is the fused op where it can be, else the log-softmax and lowerNLL's formula. Classes lie at axis 1.
func lowerCrossEntropy(c *call) []*operand {
	c.args(2, 3)
	x, target := c.arg(0), c.arg(1)
	o := c.lossOptions()
	if len(x.typ.Shape) < 2 {
		c.invalid("scores %v have no axis of classes", x.typ)
	}
	wantLog := len(c.n.Output) > 1 && c.n.Output[1] != ""
	var logp *operand
	if wantLog || o.reduction == "none" || c.has(2) {
		logp = c.emit(op.LogSoftmax{Axis: 1}, x)
	}
	if o.reduction == "none" || c.has(2) {
		return []*operand{c.nll(logp, target, o), logp}
	}
	loss := c.emit(op.SoftmaxCrossEntropy{Axis: 1, IgnoreIndex: o.ignore, HasIgnore: o.hasIgnore, Reduction: o.reduction}, x, target)
	return []*operand{loss, logp}
}

func lowerNLL(c *call) []*operand {
	c.args(2, 3)
	return one(c.nll(c.arg(0), c.arg(1), c.lossOptions()))
}

// nll is the weighted mean, sum or list of -logp[target]. An ignored label has weight 0, and reads class 0 so as to stay in range.
func (c *call) nll(logp, target *operand, o lossOptions) *operand {
	d := logp.typ.DType
	if len(logp.typ.Shape) < 2 {
		c.invalid("scores %v have no axis of classes", logp.typ)
	}
	var weight *operand
	var keep *operand
	if o.hasIgnore {
		ignored := c.emit(op.Equal{}, target, scalar(target.typ.DType, float64(o.ignore)))
		keep = c.emit(op.Not{}, ignored)
		target = c.emit(op.Where{}, ignored, scalar(target.typ.DType, 0), target)
	}
	if c.has(2) {
		weight = c.emit(op.Gather{}, c.arg(2), target)
	}
	if keep != nil {
		kept := c.cast(keep, d)
		if weight != nil {
			kept = c.emit(op.Mul{}, weight, kept)
		}
		weight = kept
	}
	s := target.typ.Shape
	if len(s) == 0 {
		c.invalid("labels %v have no axis", target.typ)
	}
	column := append(ir.Shape{s[0], 1}, s[1:]...)
	loss := c.emit(op.Neg{}, c.reshape(c.emit(op.GatherElements{Axis: 1}, logp, c.reshape(target, column...)), s...))
	if weight != nil {
		loss = c.emit(op.Mul{}, loss, weight)
	}
	if o.reduction == "none" {
		return loss
	}
	var all []int64
	for a := range s {
		all = append(all, int64(a))
	}
	sum := c.emit(op.ReduceSum{Axes: all}, loss)
	switch {
	case o.reduction == "sum":
		return sum
	case weight == nil:
		return c.scale(sum, 1/float64(max(s.Elems(), 1)))
	}
	return c.emit(op.Div{}, sum, c.emit(op.ReduceSum{Axes: all}, weight))
}
