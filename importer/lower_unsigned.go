package importer

import (
	"math"

	"aitk/ir"
	"aitk/ir/op"
)

// Numbers of u64 are held as the int64 with the same bits. Sums, products and shifts to the left do not see the difference; this file has what does:
// order, division, and what is done to a sign.

// ordered is emit for an op that may compare its operands. u64 is held as the int64 with the same bits, so what compares sees the upper half as
// negative: with the highest bit turned round the order of int64 is that of the numbers.
func (c *call) ordered(o ir.Op, in ...*operand) *operand {
	if in[0].typ.DType != ir.U64 || !compares(o) {
		return c.emit(o, in...)
	}
	top := &ir.Tensor{Type: ir.T(ir.I64), I: []int64{math.MinInt64}}
	turn := func(x *operand) *operand {
		return c.emit(op.Bits{Fn: "xor"}, c.cast(x, ir.I64), &operand{typ: top.Type, known: top})
	}
	turned := make([]*operand, len(in))
	for i, x := range in {
		turned[i] = turn(x)
	}
	y := c.emit(o, turned...)
	if _, index := o.(op.ArgMax); index || y.typ.DType != ir.I64 {
		return y
	}
	return c.cast(turn(y), ir.U64)
}

// compares tells ops whose result depends on the order of numbers.
func compares(o ir.Op) bool {
	switch o.(type) {
	case op.Less, op.LessEqual, op.Max, op.Min, op.ReduceMax, op.ReduceMin, op.ArgMax:
		return true
	}
	return false
}

// lowerDiv divides; integers truncate.
func lowerDiv(c *call) []*operand {
	c.args(2, 2)
	if c.arg(0).typ.DType == ir.U64 {
		return one(c.unsignedQuotient(c.arg(0), c.arg(1)))
	}
	return one(c.emit(op.Div{}, c.arg(0), c.arg(1)))
}

// unsignedQuotient divides u64 by means of signed division (Warren, Hacker's Delight, section 9-3): a divisor from 2^63 on fits once or not at all; for others
// half of the dividend, which is not negative, gives a quotient that is at most one too small.
func (c *call) unsignedQuotient(x, y *operand) *operand {
	number := func(d ir.DType, n int64) *operand {
		t := &ir.Tensor{Type: ir.T(d), I: []int64{n}}
		return &operand{typ: t.Type, known: t}
	}
	signed := func(x *operand) *operand { return c.cast(x, ir.I64) }
	zero, unit := number(ir.I64, 0), number(ir.U64, 1)
	large := c.emit(op.Less{}, signed(y), zero)
	half := c.emit(op.Bits{Fn: "shr"}, x, unit)
	q := c.emit(op.Div{}, signed(half), c.emit(op.Where{}, large, number(ir.I64, 1), signed(y)))
	q = c.emit(op.Bits{Fn: "shl"}, c.cast(c.emit(op.Where{}, large, zero, q), ir.U64), unit)
	rest := c.emit(op.Sub{}, x, c.emit(op.Mul{}, q, y))
	return c.emit(op.Add{}, q, c.cast(c.ordered(op.LessEqual{}, y, rest), ir.U64))
}

// lowerAbs and lowerSign know that unsigned numbers are not negative.
func lowerAbs(c *call) []*operand {
	c.args(1, 1)
	if c.arg(0).typ.DType == ir.U64 {
		return lowerIdentity(c)
	}
	return one(c.emit(op.Abs{}, c.arg(0)))
}

func lowerSign(c *call) []*operand {
	c.args(1, 1)
	x := c.arg(0)
	if x.typ.DType == ir.U64 {
		return one(c.cast(c.cast(x, ir.Bool), ir.U64))
	}
	return one(c.emit(op.Sign{}, x))
}
