package importer

import (
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
		x = c.emit(op.ReduceMax{Axes: axes, KeepDims: keep}, x)
	case "ReduceMin":
		x = c.emit(op.ReduceMin{Axes: axes, KeepDims: keep}, x)
	case "ReduceProd":
		x = c.emit(op.ReduceProd{Axes: axes, KeepDims: keep}, x)
	case "ReduceL1":
		x = c.emit(sum, c.emit(op.Abs{}, x))
	case "ReduceSumSquare":
		x = c.emit(sum, c.emit(op.Mul{}, x, x))
	case "ReduceL2":
		x = c.emit(op.Sqrt{}, c.emit(sum, c.emit(op.Mul{}, x, x)))
	case "ReduceLogSum":
		x = c.emit(op.Log{}, c.emit(sum, x))
	case "ReduceLogSumExp":
		// The greatest element is taken out first, so that Exp does not overflow.
		top := c.emit(op.ReduceMax{Axes: axes, KeepDims: true}, x)
		s := c.emit(op.Log{}, c.emit(op.ReduceSum{Axes: axes, KeepDims: true}, c.emit(op.Exp{}, c.emit(op.Sub{}, x, top))))
		x = c.emit(op.Add{}, s, top)
		if !keep {
			// A view: the extents along axes are 1 by now.
			x = c.emit(op.ReduceSum{Axes: axes}, x)
		}
	}
	return one(x)
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
