package op

import (
	"fmt"

	"aitk/ir"
)

// The operations on booleans. Two operands broadcast.
type (
	// Not is true where x is false.
	Not struct {
		over0
		boolResult
	}
	// And is true where both are.
	And struct {
		over01
		boolResult
	}
	// Or is true where at least one is.
	Or struct {
		over01
		boolResult
	}
	// Xor is true where exactly one is.
	Xor struct {
		over01
		boolResult
	}
)

// inferLogic broadcasts n operands, all bool, to bool.
func inferLogic(in []ir.Type, n int) ([]ir.Type, error) {
	if err := operands(in, n); err != nil {
		return nil, err
	}
	s := ir.Shape{}
	for i, t := range in {
		if t.DType != ir.Bool {
			return nil, fmt.Errorf("operand %d is %v, want bool", i, t.DType)
		}
		var err error
		if s, err = ir.Broadcast(s, t.Shape); err != nil {
			return nil, err
		}
	}
	return one(ir.Bool, s), nil
}

func (Not) Infer(in []ir.Type) ([]ir.Type, error) { return inferLogic(in, 1) }
func (And) Infer(in []ir.Type) ([]ir.Type, error) { return inferLogic(in, 2) }
func (Or) Infer(in []ir.Type) ([]ir.Type, error)  { return inferLogic(in, 2) }
func (Xor) Infer(in []ir.Type) ([]ir.Type, error) { return inferLogic(in, 2) }
