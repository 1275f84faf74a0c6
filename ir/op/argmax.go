package op

import (
	"fmt"

	"aitk/ir"
)

// ArgMax is the i64 index of the greatest element along Axis, or with Min of the smallest; the first one at ties, or with Last the last one.
// NaN beats every number, as in numpy. KeepDims leaves the axis in place with extent 1.
type ArgMax struct {
	Axis           int64
	KeepDims, Last bool
	Min            bool
}

// NoGradReason says why no gradient flows.
func (ArgMax) NoGradReason() string { return "integer result" }

func (o ArgMax) Infer(in []ir.Type) ([]ir.Type, error) {
	if _, err := inferNumbers(in); err != nil {
		return nil, err
	}
	if err := wantAxis(o.Axis, len(in[0].Shape)); err != nil {
		return nil, err
	}
	if in[0].Shape[o.Axis] == 0 {
		return nil, fmt.Errorf("axis %d of %v has no elements to choose from", o.Axis, in[0].Shape)
	}
	return one(ir.I64, reducedShape(in[0].Shape, []int64{o.Axis}, o.KeepDims)), nil
}
