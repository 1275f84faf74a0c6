package op

import (
	"fmt"

	"aitk/ir"
)

// The extrema over Axes, which are ascending and not negative; no axes reduce nothing, and an axis without elements is refused. NaN wins.
// Elements that tie share the gradient equally. KeepDims leaves the axes in place with extent 1.
type (
	// ReduceMax is the greatest element.
	ReduceMax struct {
		Axes     []int64
		KeepDims bool
	}
	// ReduceMin is the smallest element.
	ReduceMin struct {
		Axes     []int64
		KeepDims bool
	}
)

// inferExtremum is inferReduce for a reduction without a neutral element.
func inferExtremum(in []ir.Type, axes []int64, keep bool) ([]ir.Type, error) {
	out, err := inferReduce(in, axes, keep)
	if err != nil {
		return nil, err
	}
	for _, a := range axes {
		if in[0].Shape[a] == 0 {
			return nil, fmt.Errorf("axis %d of %v has no elements to choose from", a, in[0].Shape)
		}
	}
	return out, nil
}

func (o ReduceMax) Infer(in []ir.Type) ([]ir.Type, error) {
	return inferExtremum(in, o.Axes, o.KeepDims)
}
func (o ReduceMin) Infer(in []ir.Type) ([]ir.Type, error) {
	return inferExtremum(in, o.Axes, o.KeepDims)
}
