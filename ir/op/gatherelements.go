package op

import (
	"fmt"

	"aitk/ir"
)

// GatherElements (data, indices) takes one element of data for each index: the one at the index's own place, with the coordinate of
// Axis replaced by the index. Both have one rank, and no extent of indices but that of Axis exceeds data's. Negative indices count from the end.
type GatherElements struct{ Axis int64 }

// ScatterElements (data, indices, updates) is data with the element that each index names, as in GatherElements, replaced by the update.
// Reduce combines it with what is there instead: "add", "mul", "min" or "max", in row-major order of indices, each step rounded to the
// element type. Without Reduce the last update of a place wins, and where a place is named twice the gradient to the lost updates is not 0.
type ScatterElements struct {
	over0
	Axis   int64
	Reduce string
}

// wantReduce checks how updates combine with what is there.
func wantReduce(in []ir.Type, reduce string) error {
	switch reduce {
	case "":
		return nil
	case "add", "mul", "min", "max":
		return wantNumber(in, 0)
	}
	return fmt.Errorf("reduce %q is none of add, mul, min, max", reduce)
}

// wantElements checks indices that name single elements of data.
func wantElements(in []ir.Type, axis int64) error {
	if err := wantIndex(in, 1); err != nil {
		return err
	}
	data, idx := in[0].Shape, in[1].Shape
	if err := wantAxis(axis, len(data)); err != nil {
		return err
	}
	ok := len(idx) == len(data)
	for a := 0; ok && a < len(data); a++ {
		ok = int64(a) == axis || idx[a] <= data[a]
	}
	if !ok {
		return fmt.Errorf("indices %v do not fit data %v beside axis %d", idx, data, axis)
	}
	return nil
}

func (o GatherElements) Infer(in []ir.Type) ([]ir.Type, error) {
	if err := operands(in, 2); err != nil {
		return nil, err
	}
	if err := wantElements(in, o.Axis); err != nil {
		return nil, err
	}
	return one(in[0].DType, in[1].Shape), nil
}

func (o ScatterElements) Infer(in []ir.Type) ([]ir.Type, error) {
	if err := operands(in, 3); err != nil {
		return nil, err
	}
	if err := wantElements(in, o.Axis); err != nil {
		return nil, err
	}
	if err := wantSame(in, 0, 2); err != nil {
		return nil, err
	}
	if !in[1].Shape.Equal(in[2].Shape) {
		return nil, fmt.Errorf("indices %v and updates %v have different shapes", in[1].Shape, in[2].Shape)
	}
	if err := wantReduce(in, o.Reduce); err != nil {
		return nil, err
	}
	return one(in[0].DType, in[0].Shape), nil
}
