package importer

import (
	"math"

	"aitk/ir"
	"aitk/ir/op"
)

// Activations that are no core op, as formulas of core ops. Where a formula joins two branches at 0, the branches are Relu(x) and
// min(x, 0): at 0 the gradient is that of the left branch, as in PyTorch, and neither branch overflows where the other one counts.

// leftOf is min(x, 0).
func (c *call) leftOf(x *operand) *operand {
	return c.emit(op.Clip{Min: math.Inf(-1), Max: 0}, x)
}

func (c *call) scale(x *operand, by float64) *operand {
	if by == 1 {
		return x
	}
	return c.emit(op.Mul{}, x, scalar(x.typ.DType, by))
}

func (c *call) plus(x *operand, y float64) *operand {
	return c.emit(op.Add{}, x, scalar(x.typ.DType, y))
}

func lowerGelu(c *call) []*operand {
	c.args(1, 1)
	switch how := c.string("approximate", "none"); how {
	case "none", "tanh":
		return one(c.emit(op.Gelu{Tanh: how == "tanh"}, c.arg(0)))
	default:
		c.unsupported("approximate=%q", how)
	}
	return nil
}

func lowerLeakyRelu(c *call) []*operand {
	c.args(1, 1)
	return one(c.emit(op.LeakyRelu{Alpha: c.float("alpha", 0.01)}, c.arg(0)))
}

// lowerPRelu is max(x,0) + slope*min(x,0); slope broadcasts to x.
func lowerPRelu(c *call) []*operand {
	c.args(2, 2)
	x := c.arg(0)
	left := c.emit(op.Mul{}, c.leftOf(x), c.arg(1))
	if !left.typ.Shape.Equal(x.typ.Shape) {
		c.invalid("slope %v does not broadcast to %v", c.arg(1).typ, x.typ)
	}
	return one(c.emit(op.Add{}, c.emit(op.Relu{}, x), left))
}

// elu is max(x,0) + alpha*(exp(min(x,0)/by) - 1).
func (c *call) elu(x *operand, alpha, by float64) *operand {
	left := c.plus(c.emit(op.Exp{}, c.scale(c.leftOf(x), 1/by)), -1)
	return c.emit(op.Add{}, c.emit(op.Relu{}, x), c.scale(left, alpha))
}

func lowerElu(c *call) []*operand {
	c.args(1, 1)
	return one(c.elu(c.arg(0), c.float("alpha", 1), 1))
}

func lowerSelu(c *call) []*operand {
	c.args(1, 1)
	alpha, gamma := c.float("alpha", 1.6732632423543772), c.float("gamma", 1.0507009873554805)
	return one(c.scale(c.elu(c.arg(0), alpha, 1), gamma))
}

func lowerCelu(c *call) []*operand {
	c.args(1, 1)
	alpha := c.float("alpha", 1)
	return one(c.elu(c.arg(0), alpha, alpha))
}

func lowerThresholdedRelu(c *call) []*operand {
	c.args(1, 1)
	x := c.arg(0)
	d := x.typ.DType
	above := c.emit(op.Less{}, scalar(d, c.float("alpha", 1)), x)
	return one(c.emit(op.Where{}, above, x, scalar(d, 0)))
}

func lowerSoftsign(c *call) []*operand {
	c.args(1, 1)
	x := c.arg(0)
	return one(c.emit(op.Div{}, x, c.plus(c.emit(op.Abs{}, x), 1)))
}

func (c *call) hardSigmoid(x *operand, alpha, beta float64) *operand {
	return c.emit(op.Clip{Min: 0, Max: 1}, c.plus(c.scale(x, alpha), beta))
}

func lowerHardSigmoid(c *call) []*operand {
	c.args(1, 1)
	return one(c.hardSigmoid(c.arg(0), c.float("alpha", 0.2), c.float("beta", 0.5)))
}

func lowerHardSwish(c *call) []*operand {
	c.args(1, 1)
	return one(c.emit(op.Mul{}, c.arg(0), c.hardSigmoid(c.arg(0), 1.0/6, 0.5)))
}

func lowerMish(c *call) []*operand {
	c.args(1, 1)
	x := c.arg(0)
	return one(c.emit(op.Mul{}, x, c.emit(op.Tanh{}, c.emit(op.Softplus{}, x))))
}

func lowerSwish(c *call) []*operand {
	c.args(1, 1)
	x := c.arg(0)
	return one(c.emit(op.Mul{}, x, c.emit(op.Sigmoid{}, c.scale(x, c.float("alpha", 1)))))
}

// softmax lowers Softmax and LogSoftmax. From opset 13 on they run along one axis, by default the last; before, the tensor is seen
// as a matrix whose rows begin at axis, by default 1.
func softmax(build func(axis int64) ir.Op) lowerFunc {
	return func(c *call) []*operand {
		c.args(1, 1)
		x := c.arg(0)
		rank := len(x.typ.Shape)
		if c.ver >= 13 {
			if rank == 0 {
				return one(c.reshape(c.emit(build(0), c.reshape(x, 1)), []int64{}...))
			}
			return one(c.emit(build(c.axis(c.int("axis", -1), rank)), x))
		}
		a := c.int("axis", 1)
		if a != int64(rank) { // axis == rank is legal: rows of one element
			a = c.axis(a, rank)
		}
		if int(a) == rank-1 {
			return one(c.emit(build(a), x))
		}
		rows := c.reshape(x, x.typ.Shape[:a].Elems(), x.typ.Shape[a:].Elems())
		return one(c.reshape(c.emit(build(1), rows), x.typ.Shape...))
	}
}
