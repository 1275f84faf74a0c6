package ir_test

import (
	"errors"
	"fmt"

	"aitk/ir"
)

// A vocabulary for tests: package ir knows no op, and its tests need none of the real ones.
type (
	Same struct { // identity with an attribute of every kind
		Flag  bool
		K     int64
		U     uint64
		X     float64
		Name  string
		List  []int64
		Shape ir.Shape
		DType ir.DType
		ToXY  ir.Space
	}
	Join  struct{}                // two operands of one type
	Halve struct{}                // two outputs of the operand's type
	Sink  struct{}                // no output
	Move  struct{ To ir.Space }   // another space
	Size  struct{ Dims ir.Shape } // no operand; allocates nothing
	Panic struct{}                // a shape rule with a bug
)

func one(in []ir.Type) ([]ir.Type, error) {
	if len(in) != 1 {
		return nil, fmt.Errorf("wants 1 operand, has %d", len(in))
	}
	return in, nil
}

func (Same) Infer(in []ir.Type) ([]ir.Type, error) { return one(in) }
func (Join) Infer(in []ir.Type) ([]ir.Type, error) {
	if len(in) != 2 || !in[0].Equal(in[1]) {
		return nil, errors.New("operands differ")
	}
	return in[:1], nil
}
func (Halve) Infer(in []ir.Type) ([]ir.Type, error) {
	out, err := one(in)
	return append(out, out...), err
}
func (Sink) Infer(in []ir.Type) ([]ir.Type, error) { return nil, nil }
func (m Move) Infer(in []ir.Type) ([]ir.Type, error) {
	if _, err := one(in); err != nil {
		return nil, err
	}
	t := in[0]
	t.Space = m.To
	return []ir.Type{t}, nil
}
func (s Size) Infer(in []ir.Type) ([]ir.Type, error) {
	return []ir.Type{ir.T(ir.F32, s.Dims...)}, s.Dims.Check()
}
func (Panic) Infer(in []ir.Type) ([]ir.Type, error) { return in[7:], nil }

func vocabulary() ir.Vocabulary {
	return ir.NewVocabulary([]ir.Op{Same{}, Join{}, Halve{}, Sink{}, Move{}, Size{}, Panic{}})
}
