package op

import "aitk/ir"

// CumSum is the running sum along Axis, in index order; Exclusive leaves the element itself out, Reverse runs from the last element
// to the first. Floats accumulate in float64 and are rounded once an element; integers wrap.
type CumSum struct {
	over0
	Axis               int64
	Exclusive, Reverse bool
}

func (o CumSum) Infer(in []ir.Type) ([]ir.Type, error) {
	out, err := inferNumbers(in)
	if err != nil {
		return nil, err
	}
	if err := wantAxis(o.Axis, len(in[0].Shape)); err != nil {
		return nil, err
	}
	return out, nil
}
