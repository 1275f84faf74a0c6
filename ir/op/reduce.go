package op

import (
	"fmt"
	"slices"

	"aitk/ir"
)

// The reductions over Axes, which are ascending and not negative; no axes reduce nothing. KeepDims leaves the axes in place with extent 1.
// Elements are taken in row-major order; floats accumulate in float64 and are rounded once.
type (
	// ReduceSum adds up; integers wrap, and no elements give 0.
	ReduceSum struct {
		Axes     []int64
		KeepDims bool
	}
	// ReduceMean is the sum divided by the number of elements: truncated for integers, NaN (integers: 0) for no elements.
	ReduceMean struct {
		Axes     []int64
		KeepDims bool
	}
	// ReduceProd multiplies; integers wrap, and no elements give 1. The gradient is exact where elements are 0.
	ReduceProd struct {
		Axes     []int64
		KeepDims bool
	}
)

// inferReduce drops axes, or keeps them with extent 1.
func inferReduce(in []ir.Type, axes []int64, keep bool) ([]ir.Type, error) {
	if _, err := inferNumbers(in); err != nil {
		return nil, err
	}
	last := int64(-1)
	for _, a := range axes {
		if err := wantAxis(a, len(in[0].Shape)); err != nil {
			return nil, err
		}
		if a <= last {
			return nil, fmt.Errorf("axes %v are not ascending", axes)
		}
		last = a
	}
	return one(in[0].DType, reducedShape(in[0].Shape, axes, keep)), nil
}

// reducedShape is what remains of a shape when axes are reduced.
func reducedShape(s ir.Shape, axes []int64, keep bool) ir.Shape {
	out := ir.Shape{}
	for a, d := range s {
		switch {
		case !slices.Contains(axes, int64(a)):
			out = append(out, d)
		case keep:
			out = append(out, 1)
		}
	}
	return out
}

func (o ReduceSum) Infer(in []ir.Type) ([]ir.Type, error) { return inferReduce(in, o.Axes, o.KeepDims) }
func (o ReduceMean) Infer(in []ir.Type) ([]ir.Type, error) {
	return inferReduce(in, o.Axes, o.KeepDims)
}
func (o ReduceProd) Infer(in []ir.Type) ([]ir.Type, error) {
	return inferReduce(in, o.Axes, o.KeepDims)
}
