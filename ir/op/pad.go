package op

import (
	"fmt"

	"aitk/ir"
)

// Pad surrounds the operand with Before and After elements of Value along each axis; no entry is negative. Any element type that
// holds Value. The gradient is a Slice.
type Pad struct {
	Before, After []int64
	Value         float64
}

func (o Pad) Infer(in []ir.Type) ([]ir.Type, error) {
	if err := operands(in, 1); err != nil {
		return nil, err
	}
	s := in[0].Shape.Clone()
	if len(o.Before) != len(s) || len(o.After) != len(s) {
		return nil, fmt.Errorf("has %d and %d widths for rank %d", len(o.Before), len(o.After), len(s))
	}
	for a := range s {
		const most = 1 << 60 // three of these do not overflow
		if o.Before[a] < 0 || o.After[a] < 0 || o.Before[a] > most || o.After[a] > most {
			return nil, fmt.Errorf("axis %d: widths %d and %d are negative or too large", a, o.Before[a], o.After[a])
		}
		s[a] = min(s[a], most) + o.Before[a] + o.After[a]
	}
	if err := s.Check(); err != nil {
		return nil, err
	}
	if err := wantValue(in[0].DType, o.Value); err != nil {
		return nil, err
	}
	return one(in[0].DType, s), nil
}
