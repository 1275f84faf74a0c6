package op

import "aitk/ir"

// sumTo reduces the gradient of a broadcast result to the shape of an operand, by summing over the axes along which it was stretched.
func sumTo(b *ir.Builder, dy *ir.Value, shape ir.Shape) *ir.Value {
	from := dy.Type.Shape
	if from.Equal(shape) {
		return dy
	}
	lead := len(from) - len(shape)
	var axes []int64
	inner := false // some axis inside shape was stretched
	for a := range from {
		switch {
		case a < lead:
			axes = append(axes, int64(a))
		case shape[a-lead] != from[a]:
			axes = append(axes, int64(a))
			inner = true
		}
	}
	if !inner {
		return b.Add(ReduceSum{Axes: axes}, dy)
	}
	s := b.Add(ReduceSum{Axes: axes, KeepDims: true}, dy)
	if lead > 0 {
		s = b.Add(Reshape{Shape: shape}, s)
	}
	return s
}

// scale multiplies by a number in at least f32, since f16 and bf16 round many numbers badly.
func scale(b *ir.Builder, x *ir.Value, by float64) *ir.Value {
	d := x.Type.DType
	if d == ir.F16 || d == ir.BF16 {
		wide := b.Add(Cast{To: ir.F32}, x)
		return b.Add(Cast{To: d}, b.Add(Mul{}, wide, b.Scalar(ir.F32, by)))
	}
	return b.Add(Mul{}, x, b.Scalar(d, by))
}

// divide is scale by 1/n, without rounding that.
func divide(b *ir.Builder, x *ir.Value, n int64) *ir.Value {
	d := x.Type.DType
	if d == ir.F16 || d == ir.BF16 {
		wide := b.Add(Cast{To: ir.F32}, x)
		return b.Add(Cast{To: d}, b.Add(Div{}, wide, b.Scalar(ir.F32, float64(n))))
	}
	return b.Add(Div{}, x, b.Scalar(d, float64(n)))
}

// none is the gradient of an op to n operands through which nothing flows.
func none(n int) []*ir.Value { return make([]*ir.Value, n) }
