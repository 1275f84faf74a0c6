package importer

import (
	"math"

	"aitk/ir"
	"aitk/ir/op"
)

// Ops on quantized operands. They compute on the integers in float64, where every sum that fits 32 bits is exact, and so are frozen: a gradient ends at
// the integers that they read, except through operands that a QuantizeLinear in the graph made.

// centred is operand x minus its zero point, as f64.
func (c *call) centred(x, zero *operand) *operand {
	y := x
	if x.real != nil {
		y = x.real
	}
	y = c.cast(y, ir.F64)
	if zero == nil || isZero(zero) {
		return y
	}
	return c.emit(op.Sub{}, y, c.cast(zero, ir.F64))
}

// optional is operand k, or nil.
func (c *call) optional(k int) *operand {
	if !c.has(k) {
		return nil
	}
	return c.arg(k)
}

// along gives a vector of n>1 elements an axis count of its own: it lies along axis of a tensor of this rank. One number broadcasts anyway.
func (c *call) along(v *operand, axis, rank int) *operand {
	if v == nil {
		return nil
	}
	if v.typ.Elems() == 1 {
		return c.reshape(v, []int64{}...)
	}
	if len(v.typ.Shape) != 1 {
		return v // has the shape of what it broadcasts over
	}
	s := make([]int64, rank)
	for a := range s {
		s[a] = 1
	}
	s[axis] = v.typ.Shape[0]
	return c.reshape(v, s...)
}

func lowerMatMulInteger(c *call) []*operand {
	c.args(2, 4)
	a, b := c.arg(0), c.arg(1)
	ra, rb := len(a.typ.Shape), len(b.typ.Shape)
	if ra < 1 || rb < 1 {
		c.invalid("operands %v and %v: a scalar is no matrix", a.typ, b.typ)
	}
	a = c.centred(a, c.along(c.optional(2), max(ra-2, 0), ra))
	b = c.centred(b, c.along(c.optional(3), rb-1, rb))
	return one(c.cast(c.matmul(a, b), ir.I32))
}

func lowerConvInteger(c *call) []*operand {
	c.args(2, 4)
	x, w := c.arg(0), c.arg(1)
	y := c.conv(c.centred(x, c.along(c.optional(2), 0, len(x.typ.Shape))), c.centred(w, c.along(c.optional(3), 0, len(w.typ.Shape))))
	return one(c.cast(y, ir.I32))
}

// requantize brings f64 sums to the scale of the result: sum * (sa*sb/sy) + zero.
func (c *call) requantize(sum, sa, sb, sy, zero *operand, onnx int32) *operand {
	factor := c.emit(op.Div{}, c.emit(op.Mul{}, c.cast(sa, ir.F32), c.cast(sb, ir.F32)), c.cast(sy, ir.F32))
	y := c.emit(op.Mul{}, sum, c.cast(factor, ir.F64))
	return c.quantize(y, zero, onnx, true, true)
}

func lowerQLinearMatMul(c *call) []*operand {
	c.args(8, 8)
	a, b := c.arg(0), c.arg(3)
	ra, rb := len(a.typ.Shape), len(b.typ.Shape)
	if ra < 2 || rb < 2 {
		c.invalid("operands %v and %v are no matrices", a.typ, b.typ)
	}
	sum := c.matmul(c.centred(a, c.along(c.arg(2), ra-2, ra)), c.centred(b, c.along(c.arg(5), rb-1, rb)))
	r := len(sum.typ.Shape)
	return one(c.requantize(sum, c.along(c.arg(1), r-2, r), c.along(c.arg(4), r-1, r), c.along(c.arg(6), r-2, r), c.along(c.arg(7), r-2, r), elemOf(c.arg(7))))
}

func lowerQLinearConv(c *call) []*operand {
	c.args(8, 9)
	x, w := c.arg(0), c.arg(3)
	rank := len(w.typ.Shape)
	sum := c.conv(c.centred(x, c.along(c.arg(2), 0, len(x.typ.Shape))), c.centred(w, c.along(c.arg(5), 0, rank)))
	if c.has(8) {
		sum = c.emit(op.Add{}, sum, c.perChannel(c.cast(c.arg(8), ir.F64), sum.typ.Shape))
	}
	return one(c.requantize(sum, c.along(c.arg(1), 0, rank), c.along(c.arg(4), 1, rank), c.along(c.arg(6), 0, rank), c.along(c.arg(7), 0, rank), elemOf(c.arg(7))))
}

// quantized lowers a com.microsoft op whose operands come as x, scale, zero and whose result is quantized by the scale and zero point that follow at
// index out: it dequantizes, computes in floats, and quantizes.
func (c *call) quantized(out int, compute func() *operand) []*operand {
	y := compute()
	scale := c.reshape(c.arg(out), []int64{}...)
	zero := c.optional(out + 1)
	onnx := elemOf(c.arg(0))
	if zero != nil {
		onnx = elemOf(zero)
		zero = c.reshape(zero, []int64{}...)
	}
	return one(c.quantize(c.emit(op.Div{}, y, c.cast(scale, y.typ.DType)), zero, onnx, true, false))
}

// triple is operand k dequantized by the scale and zero point that follow it.
func (c *call) triple(k int) *operand {
	zero := c.optional(k + 2)
	if zero != nil {
		zero = c.reshape(zero, []int64{}...)
	}
	return c.dequantize(c.arg(k), c.reshape(c.arg(k+1), []int64{}...), zero)
}

func qlinearBinary(o ir.Op) lowerFunc {
	return func(c *call) []*operand {
		c.args(7, 8)
		return c.quantized(6, func() *operand { return c.emit(o, c.triple(0), c.triple(3)) })
	}
}

func qlinearUnary(f func(c *call, x *operand) *operand) lowerFunc {
	return func(c *call) []*operand {
		c.args(4, 5)
		return c.quantized(3, func() *operand { return f(c, c.triple(0)) })
	}
}

func lowerQLinearConcat(c *call) []*operand {
	c.args(5, math.MaxInt)
	if (len(c.in)-2)%3 != 0 {
		c.invalid("has %d operands, want a scale, a zero point and three for each tensor", len(c.in))
	}
	var parts []*operand
	for k := 2; k < len(c.in); k += 3 {
		parts = append(parts, c.triple(k))
	}
	y := c.concat(parts, c.int("axis", 0))
	scale := c.reshape(c.arg(0), []int64{}...)
	return one(c.quantize(c.emit(op.Div{}, y, c.cast(scale, y.typ.DType)), c.reshape(c.arg(1), []int64{}...), elemOf(c.arg(1)), true, false))
}
