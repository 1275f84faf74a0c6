package importer

import (
	"aitk/ir"
	"aitk/ir/op"
)

// lowerBatchNorm has two meanings. With running statistics it is an affine map a channel; in training it uses the batch's own
// statistics and moves the running ones: new = momentum*old + (1-momentum)*batch, with the population variance. The move is the new
// content of the statistic's parameter (Param.Next), so it happens once a step, and is never part of a recomputation.
//
// Which one it is follows Options.BatchNorm; "as-exported" goes by the file: training_mode from opset 14 on, more than one output before.
func lowerBatchNorm(c *call) []*operand {
	c.args(5, 5)
	x, scale, bias := c.arg(0), c.arg(1), c.arg(2)
	eps, momentum := c.float("epsilon", 1e-5), c.float("momentum", 0.9)
	exported := len(c.n.Output) > 1 && c.n.Output[1] != ""
	if c.ver >= 14 {
		exported = c.flag("training_mode", false)
	}
	if c.ver < 9 && c.int("spatial", 1) != 1 {
		c.unsupported("spatial=0: statistics for each activation")
	}
	training := exported
	switch c.opt.BatchNorm {
	case BatchNormTrain:
		training = true
	case BatchNormFrozen:
		training = false
	}
	if c.opt.Eval {
		training = false
	}
	mean, variance := c.in[3], c.in[4]
	if !training && (c.computed(3) || c.computed(4)) {
		return []*operand{c.normalised(x, scale, bias, mean, variance, eps), mean, variance}
	}
	if !training {
		y := c.emit(op.BatchNormInference{Eps: eps}, x, scale, bias, mean, variance)
		return []*operand{y, mean, variance}
	}
	out := c.emitAll(op.BatchNorm{Eps: eps}, x, scale, bias)
	return []*operand{out[0], c.move(3, momentum, out[1]), c.move(4, momentum, out[2])}
}

// computed tells whether operand k comes from the graph's data: then a gradient passes through it, unlike through a statistic.
func (c *call) computed(k int) bool {
	return c.in[k].known == nil && c.in[k].buffer == nil && c.w.views[c.n.Input[k]] == nil
}

// normalised is batch norm by statistics that the graph computes, as a formula.
func (c *call) normalised(x, scale, bias, mean, variance *operand, eps float64) *operand {
	s := x.typ.Shape
	factor := c.emit(op.Mul{}, c.cast(scale, variance.typ.DType), c.emit(op.Rsqrt{}, c.plus(variance, eps)))
	y := c.emit(op.Sub{}, x, c.perChannel(c.cast(mean, x.typ.DType), s))
	y = c.emit(op.Mul{}, y, c.perChannel(c.cast(factor, x.typ.DType), s))
	return c.emit(op.Add{}, y, c.perChannel(c.cast(bias, x.typ.DType), s))
}

// move updates the statistic that operand k is with the batch's. A statistic that two nodes share moves twice, in their order.
func (c *call) move(k int, momentum float64, batch *operand) *operand {
	v := c.w.views[c.n.Input[k]]
	if v == nil || v.param.value == nil || v.param.Role != ir.Statistic {
		out := k - 2 // mean and variance are results 1 and 2
		if out >= len(c.n.Output) || c.left[c.n.Output[out]] == 0 {
			c.unsupported("running statistic %q is no constant of the file, so training has nowhere to keep it", c.n.Input[k])
		}
		// The caller keeps it: it comes in as an operand and leaves as a result.
		return c.emit(op.MovingAverage{Momentum: momentum}, c.in[k], batch)
	}
	p := v.param.value
	old := &operand{typ: p.Type, value: p.Value}
	if p.Next != nil {
		old.value = p.Next
	}
	next := c.emit(op.MovingAverage{Momentum: momentum}, old, batch)
	p.Next = next.value
	return next
}

// lowerLayerNorm normalises from axis on. Scale and bias may broadcast; the core op wants them whole. The statistics are outputs 1
// and 2, and computed apart where somebody reads them.
func lowerLayerNorm(c *call) []*operand {
	c.args(2, 3)
	c.ignore("stash_type") // statistics are computed in float32 or wider in any case
	x := c.arg(0)
	axis := c.axis(c.int("axis", -1), len(x.typ.Shape))
	eps := c.float("epsilon", 1e-5)
	in := []*operand{x, c.whole(c.arg(1), x.typ.Shape[axis:])}
	if c.has(2) {
		in = append(in, c.whole(c.arg(2), x.typ.Shape[axis:]))
	}
	out := []*operand{c.emit(op.LayerNorm{Axis: axis, Eps: eps}, in...), nil, nil}
	if len(c.n.Output) > 1 && (c.left[c.n.Output[1]] > 0 || len(c.n.Output) > 2 && c.left[c.n.Output[2]] > 0) {
		axes := axesFrom(int(axis), len(x.typ.Shape))
		out[1] = c.emit(op.ReduceMean{Axes: axes, KeepDims: true}, x)
		d := c.emit(op.Sub{}, x, out[1])
		out[2] = c.emit(op.Rsqrt{}, c.plus(c.emit(op.ReduceMean{Axes: axes, KeepDims: true}, c.emit(op.Mul{}, d, d)), eps))
	}
	return out
}

// whole stretches a scale or bias to the normalised shape.
func (c *call) whole(v *operand, shape ir.Shape) *operand {
	s := v.typ.Shape
	for len(s) > len(shape) && s[0] == 1 {
		s = s[1:]
	}
	if len(s) > len(shape) {
		c.unsupported("scale or bias %v reaches beyond the normalised shape %v", v.typ, shape)
	}
	return c.expand(c.reshape(v, s...), shape...)
}

func lowerRMSNorm(c *call) []*operand {
	c.args(2, 2)
	c.ignore("stash_type")
	x := c.arg(0)
	axis := c.axis(c.int("axis", -1), len(x.typ.Shape))
	return one(c.emit(op.RMSNorm{Axis: axis, Eps: c.float("epsilon", 1e-5)}, x, c.whole(c.arg(1), x.typ.Shape[axis:])))
}

// standardise makes mean 0 and variance 1 along the last axis. It is a LayerNorm with a scale of ones: that saves only x for the
// backward half, where a formula of reductions would save several tensors of its size.
func (c *call) standardise(x *operand, eps float64) *operand {
	last := len(x.typ.Shape) - 1
	ones := c.fill(ir.T(x.typ.DType, x.typ.Shape[last]), 1)
	return c.emit(op.LayerNorm{Axis: int64(last), Eps: eps}, x, ones)
}

// lowerInstanceNorm normalises each channel of each image.
func lowerInstanceNorm(c *call) []*operand {
	c.args(3, 3)
	x := c.arg(0)
	s := x.typ.Shape
	if len(s) < 3 {
		c.invalid("%v has no spatial axis", x.typ)
	}
	y := c.standardise(c.reshape(x, s[0], s[1], s[2:].Elems()), c.float("epsilon", 1e-5))
	return one(c.affine(c.reshape(y, s...), c.arg(1), c.arg(2)))
}

// affine scales and shifts each channel.
func (c *call) affine(y, scale, bias *operand) *operand {
	s := y.typ.Shape
	return c.emit(op.Add{}, c.emit(op.Mul{}, y, c.perChannel(scale, s)), c.perChannel(bias, s))
}

// lowerGroupNorm normalises groups of channels. Scale and bias have one entry a group in opsets 18 to 20, one a channel from 21 on.
func lowerGroupNorm(c *call) []*operand {
	c.args(3, 3)
	c.ignore("stash_type")
	x := c.arg(0)
	s := x.typ.Shape
	groups := c.int("num_groups", 0)
	if len(s) < 3 || groups < 1 || s[1]%groups != 0 {
		c.invalid("%d groups for %v", groups, x.typ)
	}
	rest := s[1] / groups * s[2:].Elems()
	y := c.standardise(c.reshape(x, s[0], groups, rest), c.float("epsilon", 1e-5))
	if c.ver < 21 {
		return one(c.reshape(c.affine(y, c.arg(1), c.arg(2)), s...))
	}
	return one(c.affine(c.reshape(y, s...), c.arg(1), c.arg(2)))
}
