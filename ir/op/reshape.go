package op

import (
	"fmt"

	"aitk/ir"
)

// Reshape gives the same elements in row-major order another shape. It is a view: it moves nothing.
type Reshape struct {
	viewOf0
	Shape ir.Shape
}

func (o Reshape) Infer(in []ir.Type) ([]ir.Type, error) {
	if len(in) == 1 && in[0].DType == ir.I4 && in[0].Space == ir.Device {
		in = []ir.Type{{DType: ir.I8, Shape: in[0].Shape}} // a view may be of packed elements
		out, err := o.Infer(in)
		if err != nil {
			return nil, err
		}
		out[0].DType = ir.I4
		return out, nil
	}
	if err := operands(in, 1); err != nil {
		return nil, err
	}
	if err := o.Shape.Check(); err != nil {
		return nil, err
	}
	if n, m := in[0].Elems(), o.Shape.Elems(); n != m {
		return nil, fmt.Errorf("shape %v has %d elements, the operand %v has %d", o.Shape, m, in[0].Shape, n)
	}
	return one(in[0].DType, o.Shape), nil
}
