package op

import (
	"fmt"

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
