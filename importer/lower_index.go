package importer

import (
	"aitk/ir"
	"aitk/ir/op"
)

// index makes an operand an index operand: op wants i64 or i32.
func (c *call) index(k int) *operand {
	x := c.arg(k)
	if !x.typ.DType.IsInt() {
		c.invalid("indices (operand %d) are %v, want integers", k, x.typ)
	}
	if x.typ.DType != ir.I64 && x.typ.DType != ir.I32 {
		x = c.cast(x, ir.I64)
	}
	return x
}

// inRange refuses known indices that are out of range: at run time they would be an error of the data.
func (c *call) inRange(index *operand, extent int64) {
	if index.known == nil {
		return
	}
	for _, i := range index.known.I {
		if i < -extent || i >= extent {
			c.invalid("index %d is outside extent %d", i, extent)
		}
	}
}

func lowerGather(c *call) []*operand {
	c.args(2, 2)
	x, i := c.arg(0), c.index(1)
	axis := c.axis(c.int("axis", 0), len(x.typ.Shape))
	c.inRange(i, x.typ.Shape[axis])
	// The entry of a known scalar index is a slice, which is cheaper and has a cheaper gradient.
	if i.known != nil && len(i.typ.Shape) == 0 && x.known == nil {
		at := i.known.I[0]
		if at < 0 {
			at += x.typ.Shape[axis]
		}
		s := x.typ.Shape
		return one(c.reshape(c.slice(x, axis, at, at+1, 1), append(s[:axis:axis], s[axis+1:]...)...))
	}
	return one(c.emit(op.Gather{Axis: axis}, x, i))
}

func lowerGatherElements(c *call) []*operand {
	c.args(2, 2)
	x, i := c.arg(0), c.index(1)
	axis := c.axis(c.int("axis", 0), len(x.typ.Shape))
	c.inRange(i, x.typ.Shape[axis])
	return one(c.emit(op.GatherElements{Axis: axis}, x, i))
}

func lowerGatherND(c *call) []*operand {
	c.args(2, 2)
	return one(c.emit(op.GatherND{BatchDims: c.int("batch_dims", 0)}, c.arg(0), c.index(1)))
}

func (c *call) reduction() string {
	switch r := c.string("reduction", "none"); r {
	case "none":
		return ""
	case "add", "mul", "min", "max":
		return r
	default:
		c.invalid("reduction=%q", r)
	}
	return ""
}

func lowerScatterElements(c *call) []*operand {
	c.args(3, 3)
	x, i := c.arg(0), c.index(1)
	axis := c.axis(c.int("axis", 0), len(x.typ.Shape))
	c.inRange(i, x.typ.Shape[axis])
	return one(c.emit(op.ScatterElements{Axis: axis, Reduce: c.reduction()}, x, i, c.arg(2)))
}

func lowerScatterND(c *call) []*operand {
	c.args(3, 3)
	return one(c.emit(op.ScatterND{Reduce: c.reduction()}, c.arg(0), c.index(1), c.arg(2)))
}

// lowerOneHot compares the indices with 0..depth-1 along a new axis. Negative indices count from depth; others out of range match nothing.
func lowerOneHot(c *call) []*operand {
	c.args(3, 3)
	i, values := c.cast(c.arg(0), ir.I64), c.arg(2)
	depth := int64(c.constFloat(1, "depth"))
	rank := len(i.typ.Shape)
	axis := c.axis(c.int("axis", -1), rank+1)
	if depth < 0 || len(values.typ.Shape) != 1 || values.typ.Shape[0] != 2 {
		c.invalid("depth %d and values %v", depth, values.typ)
	}
	i = c.emit(op.Where{}, c.emit(op.Less{}, i, scalar(ir.I64, 0)), c.emit(op.Add{}, i, scalar(ir.I64, float64(depth))), i)
	column := append(ir.Shape{}, i.typ.Shape[:axis]...)
	column = append(append(column, 1), i.typ.Shape[axis:]...)
	line := make(ir.Shape, rank+1)
	for a := range line {
		line[a] = 1
	}
	line[axis] = depth
	hit := c.emit(op.Equal{}, c.reshape(i, column...), c.emit(op.Iota{DType: ir.I64, Shape: line, Axis: axis, Step: 1}))
	off := c.reshape(c.slice(values, 0, 0, 1, 1), []int64{}...)
	on := c.reshape(c.slice(values, 0, 1, 2, 1), []int64{}...)
	return one(c.emit(op.Where{}, hit, on, off))
}

func argExtreme(least bool) lowerFunc {
	return func(c *call) []*operand {
		c.args(1, 1)
		x := c.arg(0)
		return one(c.ordered(op.ArgMax{
			Axis:     c.axis(c.int("axis", 0), len(x.typ.Shape)),
			KeepDims: c.flag("keepdims", true),
			Last:     c.flag("select_last_index", false),
			Min:      least,
		}, x))
	}
}
