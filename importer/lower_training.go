package importer

import (
	"aitk/ir"
	"aitk/ir/op"
)

// The updates of ai.onnx.preview.training, as formulas on operands: a graph that holds them computes new weights, it does not train itself.

// updated lowers an op whose operands are a rate R, a count T, and then n tensors and states lists of n: tensors, gradients, states. f maps one of each to
// the new tensor and its new states.
func (c *call) updated(states int, f func(x, g *operand, s []*operand) []*operand) []*operand {
	lists := 2 + states
	n := (len(c.in) - 2) / lists
	if n < 1 || len(c.in) != 2+n*lists {
		c.invalid("%d operands", len(c.in))
	}
	outs := make([]*operand, n*(1+states))
	for i := range n {
		var s []*operand
		for k := range states {
			s = append(s, c.arg(2+(2+k)*n+i))
		}
		for k, y := range f(c.arg(2+i), c.arg(2+n+i), s) {
			outs[k*n+i] = y
		}
	}
	return outs
}

// regularised is g + coefficient*x.
func (c *call) regularised(x, g *operand) *operand {
	if k := c.float("norm_coefficient", 0); k != 0 {
		return c.emit(op.Add{}, g, c.scale(x, k))
	}
	return g
}

// times multiplies by a scalar operand.
func (c *call) times(x, by *operand) *operand { return c.emit(op.Mul{}, x, by) }

func lowerAdagrad(c *call) []*operand {
	c.args(5, 1<<20)
	eps, decay := c.float("epsilon", 0), c.float("decay_factor", 0)
	r := c.reshape(c.arg(0), []int64{}...)
	t := c.cast(c.reshape(c.arg(1), []int64{}...), r.typ.DType)
	r = c.emit(op.Div{}, r, c.plus(c.scale(t, decay), 1))
	return c.updated(1, func(x, g *operand, s []*operand) []*operand {
		g = c.regularised(x, g)
		h := c.emit(op.Add{}, s[0], c.square(g))
		return []*operand{c.emit(op.Sub{}, x, c.times(c.emit(op.Div{}, g, c.plus(c.emit(op.Sqrt{}, h), eps)), r)), h}
	})
}

func lowerAdam(c *call) []*operand {
	c.args(6, 1<<20)
	alpha, beta, eps := c.float("alpha", 0.9), c.float("beta", 0.999), c.float("epsilon", 0)
	post := c.float("norm_coefficient_post", 0)
	r := c.reshape(c.arg(0), []int64{}...)
	d := r.typ.DType
	t := c.cast(c.reshape(c.arg(1), []int64{}...), d)
	first := c.emit(op.Equal{}, t, scalar(d, 0))
	left := func(base float64) *operand { return c.minus(1, c.emit(op.Pow{}, scalar(d, base), t)) }
	corrected := c.emit(op.Div{}, c.times(c.emit(op.Sqrt{}, left(beta)), r), left(alpha))
	rate := c.emit(op.Where{}, first, r, corrected)
	return c.updated(2, func(x, g *operand, s []*operand) []*operand {
		g = c.regularised(x, g)
		v := c.emit(op.Add{}, c.scale(s[0], alpha), c.scale(g, 1-alpha))
		h := c.emit(op.Add{}, c.scale(s[1], beta), c.scale(c.square(g), 1-beta))
		y := c.emit(op.Sub{}, x, c.emit(op.Div{}, c.times(v, rate), c.plus(c.emit(op.Sqrt{}, h), eps)))
		return []*operand{c.scale(y, 1-post), v, h}
	})
}

func lowerMomentum(c *call) []*operand {
	c.args(5, 1<<20)
	alpha, beta := c.float("alpha", 0), c.float("beta", 0)
	mode := c.string("mode", "standard")
	if mode != "standard" && mode != "nesterov" {
		c.invalid("mode=%q", mode)
	}
	r := c.reshape(c.arg(0), []int64{}...)
	d := r.typ.DType
	t := c.cast(c.reshape(c.arg(1), []int64{}...), ir.F64)
	adjusted := c.cast(c.emit(op.Where{}, c.emit(op.Less{}, scalar(ir.F64, 0), t), scalar(ir.F64, beta), scalar(ir.F64, 1)), d)
	return c.updated(1, func(x, g *operand, s []*operand) []*operand {
		g = c.regularised(x, g)
		v := c.emit(op.Add{}, c.scale(s[0], alpha), c.times(g, adjusted))
		step := v
		if mode == "nesterov" {
			step = c.emit(op.Add{}, g, c.scale(v, alpha))
		}
		return []*operand{c.emit(op.Sub{}, x, c.times(step, r)), v}
	})
}
