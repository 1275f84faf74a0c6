package op

import (
	"fmt"
	"math"

	"aitk/ir"
)

// Fill makes a tensor of Shape with every element Value; it has no operands. Whole numbers are exact up to 2^53.
type Fill struct {
	DType ir.DType
	Shape ir.Shape
	Value float64
}

// Iota makes a tensor of Shape with the elements Start + i*Step, where i counts along Axis; it has no operands. Floats are computed in
// float64 and rounded once.
type Iota struct {
	DType       ir.DType
	Shape       ir.Shape
	Axis        int64
	Start, Step float64
}

// wantResult checks the type attributes of an op without operands.
func wantResult(in []ir.Type, d ir.DType, s ir.Shape) error {
	if err := operands(in, 0); err != nil {
		return err
	}
	if !isNumber(d) && d != ir.Bool || d == ir.I4 {
		return fmt.Errorf("cannot make elements of %v", d)
	}
	return s.Check()
}

func (o Fill) Infer(in []ir.Type) ([]ir.Type, error) {
	if err := wantResult(in, o.DType, o.Shape); err != nil {
		return nil, err
	}
	if err := wantValue(o.DType, o.Value); err != nil {
		return nil, err
	}
	return one(o.DType, o.Shape), nil
}

func (o Iota) Infer(in []ir.Type) ([]ir.Type, error) {
	if err := wantResult(in, o.DType, o.Shape); err != nil {
		return nil, err
	}
	if o.DType == ir.Bool {
		return nil, fmt.Errorf("cannot count in %v", o.DType)
	}
	if err := wantAxis(o.Axis, len(o.Shape)); err != nil {
		return nil, err
	}
	for _, x := range []float64{o.Start, o.Step} {
		if err := wantValue(o.DType, x); err != nil {
			return nil, err
		}
	}
	return one(o.DType, o.Shape), nil
}

// fill makes every element x.
func fill(t ir.Tensor, x float64) {
	for i := range t.F {
		t.F[i] = x
	}
	for i := range t.I {
		t.I[i] = int64(x)
	}
}

func (o Fill) Eval(in, out []ir.Tensor) { fill(out[0], o.Value) }

func (o Iota) Eval(in, out []ir.Tensor) {
	_, n, inner := around(o.Shape, o.Axis)
	at := func(i int) int64 { return int64(i) / inner % n }
	for i := range out[0].F {
		out[0].F[i] = o.Start + float64(at(i))*o.Step
	}
	for i := range out[0].I {
		out[0].I[i] = int64(o.Start) + at(i)*int64(o.Step)
	}
}

func (Fill) NoGradReason() string { return "no operands" }
func (Iota) NoGradReason() string { return "no operands" }

func (Fill) Samples() []ir.Sample {
	var list []ir.Sample
	for _, d := range []ir.DType{ir.F64, ir.F32, ir.F16, ir.BF16, ir.I64, ir.I32, ir.I8, ir.U8, ir.Bool} {
		for _, s := range []ir.Shape{nil, {3}, {2, 0}, {2, 3, 4}} {
			list = append(list, good(Fill{DType: d, Shape: s, Value: 1}))
		}
		list = append(list, good(Fill{DType: d, Shape: ir.Shape{2}}))
	}
	for _, x := range []float64{math.NaN(), math.Inf(-1), 0.1} {
		list = append(list, good(Fill{DType: ir.F32, Shape: ir.Shape{2}, Value: x}), bad(Fill{DType: ir.I64, Shape: ir.Shape{2}, Value: x}, "is outside i64"))
	}
	return append(list,
		good(Fill{DType: ir.I64, Value: math.MinInt64}), good(Fill{DType: ir.I8, Value: -128}),
		bad(Fill{DType: ir.F32}, "takes 0 operands, got 1", ir.T(ir.F32)),
		bad(Fill{}, "cannot make elements of invalid"),
		bad(Fill{DType: ir.I4}, "cannot make elements of i4"),
		bad(Fill{DType: ir.F32, Shape: ir.Shape{-1}}, "negative or too large"),
		bad(Fill{DType: ir.I64, Value: math.MaxInt64}, "is outside i64"),
		bad(Fill{DType: ir.I32, Value: 1 << 31}, "is outside i32"),
		bad(Fill{DType: ir.I8, Value: 128}, "is outside i8"),
		bad(Fill{DType: ir.U8, Value: -1}, "is outside u8"),
		bad(Fill{DType: ir.Bool, Value: 2}, "is outside bool"))
}

func (Iota) Samples() []ir.Sample {
	var list []ir.Sample
	for _, d := range []ir.DType{ir.F64, ir.F32, ir.F16, ir.BF16, ir.I64, ir.I32, ir.I8, ir.U8} {
		list = append(list,
			good(Iota{DType: d, Shape: ir.Shape{5}, Step: 1}),
			good(Iota{DType: d, Shape: ir.Shape{2, 3, 2}, Axis: 1, Start: 3, Step: 2}),
			good(Iota{DType: d, Shape: ir.Shape{2, 0}, Axis: 1, Step: 1}),
			good(Iota{DType: d, Shape: ir.Shape{200}, Start: 100, Step: 3}))
	}
	return append(list,
		good(Iota{DType: ir.F32, Shape: ir.Shape{5}, Start: 0.5, Step: -0.1}),
		good(Iota{DType: ir.I64, Shape: ir.Shape{5}, Start: 4, Step: -1}),
		bad(Iota{DType: ir.F32, Shape: ir.Shape{2}}, "takes 0 operands, got 1", ir.T(ir.F32)),
		bad(Iota{DType: ir.Bool, Shape: ir.Shape{2}}, "cannot count in bool"),
		bad(Iota{DType: ir.I4, Shape: ir.Shape{2}}, "cannot make elements of i4"),
		bad(Iota{DType: ir.F32}, "axis 0 is outside rank 0"),
		bad(Iota{DType: ir.F32, Shape: ir.Shape{2}, Axis: -1}, "axis -1 is outside rank 1"),
		bad(Iota{DType: ir.F32, Shape: ir.Shape{-2}}, "negative or too large"),
		bad(Iota{DType: ir.I32, Shape: ir.Shape{2}, Step: 0.5}, "value 0.5 is outside i32"),
		bad(Iota{DType: ir.I32, Shape: ir.Shape{2}, Start: 1e10}, "value 1e+10 is outside i32"))
}
