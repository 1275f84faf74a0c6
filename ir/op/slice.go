package op

import (
	"fmt"

	"aitk/ir"
)

// Slice takes along each axis the elements Starts, Starts+Steps, ... before Ends. One entry per axis, normalised: 0 <= start <= extent,
// step != 0; for a positive step 0 <= end <= extent, for a negative one the first element read is start and end, exclusive, may be -1.
// Any element type. The gradient is an Unslice.
type Slice struct{ Starts, Ends, Steps []int64 }

// Unslice is the adjoint of Slice: it writes the operand into zeros of Shape, element i of an axis to Starts + i*Steps. Numbers only.
type Unslice struct {
	Shape         ir.Shape
	Starts, Steps []int64
}

func (o Slice) Infer(in []ir.Type) ([]ir.Type, error) {
	if err := operands(in, 1); err != nil {
		return nil, err
	}
	dims := in[0].Shape
	if len(o.Starts) != len(dims) || len(o.Ends) != len(dims) || len(o.Steps) != len(dims) {
		return nil, fmt.Errorf("has %d starts, %d ends and %d steps for rank %d", len(o.Starts), len(o.Ends), len(o.Steps), len(dims))
	}
	s := make(ir.Shape, len(dims))
	for a, dim := range dims {
		start, end, step := o.Starts[a], o.Ends[a], o.Steps[a]
		least := int64(0)
		if step < 0 {
			least = -1
		}
		if step == 0 || start < 0 || start > dim || end < least || end > dim || step < 0 && start == dim && end < start {
			return nil, fmt.Errorf("axis %d: %d:%d:%d is no range of extent %d", a, start, end, step, dim)
		}
		switch {
		case step > 0 && end > start:
			s[a] = (end-start-1)/step + 1
		case step < 0 && start > end:
			s[a] = (start-end-1)/-step + 1 // right for the least int64 too: the quotient is 0
		}
	}
	return one(in[0].DType, s), nil
}

func (o Unslice) Infer(in []ir.Type) ([]ir.Type, error) {
	if err := operands(in, 1); err != nil {
		return nil, err
	}
	if err := wantNumber(in, 0); err != nil {
		return nil, err
	}
	if err := o.Shape.Check(); err != nil {
		return nil, err
	}
	s, rank := in[0].Shape, len(o.Shape)
	if len(s) != rank || len(o.Starts) != rank || len(o.Steps) != rank {
		return nil, fmt.Errorf("has %d starts and %d steps for an operand of rank %d in shape %v", len(o.Starts), len(o.Steps), len(s), o.Shape)
	}
	for a, dim := range o.Shape {
		start, step, n := o.Starts[a], o.Steps[a], s[a]
		ok := step != 0 && start >= 0 && start <= dim
		if ok && n > 0 {
			room := dim - 1 - start // elements after the first one
			if step < 0 {
				room = start
			}
			ok = start < dim && (n == 1 || step >= -dim && step <= dim && n-1 <= room/max(step, -step))
		}
		if !ok {
			return nil, fmt.Errorf("axis %d: %d elements from %d by %d do not fit extent %d", a, n, start, step, dim)
		}
	}
	return one(in[0].DType, o.Shape), nil
}
