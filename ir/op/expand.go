package op

import (
	"fmt"

	"aitk/ir"
)

// Expand repeats elements along axes of extent 1 and new leading axes, by the rules of broadcasting, to exactly Shape. Any element type.
type Expand struct{ Shape ir.Shape }

func (o Expand) Infer(in []ir.Type) ([]ir.Type, error) {
	if err := operands(in, 1); err != nil {
		return nil, err
	}
	if err := o.Shape.Check(); err != nil {
		return nil, err
	}
	s, err := ir.Broadcast(in[0].Shape, o.Shape)
	if err != nil || !s.Equal(o.Shape) {
		return nil, fmt.Errorf("shape %v does not stretch to %v", in[0].Shape, o.Shape)
	}
	return one(in[0].DType, o.Shape), nil
}
