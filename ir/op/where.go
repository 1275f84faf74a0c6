package op

import (
	"fmt"

	"aitk/ir"
)

// Where (cond, x, y) takes x where cond is true, else y; all three broadcast. cond is bool; x and y have one element type, any.
// What is not taken has no influence, NaN or not.
type Where struct{ over12 }

func (Where) Infer(in []ir.Type) ([]ir.Type, error) {
	if err := operands(in, 3); err != nil {
		return nil, err
	}
	if in[0].DType != ir.Bool {
		return nil, fmt.Errorf("operand 0 is %v, want bool", in[0].DType)
	}
	if err := wantSame(in, 1, 2); err != nil {
		return nil, err
	}
	s, err := ir.Broadcast(in[1].Shape, in[2].Shape)
	if err != nil {
		return nil, err
	}
	s, err = ir.Broadcast(in[0].Shape, s)
	return one(in[1].DType, s), err
}
