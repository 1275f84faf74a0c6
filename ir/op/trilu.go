package op

import (
	"fmt"

	"aitk/ir"
)

// Trilu keeps the lower triangle of each matrix in the last two axes, the elements with column - row <= K, or with Upper those with
// column - row >= K, and makes the rest 0. Any element type.
type Trilu struct {
	over0
	Upper bool
	K     int64
}

func (o Trilu) Infer(in []ir.Type) ([]ir.Type, error) {
	if err := operands(in, 1); err != nil {
		return nil, err
	}
	if len(in[0].Shape) < 2 {
		return nil, fmt.Errorf("the operand has rank %d, want at least 2", len(in[0].Shape))
	}
	return one(in[0].DType, in[0].Shape), nil
}
