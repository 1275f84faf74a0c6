package importer

import (
	"aitk/ir"
	"aitk/ir/op"
)

// lowerTopK has k as an attribute (opset < 10) or as an operand. The result is sorted whether it is asked for or not.
func lowerTopK(c *call) []*operand {
	x := c.arg(0)
	var k int64
	if c.ver < 10 {
		c.args(1, 1)
		k = c.int("k", -1)
	} else {
		c.args(2, 2)
		k = c.constInt(1, "k")
	}
	c.ignore("sorted")
	rank := len(x.typ.Shape)
	axis := c.axis(c.int("axis", -1), rank)
	return c.emitAll(op.TopK{Axis: axis, K: k, Smallest: !c.flag("largest", true)}, x)
}

// lowerHardmax is 1 at the first greatest element along an axis and 0 elsewhere; before opset 13 the axes from axis on are one.
func lowerHardmax(c *call) []*operand {
	c.args(1, 1)
	x := c.arg(0)
	s := x.typ.Shape
	rank := len(s)
	hard := func(x *operand, axis int64) *operand {
		top := c.emit(op.ArgMax{Axis: axis, KeepDims: true}, x)
		line := make(ir.Shape, len(x.typ.Shape))
		for a := range line {
			line[a] = 1
		}
		line[axis] = x.typ.Shape[axis]
		return c.cast(c.emit(op.Equal{}, top, c.emit(op.Iota{DType: ir.I64, Shape: line, Axis: axis, Step: 1})), x.typ.DType)
	}
	if c.ver >= 13 {
		return one(hard(x, c.axis(c.int("axis", -1), rank)))
	}
	a := c.axis(c.int("axis", 1), rank)
	return one(c.reshape(hard(c.reshape(x, s[:a].Elems(), s[a:].Elems()), 1), s...))
}
