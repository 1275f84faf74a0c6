package importer

import (
	"aitk/ir"
	"aitk/ir/op"
)

// statistics are mean and reciprocal deviation over the last axis, where somebody reads them: results first and first+1.
func (c *call) statistics(x *operand, eps float64, centre bool, first int) (mean, inverse *operand) {
	wanted := func(k int) bool { return k < len(c.n.Output) && c.left[c.n.Output[k]] > 0 }
	if !wanted(first) && !wanted(first+1) {
		return nil, nil
	}
	axes := []int64{int64(len(x.typ.Shape) - 1)}
	wide := c.cast(x, computeType(x.typ.DType))
	d := wide
	if centre {
		mean = c.emit(op.ReduceMean{Axes: axes, KeepDims: true}, wide)
		d = c.emit(op.Sub{}, wide, mean)
	}
	inverse = c.emit(op.Rsqrt{}, c.plus(c.emit(op.ReduceMean{Axes: axes, KeepDims: true}, c.square(d)), eps))
	return mean, inverse
}

// skipped is input + skip, + bias where operand k is given. The skip may lack the batch axis.
func (c *call) skipped(k int) *operand {
	x := c.emit(op.Add{}, c.arg(0), c.arg(1))
	if c.has(k) {
		x = c.emit(op.Add{}, x, c.arg(k))
	}
	if !x.typ.Shape.Equal(c.arg(0).typ.Shape) || len(x.typ.Shape) == 0 {
		c.invalid("skip %v for %v", c.arg(1).typ, c.arg(0).typ)
	}
	return x
}

// lowerSkipLayerNorm gives the layer norm of a sum, and the sum.
func lowerSkipLayerNorm(c *call) []*operand {
	c.args(3, 5)
	eps := c.float("epsilon", 1e-12)
	x := c.skipped(4)
	in := []*operand{x, c.arg(2)}
	if c.has(3) {
		in = append(in, c.arg(3))
	}
	y := c.emit(op.LayerNorm{Axis: int64(len(x.typ.Shape) - 1), Eps: eps}, in...)
	mean, inverse := c.statistics(x, eps, true, 1)
	return []*operand{y, mean, inverse, x}
}

func lowerSkipSimplifiedLayerNorm(c *call) []*operand {
	c.args(3, 4)
	eps := c.float("epsilon", 1e-12)
	x := c.skipped(3)
	y := c.emit(op.RMSNorm{Axis: int64(len(x.typ.Shape) - 1), Eps: eps}, x, c.arg(2))
	_, inverse := c.statistics(x, eps, false, 1)
	return []*operand{y, nil, inverse, x}
}

// lowerSimplifiedLayerNorm is a root-mean-square norm; ONNX Runtime writes it in the default domain too.
func lowerSimplifiedLayerNorm(c *call) []*operand {
	c.args(2, 2)
	c.ignore("stash_type")
	x := c.arg(0)
	axis := c.axis(c.int("axis", -1), len(x.typ.Shape))
	eps := c.float("epsilon", 1e-5)
	y := c.emit(op.RMSNorm{Axis: axis, Eps: eps}, x, c.whole(c.arg(1), x.typ.Shape[axis:]))
	var inverse *operand
	if int(axis) == len(x.typ.Shape)-1 {
		_, inverse = c.statistics(x, eps, false, 1)
	}
	return []*operand{y, inverse}
}

// lowerEmbedLayerNorm adds embeddings of words, positions and segments, and normalises.
func lowerEmbedLayerNorm(c *call) []*operand {
	c.args(1, 9)
	ids := c.index(0)
	s := ids.typ.Shape
	if len(s) != 2 {
		c.invalid("word ids %v", ids.typ)
	}
	x := c.emit(op.Gather{}, c.arg(2), ids)
	positions := c.arg(3)
	if c.has(8) {
		x = c.emit(op.Add{}, x, c.emit(op.Gather{}, positions, c.index(8)))
	} else {
		if len(positions.typ.Shape) != 2 || positions.typ.Shape[0] < s[1] {
			c.invalid("%d positions, embeddings %v", s[1], positions.typ)
		}
		x = c.emit(op.Add{}, x, c.slice(positions, 0, 0, s[1], 1))
	}
	if c.has(4) && c.has(1) {
		x = c.emit(op.Add{}, x, c.emit(op.Gather{}, c.arg(4), c.index(1)))
	}
	y := c.emit(op.LayerNorm{Axis: 2, Eps: c.float("epsilon", 1e-12)}, x, c.arg(5), c.arg(6))
	c.ignore("mask_index_type")
	mask := c.fill(ir.T(ir.I32, s[0]), 0)
	if c.has(7) {
		mask = c.emit(op.ReduceSum{Axes: []int64{1}}, c.cast(c.arg(7), ir.I32))
	}
	return []*operand{y, mask, x}
}

// msftGroupNorm normalises groups of channels, which come last by default, and may apply SiLU.
func (c *call) msftGroupNorm(x *operand) *operand {
	groups, eps := c.int("groups", 1), c.float("epsilon", 1e-5)
	last := c.flag("channels_last", true)
	if last {
		x = c.channelsFirst(x)
	}
	s := x.typ.Shape
	if len(s) < 3 || groups < 1 || s[1]%groups != 0 {
		c.invalid("%d groups for %v", groups, x.typ)
	}
	y := c.standardise(c.reshape(x, s[0], groups, s[1]/groups*s[2:].Elems()), eps)
	d := x.typ.DType
	y = c.affine(c.reshape(y, s...), c.cast(c.arg(1), d), c.cast(c.arg(2), d))
	if c.int("activation", 0) == 1 {
		y = c.emit(op.Mul{}, y, c.emit(op.Sigmoid{}, y))
	}
	if last {
		y = c.channelsLast(y)
	}
	return y
}

func lowerMsftGroupNorm(c *call) []*operand {
	c.args(3, 3)
	return one(c.msftGroupNorm(c.arg(0)))
}

func lowerSkipGroupNorm(c *call) []*operand {
	c.args(4, 5)
	x, skip := c.arg(0), c.arg(3)
	if len(skip.typ.Shape) == 2 && len(x.typ.Shape) == 4 { // one number for each channel of each image
		skip = c.reshape(skip, skip.typ.Shape[0], 1, 1, skip.typ.Shape[1])
	}
	x = c.emit(op.Add{}, x, skip)
	if c.has(4) {
		x = c.emit(op.Add{}, x, c.arg(4))
	}
	return []*operand{c.msftGroupNorm(x), x}
}
