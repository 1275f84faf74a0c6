package op

import (
	"fmt"
	"strings"

	"aitk/ir"
)

// wantOperands is operands with the operands' names, in order, for the message.
func wantOperands(in []ir.Type, names ...string) error {
	if len(in) != len(names) {
		return fmt.Errorf("takes %s (%s), got %d", plural(len(names), "operand"), strings.Join(names, ", "), len(in))
	}
	return anyOperands(in)
}

// wantFloats checks that the operands at the given positions are float tensors of one dtype.
func wantFloats(in []ir.Type, at ...int) error {
	for _, i := range at {
		if err := wantFloat(in, i); err != nil {
			return err
		}
		if err := wantSame(in, at[0], i); err != nil {
			return err
		}
	}
	return nil
}

// wantShape checks one operand's shape against what another operand demands.
func wantShape(in []ir.Type, i int, name string, want ir.Shape) error {
	if in[i].Shape.Equal(want) {
		return nil
	}
	return fmt.Errorf("%s must have shape %v, got %v", name, want, in[i].Shape)
}

// wantScalar checks that operand i is of rank 0 and dtype d.
func wantScalar(in []ir.Type, i int, name string, d ir.DType) error {
	if in[i].DType == d && len(in[i].Shape) == 0 {
		return nil
	}
	return fmt.Errorf("%s must be %v, got %v", name, ir.T(d), in[i])
}

// wantAxis checks that axis is one of a tensor of this rank, counted from the front; negative axes are the importer's to resolve.
func wantAxis(axis int64, rank int) error {
	if axis < 0 || axis >= int64(rank) {
		return fmt.Errorf("axis %d is outside rank %d", axis, rank)
	}
	return nil
}
