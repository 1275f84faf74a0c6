package importer

import (
	"math"
	"slices"

	"aitk/importer/onnxpb"
	"aitk/ir"
	"aitk/ir/op"
)

// unaryOp lowers an op of one operand to the core op of the same meaning.
func unaryOp(o ir.Op) lowerFunc {
	return func(c *call) []*operand {
		c.args(1, 1)
		return one(c.emit(o, c.arg(0)))
	}
}

// binaryOp lowers an op of two operands that broadcast.
func binaryOp(o ir.Op) lowerFunc {
	return func(c *call) []*operand {
		c.args(2, 2)
		return one(c.ordered(o, c.arg(0), c.arg(1)))
	}
}

// swapped is binaryOp with the operands the other way round: a > b is b < a.
func swapped(o ir.Op) lowerFunc {
	return func(c *call) []*operand {
		c.args(2, 2)
		return one(c.ordered(o, c.arg(1), c.arg(0)))
	}
}

// variadic applies a binary op from the left to one operand or more.
func variadic(o ir.Op) lowerFunc {
	return func(c *call) []*operand {
		x := c.arg(0)
		for k := range c.in[1:] {
			x = c.ordered(o, x, c.arg(k+1))
		}
		return one(x)
	}
}

func lowerMean(c *call) []*operand {
	x := variadic(op.Add{})(c)[0]
	return one(c.emit(op.Mul{}, x, scalar(x.typ.DType, 1/float64(len(c.in)))))
}

func lowerTan(c *call) []*operand {
	c.args(1, 1)
	return one(c.emit(op.Div{}, c.emit(op.Sin{}, c.arg(0)), c.emit(op.Cos{}, c.arg(0))))
}

func lowerIsInf(c *call) []*operand {
	c.args(1, 1)
	x := c.arg(0)
	neg, pos := c.flag("detect_negative", true), c.flag("detect_positive", true)
	is := c.emit(op.IsInf{}, x)
	zero := scalar(x.typ.DType, 0)
	switch {
	case neg && pos:
	case neg:
		is = c.emit(op.And{}, is, c.emit(op.Less{}, x, zero))
	case pos:
		is = c.emit(op.And{}, is, c.emit(op.Less{}, zero, x))
	default:
		is = c.fill(ir.Type{DType: ir.Bool, Shape: x.typ.Shape}, 0)
	}
	return one(is)
}

// lowerIdentity gives the operand a second name. Sequences may pass too.
func lowerIdentity(c *call) []*operand {
	if len(c.in) != 1 || c.in[0] == nil {
		c.invalid("takes 1 operand")
	}
	x := *c.in[0]
	return one(&x)
}

func (c *call) cast(x *operand, to ir.DType) *operand {
	if x.typ.DType == to {
		return x
	}
	return c.emit(op.Cast{To: to}, x)
}

func lowerCast(c *call) []*operand {
	c.args(1, 1)
	return one(c.castTo(c.arg(0), int32(c.int("to", 0)), c.flag("saturate", true), c.string("round_mode", "up")))
}

func lowerCastLike(c *call) []*operand {
	c.args(2, 2)
	return one(c.castTo(c.arg(0), elemOf(c.arg(1)), c.flag("saturate", true), c.string("round_mode", "up")))
}

// lowerPow lets the exponent have another type than the base: from opset 12 on it may, and the result has the base's.
func lowerPow(c *call) []*operand {
	c.args(2, 2)
	x, y := c.arg(0), c.arg(1)
	d := x.typ.DType
	switch {
	case d == y.typ.DType:
	case d.IsFloat():
		y = c.cast(y, d)
	default: // an integer base with another exponent: f64 holds what either can
		return one(c.cast(c.emit(op.Pow{}, c.cast(x, ir.F64), c.cast(y, ir.F64)), d))
	}
	return one(c.emit(op.Pow{}, x, y))
}

func lowerMod(c *call) []*operand {
	c.args(2, 2)
	fmod := c.flag("fmod", false)
	if c.arg(0).typ.DType == ir.U64 {
		x, y := c.arg(0), c.arg(1)
		return one(c.emit(op.Sub{}, x, c.emit(op.Mul{}, c.unsignedQuotient(x, y), y)))
	}
	return one(c.emit(op.Mod{Fmod: fmod}, c.arg(0), c.arg(1)))
}

func lowerWhere(c *call) []*operand {
	c.args(3, 3)
	return one(c.emit(op.Where{}, c.arg(0), c.arg(1), c.arg(2)))
}

// lowerClip has the bounds as attributes (opset < 11) or as optional operands; where they are known they become attributes of Clip.
func lowerClip(c *call) []*operand {
	x := c.arg(0)
	if c.ver < 11 {
		c.args(1, 1)
		return one(c.emit(op.Clip{Min: c.float("min", math.Inf(-1)), Max: c.float("max", math.Inf(1))}, x))
	}
	c.args(1, 3)
	known := func(k int) bool { return !c.has(k) || c.in[k].known != nil && x.typ.DType != ir.U64 } // no float64 holds every u64
	if known(1) && known(2) {
		o := op.Clip{Min: math.Inf(-1), Max: math.Inf(1)}
		if c.has(1) {
			o.Min = c.constFloat(1, "min")
		}
		if c.has(2) {
			o.Max = c.constFloat(2, "max")
		}
		return one(c.emit(o, x))
	}
	if c.has(1) {
		x = c.ordered(op.Max{}, x, c.arg(1))
	}
	if c.has(2) {
		x = c.ordered(op.Min{}, x, c.arg(2))
	}
	return one(x)
}

// lowerConstant covers the forms of Constant's value. Tensors that are weights never come here.
func lowerConstant(c *call) []*operand {
	c.args(0, 0)
	if len(c.n.Output) != 1 {
		c.invalid("has %d outputs, want 1", len(c.n.Output))
	}
	if t := c.src.tensors[c.n.Output[0]]; t != nil {
		c.ignore("value")
		return one(c.lowering.constant(t))
	}
	f32 := func(xs []float32, shape ...int64) *operand {
		t := ir.NewTensor(ir.T(ir.F32, shape...))
		for i, x := range xs {
			t.F[i] = float64(x)
		}
		return &operand{typ: t.Type, known: &t}
	}
	if a := c.attr("value_float", onnxpb.AttributeProto_FLOAT); a != nil {
		return one(f32([]float32{a.GetF()}))
	}
	if a := c.attr("value_floats", onnxpb.AttributeProto_FLOATS); a != nil {
		return one(f32(a.Floats, int64(len(a.Floats))))
	}
	if a := c.attr("value_int", onnxpb.AttributeProto_INT); a != nil {
		return one(ints([]int64{a.GetI()}, []int64{}...))
	}
	if xs, ok := c.ints("value_ints"); ok {
		return one(ints(slices.Clone(xs), int64(len(xs))))
	}
	c.unsupported("constants of strings and sparse constants are not supported")
	return nil
}
