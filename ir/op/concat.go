package op

import (
	"errors"
	"fmt"

	"aitk/ir"
)

// Concat joins any number of operands, at least one, along Axis. They have one element type, any, and agree in all other extents.
type Concat struct{ Axis int64 }

func (o Concat) Infer(in []ir.Type) ([]ir.Type, error) {
	if len(in) == 0 {
		return nil, errors.New("takes at least 1 operand, got 0")
	}
	if err := anyOperands(in); err != nil {
		return nil, err
	}
	first := in[0].Shape
	if err := wantAxis(o.Axis, len(first)); err != nil {
		return nil, err
	}
	s := first.Clone()
	for i, t := range in[1:] {
		if err := wantSame(in, 0, i+1); err != nil {
			return nil, err
		}
		ok := len(t.Shape) == len(first)
		for a := 0; ok && a < len(first); a++ {
			ok = int64(a) == o.Axis || t.Shape[a] == first[a]
		}
		if !ok {
			return nil, fmt.Errorf("shapes %v and %v of operands 0 and %d do not join along axis %d", first, t.Shape, i+1, o.Axis)
		}
		s[o.Axis] += t.Shape[o.Axis]
		if err := s.Check(); err != nil {
			return nil, err
		}
	}
	return one(in[0].DType, s), nil
}
