package op

import (
	"fmt"

	"aitk/ir"
)

// Cast converts to element type To. Float to float rounds to nearest even; float to integer cuts the fraction, saturates at the
// bounds and makes NaN 0; integers wrap; anything but 0 (NaN too) is true; true is 1. The gradient is a Cast back, and stops where either side is no float.
type Cast struct {
	over0
	To ir.DType
}

func (o Cast) Infer(in []ir.Type) ([]ir.Type, error) {
	if err := operands(in, 1); err != nil {
		return nil, err
	}
	if !isNumber(o.To) && o.To != ir.Bool || o.To == ir.I4 {
		return nil, fmt.Errorf("cannot cast to %v", o.To)
	}
	return one(o.To, in[0].Shape), nil
}
