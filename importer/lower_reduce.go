package importer

import (
	"slices"

	"aitk/ir"
	"aitk/ir/op"
)

// lowerReduce covers the reductions. Axes became an operand with opset 13 for ReduceSum and 18 for the rest; none given means all,
// unless noop_with_empty_axes says that the op then reduces nothing.
func lowerReduce(c *call) []*operand {
	since := int64(18)
	if c.n.GetOpType() == "ReduceSum" {
		since = 13
	}
	keep := c.flag("keepdims", true)
	list, _ := c.axesArg(since)
	x := c.arg(0)
	rank := len(x.typ.Shape)
	axes := c.axes(list, rank)
	if noop := c.flag("noop_with_empty_axes", false); len(axes) == 0 && !noop {
		for a := range rank {
			axes = append(axes, int64(a))
		}
	}
	sum := op.ReduceSum{Axes: axes, KeepDims: keep}
	switch c.n.GetOpType() {
	case "ReduceSum":
		x = c.emit(sum, x)
	case "ReduceMean":
		x = c.emit(op.ReduceMean{Axes: axes, KeepDims: keep}, x)
	case "ReduceMax":
		x = c.extremum(x, axes, keep, func(keep bool) ir.Op { return op.ReduceMax{Axes: axes, KeepDims: keep} })
	case "ReduceMin":
		x = c.extremum(x, axes, keep, func(keep bool) ir.Op { return op.ReduceMin{Axes: axes, KeepDims: keep} })
	case "ReduceProd":
		x = c.emit(op.ReduceProd{Axes: axes, KeepDims: keep}, x)
	case "ReduceL1":
		if x.typ.DType != ir.U64 {
			x = c.emit(op.Abs{}, x)
		}
		x = c.emit(sum, x)
	case "ReduceSumSquare":
		x = c.emit(sum, c.emit(op.Mul{}, x, x))
	case "ReduceL2":
		x = c.emit(op.Sqrt{}, c.emit(sum, c.emit(op.Mul{}, x, x)))
	case "ReduceLogSum":
		x = c.emit(op.Log{}, c.emit(sum, x))
	case "ReduceLogSumExp":
		x = c.logSumExp(x, axes, keep)
	}
	return one(x)
}

// extremum reduces booleans as small integers, and gives the neutral element where there is nothing to choose from.
func (c *call) extremum(x *operand, axes []int64, keep bool, reduce func(keep bool) ir.Op) *operand {
	for _, a := range axes {
		if x.typ.Shape[a] != 0 {
			continue
		}
		s := dropped(x.typ.Shape, axes)
		if keep {
			s = slices.Clone(x.typ.Shape)
			for _, a := range axes {
				s[a] = 1
			}
		}
		return c.fill(ir.Type{DType: x.typ.DType, Shape: s}, noElements(c.n.GetOpType(), x.typ.DType))
	}
	if x.typ.DType == ir.Bool {
		return c.cast(c.emit(reduce(keep), c.cast(x, ir.U8)), ir.Bool)
	}
	return c.ordered(reduce(keep), x)
}

func lowerCumSum(c *call) []*operand {
	c.args(2, 2)
	x := c.arg(0)
	return one(c.emit(op.CumSum{
		Axis:      c.axis(c.constInt(1, "axis"), len(x.typ.Shape)),
		Exclusive: c.flag("exclusive", false),
		Reverse:   c.flag("reverse", false),
	}, x))
}
