package importer

import (
	"math"

	"aitk/ir"
	"aitk/ir/op"
)

// Functions of angles and their hyperbolic kin, as formulas of the core ops.

// formula lowers an op of one operand.
func formula(f func(c *call, x *operand) *operand) lowerFunc {
	return func(c *call) []*operand {
		c.args(1, 1)
		return one(f(c, c.arg(0)))
	}
}

// minus is y - x for a number y.
func (c *call) minus(y float64, x *operand) *operand {
	return c.emit(op.Sub{}, scalar(x.typ.DType, y), x)
}

func (c *call) square(x *operand) *operand { return c.emit(op.Mul{}, x, x) }

func (c *call) asin(x *operand) *operand {
	return c.emit(op.Atan{}, c.emit(op.Div{}, x, c.emit(op.Sqrt{}, c.emit(op.Mul{}, c.minus(1, x), c.plus(x, 1)))))
}

// acos is 2 atan(sqrt((1-x)/(1+x))), which loses no digits near 1.
func (c *call) acos(x *operand) *operand {
	half := c.emit(op.Atan{}, c.emit(op.Sqrt{}, c.emit(op.Div{}, c.minus(1, x), c.plus(x, 1))))
	return c.scale(half, 2)
}

func (c *call) sinh(x *operand) *operand {
	return c.scale(c.emit(op.Sub{}, c.emit(op.Exp{}, x), c.emit(op.Exp{}, c.emit(op.Neg{}, x))), 0.5)
}

func (c *call) cosh(x *operand) *operand {
	return c.scale(c.emit(op.Add{}, c.emit(op.Exp{}, x), c.emit(op.Exp{}, c.emit(op.Neg{}, x))), 0.5)
}

// asinh is odd: its formula is used on the right, where it loses no digits.
func (c *call) asinh(x *operand) *operand {
	d := x.typ.DType
	side := c.emit(op.Where{}, c.emit(op.Less{}, x, scalar(d, 0)), scalar(d, -1), scalar(d, 1))
	a := c.emit(op.Mul{}, x, side)
	y := c.emit(op.Log{}, c.emit(op.Add{}, a, c.emit(op.Sqrt{}, c.plus(c.square(a), 1))))
	return c.emit(op.Mul{}, y, side)
}

func (c *call) acosh(x *operand) *operand {
	root := c.emit(op.Sqrt{}, c.emit(op.Mul{}, c.plus(x, -1), c.plus(x, 1)))
	return c.emit(op.Log{}, c.emit(op.Add{}, x, root))
}

func (c *call) atanh(x *operand) *operand {
	return c.scale(c.emit(op.Log{}, c.emit(op.Div{}, c.plus(x, 1), c.minus(1, x))), 0.5)
}

func lowerShrink(c *call) []*operand {
	c.args(1, 1)
	x := c.arg(0)
	d := x.typ.DType
	bias, lambd := c.float("bias", 0), c.float("lambd", 0.5)
	zero := scalar(d, 0)
	y := x
	if !d.IsFloat() {
		y = c.cast(x, ir.F32)
		zero = scalar(ir.F32, 0)
	}
	t := y.typ.DType
	right := c.emit(op.Where{}, c.emit(op.Less{}, scalar(t, lambd), y), c.plus(y, -bias), zero)
	return one(c.cast(c.emit(op.Where{}, c.emit(op.Less{}, y, scalar(t, -lambd)), c.plus(y, bias), right), d))
}

// lowerSwiGLU is a*sigmoid(alpha*a)*b.
func lowerSwiGLU(c *call) []*operand {
	c.args(2, 2)
	a, b := c.arg(0), c.arg(1)
	if !a.typ.Equal(b.typ) {
		c.invalid("operands %v and %v", a.typ, b.typ)
	}
	swish := c.emit(op.Mul{}, a, c.emit(op.Sigmoid{}, c.scale(a, c.float("alpha", 1))))
	return one(c.emit(op.Mul{}, swish, b))
}

// window makes one of the cosine windows: a0 - a1 cos(2 pi k/N) + a2 cos(4 pi k/N), N the size or, symmetric, one less.
func cosineWindow(a ...float64) lowerFunc {
	return func(c *call) []*operand {
		c.args(1, 1)
		n := c.constInt(0, "size")
		to := int32(c.int("output_datatype", 1))
		d, err := wantDType(to)
		if err != nil || !d.IsFloat() {
			c.unsupported("output_datatype %d", to)
		}
		if n < 0 || n > indexElems {
			c.unsupported("a window of %d", n)
		}
		over := float64(n)
		if !c.flag("periodic", true) {
			over--
		}
		t := ir.NewTensor(ir.T(d, n))
		for k := range t.F {
			sign := 1.0
			for i, x := range a {
				t.F[k] += sign * x * math.Cos(2*math.Pi*float64(i)*float64(k)/over)
				sign = -sign
			}
		}
		t.Round()
		return one(&operand{typ: t.Type, known: &t})
	}
}
