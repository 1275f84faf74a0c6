package op

import (
	"math"

	"aitk/ir"
)

// The comparisons. Operands have one element type and broadcast; the result is bool. NaN compares false with everything. They never
// write over an operand: equal bytes do not mean equal elements here, an f32 of 6 elements is as long as 24 booleans.
type (
	// Equal is x == y, for any element type.
	Equal struct{ boolResult }
	// Less is x < y, for numbers.
	Less struct{ boolResult }
	// LessEqual is x <= y, for numbers.
	LessEqual struct{ boolResult }
	// IsNaN tells which floats are NaN.
	IsNaN struct{ boolResult }
	// IsInf tells which floats are infinite, of either sign.
	IsInf struct{ boolResult }
)

// inferCompare broadcasts two operands of one element type to bool.
func inferCompare(in []ir.Type, numbers bool) ([]ir.Type, error) {
	if err := operands(in, 2); err != nil {
		return nil, err
	}
	if numbers {
		if err := wantNumber(in, 0); err != nil {
			return nil, err
		}
	}
	if err := wantSame(in, 0, 1); err != nil {
		return nil, err
	}
	s, err := ir.Broadcast(in[0].Shape, in[1].Shape)
	return one(ir.Bool, s), err
}

// inferQuestion maps floats to bool.
func inferQuestion(in []ir.Type) ([]ir.Type, error) {
	if _, err := inferFloats(in); err != nil {
		return nil, err
	}
	return one(ir.Bool, in[0].Shape), nil
}

func (Equal) Infer(in []ir.Type) ([]ir.Type, error)     { return inferCompare(in, false) }
func (Less) Infer(in []ir.Type) ([]ir.Type, error)      { return inferCompare(in, true) }
func (LessEqual) Infer(in []ir.Type) ([]ir.Type, error) { return inferCompare(in, true) }
func (IsNaN) Infer(in []ir.Type) ([]ir.Type, error)     { return inferQuestion(in) }
func (IsInf) Infer(in []ir.Type) ([]ir.Type, error)     { return inferQuestion(in) }

// eachQuestion asks f of floats or g of integers that broadcast to the result.
func eachQuestion(in, out []ir.Tensor, f func(x, y float64) bool, g func(x, y int64) bool) {
	x, y, z := in[0], in[1], out[0]
	s := z.Type.Shape
	xs, ys := stretched(x.Type.Shape, s), stretched(y.Type.Shape, s)
	if x.Type.DType.IsFloat() {
		walk(s, func(i int64, at []int64) { z.I[i] = truth(f(x.F[at[0]], y.F[at[1]])) }, xs, ys)
	} else {
		walk(s, func(i int64, at []int64) { z.I[i] = truth(g(x.I[at[0]], y.I[at[1]])) }, xs, ys)
	}
}

func (Equal) Eval(in, out []ir.Tensor) {
	eachQuestion(in, out, func(x, y float64) bool { return x == y }, func(x, y int64) bool { return x == y })
}

func (Less) Eval(in, out []ir.Tensor) {
	eachQuestion(in, out, func(x, y float64) bool { return x < y }, func(x, y int64) bool { return x < y })
}

func (LessEqual) Eval(in, out []ir.Tensor) {
	eachQuestion(in, out, func(x, y float64) bool { return x <= y }, func(x, y int64) bool { return x <= y })
}

func (IsNaN) Eval(in, out []ir.Tensor) {
	for i, x := range in[0].F {
		out[0].I[i] = truth(math.IsNaN(x))
	}
}

func (IsInf) Eval(in, out []ir.Tensor) {
	for i, x := range in[0].F {
		out[0].I[i] = truth(math.IsInf(x, 0))
	}
}

// compareSamples compare operands of which some are equal, of every element type.
func compareSamples(o ir.Op) []ir.Sample {
	list := badOperands(o, ir.T(ir.F32, 2), ir.T(ir.F32, 2))
	for _, s := range broadcastShapes() {
		list = append(list, kinked(o, ramp(ir.F32, 0, -0.1, 0.1, s[0]...), ramp(ir.F32, 1, -0.1, 0.1, s[1]...)))
	}
	for _, d := range []ir.DType{ir.F64, ir.F16, ir.BF16, ir.I64, ir.I32, ir.I8, ir.U8} {
		list = append(list,
			kinked(o, ramp(d, 0, -3, 3, 4, 5), ramp(d, 1, -3, 3, 4, 5)),
			kinked(o, ramp(d, 0, -3, 3, 4, 5), ramp(d, 1, -3, 3)))
	}
	x := special(ir.F32)
	return append(list,
		kinked(o, x, ir.Tensor{Type: ir.T(ir.F32, 16, 1), F: x.F}),
		bad(o, "want one element type", ir.T(ir.F32, 2), ir.T(ir.I32, 2)),
		bad(o, "do not broadcast", ir.T(ir.F32, 2), ir.T(ir.F32, 3)))
}

func (o Equal) Samples() []ir.Sample {
	return append(compareSamples(o), good(o, ramp(ir.Bool, 0, 0, 1, 9), ramp(ir.Bool, 1, 0, 1, 2, 1)))
}

func (o Less) Samples() []ir.Sample {
	return append(compareSamples(o), bad(o, "operand 0 is bool, want numbers", ir.T(ir.Bool), ir.T(ir.Bool)))
}

func (o LessEqual) Samples() []ir.Sample {
	return append(compareSamples(o), bad(o, "operand 0 is bool, want numbers", ir.T(ir.Bool), ir.T(ir.Bool)))
}

func (o IsNaN) Samples() []ir.Sample { return questionSamples(o) }
func (o IsInf) Samples() []ir.Sample { return questionSamples(o) }

func questionSamples(o ir.Op) []ir.Sample {
	list := append(badOperands(o, ir.T(ir.F32, 2)), bad(o, "operand 0 is i64, want floats", ir.T(ir.I64, 2)))
	for _, d := range []ir.DType{ir.F64, ir.F32, ir.F16, ir.BF16} {
		list = append(list, kinked(o, special(d)), kinked(o, ramp(d, 0, -1, 1, 2, 3)), kinked(o, ramp(d, 0, -1, 1)), kinked(o, ramp(d, 0, -1, 1, 0)))
	}
	return list
}
