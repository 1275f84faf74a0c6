package op

import "aitk/ir"

// The comparisons. Operands have one element type and broadcast; the result is bool. NaN compares false with everything.
type (
	// Equal is x == y, for any element type.
	Equal struct {
		over01
		boolResult
	}
	// Less is x < y, for numbers.
	Less struct {
		over01
		boolResult
	}
	// LessEqual is x <= y, for numbers.
	LessEqual struct {
		over01
		boolResult
	}
	// IsNaN tells which floats are NaN.
	IsNaN struct{ boolResult }
	// IsInf tells which floats are infinite, of either sign.
	IsInf struct{ boolResult }
)

// inferCompare broadcasts two operands of one element type to bool.
func inferCompare(in []ir.Type, numbers bool) ([]ir.Type, error) {
	if err := operands(in, 2); err != nil {
		return nil, err
	}
	if numbers {
		if err := wantNumber(in, 0); err != nil {
			return nil, err
		}
	}
	if err := wantSame(in, 0, 1); err != nil {
		return nil, err
	}
	s, err := ir.Broadcast(in[0].Shape, in[1].Shape)
	return one(ir.Bool, s), err
}

// inferQuestion maps floats to bool.
func inferQuestion(in []ir.Type) ([]ir.Type, error) {
	if _, err := inferFloats(in); err != nil {
		return nil, err
	}
	return one(ir.Bool, in[0].Shape), nil
}

func (Equal) Infer(in []ir.Type) ([]ir.Type, error)     { return inferCompare(in, false) }
func (Less) Infer(in []ir.Type) ([]ir.Type, error)      { return inferCompare(in, true) }
func (LessEqual) Infer(in []ir.Type) ([]ir.Type, error) { return inferCompare(in, true) }
func (IsNaN) Infer(in []ir.Type) ([]ir.Type, error)     { return inferQuestion(in) }
func (IsInf) Infer(in []ir.Type) ([]ir.Type, error)     { return inferQuestion(in) }
