package op

import (
	"fmt"
	"slices"

	"aitk/ir"
)

// Gather (data, indices) takes the entries of data along Axis that indices name: the result has the shape of data with that axis replaced by the
// axes of indices. Indices are i64 or i32, negative ones count from the end; one out of range is an error of the data. Any element type.
type Gather struct{ Axis int64 }

// ScatterAdd (indices, dy) is the adjoint of Gather: zeros with extent Size at Axis, to which the entries of dy are added in row-major
// order of indices. Floats accumulate in float64 and are rounded once; integers wrap.
type ScatterAdd struct{ Axis, Size int64 }

func (o Gather) Infer(in []ir.Type) ([]ir.Type, error) {
	if err := operands(in, 2); err != nil {
		return nil, err
	}
	if err := wantIndex(in, 1); err != nil {
		return nil, err
	}
	data := in[0].Shape
	if err := wantAxis(o.Axis, len(data)); err != nil {
		return nil, err
	}
	s := slices.Concat(data[:o.Axis], in[1].Shape, data[o.Axis+1:])
	if err := s.Check(); err != nil {
		return nil, err
	}
	return one(in[0].DType, s), nil
}

func (o ScatterAdd) Infer(in []ir.Type) ([]ir.Type, error) {
	if err := operands(in, 2); err != nil {
		return nil, err
	}
	if err := wantIndex(in, 0); err != nil {
		return nil, err
	}
	if err := wantNumber(in, 1); err != nil {
		return nil, err
	}
	idx, dy := in[0].Shape, in[1].Shape
	if o.Axis < 0 || o.Axis > int64(len(dy)-len(idx)) {
		return nil, fmt.Errorf("axis %d is outside the operands %v and %v", o.Axis, idx, dy)
	}
	rest := dy[o.Axis:]
	if !rest[:len(idx)].Equal(idx) {
		return nil, fmt.Errorf("operand 1 has %v at axis %d where the indices have %v", rest[:len(idx)], o.Axis, idx)
	}
	s := slices.Concat(dy[:o.Axis], ir.Shape{o.Size}, rest[len(idx):])
	if err := s.Check(); err != nil {
		return nil, err
	}
	return one(in[1].DType, s), nil
}
