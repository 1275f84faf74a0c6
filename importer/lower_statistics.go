package importer

import (
	"math"

	"aitk/ir"
	"aitk/ir/op"
)

// Norms of older networks.

// lowerLRN divides by (bias + alpha/size * sum of squares over neighbouring channels)^beta. The mean over channels is an average pool with the channels
// as the one axis that slides, which counts its padding.
func lowerLRN(c *call) []*operand {
	c.args(1, 1)
	x := c.arg(0)
	s := x.typ.Shape
	size := c.int("size", 0)
	alpha, beta, bias := c.float("alpha", 1e-4), c.float("beta", 0.75), c.float("bias", 1)
	if len(s) < 2 || size < 1 || size > 1<<20 {
		c.invalid("size %d for %v", size, x.typ)
	}
	flat := c.reshape(c.square(x), s[0], 1, s[1], s[2:].Elems())
	before := (size - 1) / 2
	mean := c.emit(op.AvgPool{Kernel: []int64{size, 1}, Strides: []int64{1, 1}, Dilations: []int64{1, 1}, Pads: []int64{before, 0, size - 1 - before, 0}, CountPad: true}, flat)
	mean = c.reshape(mean, s...)
	d := x.typ.DType
	return one(c.emit(op.Mul{}, x, c.emit(op.Pow{}, c.plus(c.scale(mean, alpha), bias), scalar(d, -beta))))
}

// lowerLpNormalization divides by the p-norm along an axis; where that is 0 the result is 0.
func lowerLpNormalization(c *call) []*operand {
	c.args(1, 1)
	x := c.arg(0)
	axis := c.axis(c.int("axis", -1), len(x.typ.Shape))
	sum := op.ReduceSum{Axes: []int64{axis}, KeepDims: true}
	var norm *operand
	switch p := c.int("p", 2); p {
	case 1:
		norm = c.emit(sum, c.emit(op.Abs{}, x))
	case 2:
		norm = c.emit(sum, c.square(x))
	default:
		c.unsupported("p=%d", p)
	}
	d := x.typ.DType
	// The 0 is replaced before root and quotient: their slopes there are no numbers.
	none := c.emit(op.Equal{}, norm, scalar(d, 0))
	safe := c.emit(op.Where{}, none, scalar(d, 1), norm)
	if c.int("p", 2) == 2 {
		safe = c.emit(op.Sqrt{}, safe)
	}
	return one(c.emit(op.Where{}, none, scalar(d, 0), c.emit(op.Div{}, x, safe)))
}

// lowerMeanVarianceNormalization is (x - mean) / (standard deviation + 1e-9).
func lowerMeanVarianceNormalization(c *call) []*operand {
	c.args(1, 1)
	x := c.arg(0)
	list, ok := c.ints("axes")
	if !ok {
		list = []int64{0, 2, 3}
	}
	axes := c.axes(list, len(x.typ.Shape))
	mean := op.ReduceMean{Axes: axes, KeepDims: true}
	centred := c.emit(op.Sub{}, x, c.emit(mean, x))
	deviation := c.emit(op.Sqrt{}, c.emit(mean, c.square(centred)))
	return one(c.emit(op.Div{}, centred, c.plus(deviation, 1e-9)))
}

// lowerLpPool is the p-norm of each window: an average of powers, times the cells of the window, cells in the padding counting as 0.
func lowerLpPool(c *call) []*operand {
	w := c.poolWindow()
	x := c.arg(0)
	p := c.lpExponent()
	if c.flag("ceil_mode", false) {
		w.pads = w.ceilPads(x.typ.Shape)
	}
	n := int64(1)
	for _, k := range w.kernel {
		n *= k
	}
	y := c.emit(op.AvgPool{Kernel: w.kernel, Strides: w.strides, Dilations: w.dilations, Pads: w.pads, CountPad: true}, c.power(c.emit(op.Abs{}, x), p))
	return one(c.power(c.scale(y, float64(n)), 1/p))
}

// lpExponent is p: an integer, or a float in the oldest form.
func (c *call) lpExponent() float64 {
	p := float64(c.int("p", 2))
	if p < 1 {
		c.invalid("p=%v", p)
	}
	return p
}

// power is x^p for a positive number p.
func (c *call) power(x *operand, p float64) *operand {
	switch p {
	case 1:
		return x
	case 2:
		return c.square(x)
	case 0.5:
		return c.emit(op.Sqrt{}, x)
	}
	return c.emit(op.Pow{}, x, scalar(x.typ.DType, p))
}

func lowerGlobalLpPool(c *call) []*operand {
	c.args(1, 1)
	x := c.arg(0)
	if len(x.typ.Shape) < 3 {
		c.invalid("%v has no spatial axis", x.typ)
	}
	p := c.lpExponent()
	y := c.emit(op.ReduceSum{Axes: axesFrom(2, len(x.typ.Shape)), KeepDims: true}, c.power(c.emit(op.Abs{}, x), p))
	return one(c.power(y, 1/p))
}

// lowerReduceLogSumExp takes the greatest element out first, so that Exp does not overflow; one that is infinite stays out, since it would make NaN.
func (c *call) logSumExp(x *operand, axes []int64, keep bool) *operand {
	d := x.typ.DType
	if !d.IsFloat() {
		x = c.cast(x, d)
	}
	empty := false
	for _, a := range axes {
		empty = empty || x.typ.Shape[a] == 0
	}
	if empty {
		return c.emit(op.Log{}, c.emit(op.ReduceSum{Axes: axes, KeepDims: keep}, c.emit(op.Exp{}, x)))
	}
	top := c.emit(op.ReduceMax{Axes: axes, KeepDims: true}, x)
	top = c.emit(op.Where{}, c.emit(op.IsInf{}, top), scalar(d, 0), top)
	s := c.emit(op.Log{}, c.emit(op.ReduceSum{Axes: axes, KeepDims: true}, c.emit(op.Exp{}, c.emit(op.Sub{}, x, top))))
	x = c.emit(op.Add{}, s, top)
	if !keep {
		x = c.reshape(x, dropped(x.typ.Shape, axes)...)
	}
	return x
}

// dropped is a shape without some axes.
func dropped(s []int64, axes []int64) []int64 {
	out := []int64{}
	for a, d := range s {
		drop := false
		for _, x := range axes {
			drop = drop || x == int64(a)
		}
		if !drop {
			out = append(out, d)
		}
	}
	return out
}

// noElements is what a reduction of nothing gives.
func noElements(opType string, d ir.DType) float64 {
	lo, hi := math.Inf(-1), math.Inf(1)
	switch {
	case d == ir.Bool || !d.IsFloat() && (d == ir.U8 || d == ir.U16 || d == ir.U32 || d == ir.U64):
		lo, hi = 0, math.Ldexp(1, int(d.Bits()))-1
		if d == ir.Bool {
			hi = 1
		}
	case !d.IsFloat():
		hi = math.Ldexp(1, int(d.Bits())-1) - 1
		lo = -hi - 1
	}
	if opType == "ReduceMin" {
		return hi
	}
	return lo
}
