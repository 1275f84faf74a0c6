package importer

import (
	"aitk/ir"
	"aitk/ir/op"
)

func lowerBitShift(c *call) []*operand {
	c.args(2, 2)
	fn := ""
	switch d := c.string("direction", ""); d {
	case "LEFT":
		fn = "shl"
	case "RIGHT":
		fn = "shr"
	default:
		c.invalid("direction=%q", d)
	}
	return one(c.emit(op.Bits{Fn: fn}, c.arg(0), c.arg(1)))
}

func lowerBitwiseNot(c *call) []*operand {
	c.args(1, 1)
	x := c.arg(0)
	ones := ir.NewTensor(ir.T(x.typ.DType))
	for i := range ones.I {
		ones.I[i] = -1
	}
	ones.Round()
	return one(c.emit(op.Bits{Fn: "xor"}, x, &operand{typ: ones.Type, known: &ones}))
}

// lowerBitCast reads the bytes of an element as another type of the same size. Only content that is known can be looked at so.
func lowerBitCast(c *call) []*operand {
	c.args(1, 1)
	to, err := wantDType(int32(c.int("to", 0)))
	if err != nil {
		c.unsupported("%w", err)
	}
	x := c.arg(0)
	if to.Bits() != x.typ.DType.Bits() || x.elem != 0 {
		c.unsupported("%v as %v", x.typ.DType, to)
	}
	if to == x.typ.DType {
		return lowerIdentity(c)
	}
	if (to.IsInt() || to == ir.Bool) && x.typ.DType.IsInt() && to != ir.Bool {
		return one(c.cast(x, to)) // integers of one width differ in nothing else
	}
	t := c.constant(0, "the operand")
	t.Round()
	out, err := ir.DecodeTensor(ir.Type{DType: to, Shape: t.Type.Shape}, t.Encode())
	if err != nil {
		c.invalid("%w", err)
	}
	return one(&operand{typ: out.Type, known: &out})
}
