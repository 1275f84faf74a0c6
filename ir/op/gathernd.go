package op

import (
	"fmt"
	"slices"

	"aitk/ir"
)

// GatherND (data, indices) takes slices of data: the last axis of indices holds the coordinates of the axes after the first BatchDims,
// which both operands share. The result has the axes of indices but the last, then those of data that no coordinate names. Negative coordinates count from the end.
type GatherND struct{ BatchDims int64 }

// ScatterND (data, indices, updates) is data with the slices that indices name, as in GatherND, replaced by those of updates. Reduce
// combines them with what is there instead: "add", "mul", "min" or "max", in row-major order of indices, each step rounded to the element type.
// Without Reduce the last update of a place wins, and where a place is named twice the gradient to the lost updates is not 0.
type ScatterND struct {
	over0
	Reduce string
}

// GatherNDGrad (indices, dy) is the adjoint of GatherND: zeros of Shape to which the slices of dy are added in row-major order of indices.
// Floats accumulate in float64 and are rounded once; integers wrap.
type GatherNDGrad struct {
	BatchDims int64
	Shape     ir.Shape
}

// slicesShape is the shape of what GatherND takes from data.
func slicesShape(data, idx ir.Shape, batch int64) (ir.Shape, error) {
	if len(idx) == 0 {
		return nil, fmt.Errorf("indices have no axis of coordinates")
	}
	k, last := idx[len(idx)-1], int64(len(idx)-1)
	if batch < 0 || batch > last || k < 1 || k > int64(len(data))-batch || !data[:batch].Equal(idx[:batch]) {
		return nil, fmt.Errorf("indices %v with %d batch axes do not address data %v", idx, batch, data)
	}
	s := slices.Concat(idx[:last], data[batch+k:])
	return s, s.Check()
}

func (o GatherND) Infer(in []ir.Type) ([]ir.Type, error) {
	if err := operands(in, 2); err != nil {
		return nil, err
	}
	if err := wantIndex(in, 1); err != nil {
		return nil, err
	}
	s, err := slicesShape(in[0].Shape, in[1].Shape, o.BatchDims)
	return one(in[0].DType, s), err
}

func (o ScatterND) Infer(in []ir.Type) ([]ir.Type, error) {
	if err := operands(in, 3); err != nil {
		return nil, err
	}
	if err := wantIndex(in, 1); err != nil {
		return nil, err
	}
	if err := wantSame(in, 0, 2); err != nil {
		return nil, err
	}
	s, err := slicesShape(in[0].Shape, in[1].Shape, 0)
	if err != nil {
		return nil, err
	}
	if !s.Equal(in[2].Shape) {
		return nil, fmt.Errorf("updates are %v, the indices ask for %v", in[2].Shape, s)
	}
	if err := wantReduce(in, o.Reduce); err != nil {
		return nil, err
	}
	return one(in[0].DType, in[0].Shape), nil
}

func (o GatherNDGrad) Infer(in []ir.Type) ([]ir.Type, error) {
	if err := operands(in, 2); err != nil {
		return nil, err
	}
	if err := wantIndex(in, 0); err != nil {
		return nil, err
	}
	if err := wantNumber(in, 1); err != nil {
		return nil, err
	}
	if err := o.Shape.Check(); err != nil {
		return nil, err
	}
	s, err := slicesShape(o.Shape, in[0].Shape, o.BatchDims)
	if err != nil {
		return nil, err
	}
	if !s.Equal(in[1].Shape) {
		return nil, fmt.Errorf("operand 1 is %v, the indices ask for %v", in[1].Shape, s)
	}
	return one(in[1].DType, o.Shape), nil
}
