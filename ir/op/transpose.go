package op

import (
	"fmt"

	"aitk/ir"
)

// Transpose permutes axes: axis i of the result is axis Perm[i] of the operand. Any element type.
type Transpose struct{ Perm []int64 }

func (o Transpose) Infer(in []ir.Type) ([]ir.Type, error) {
	if err := operands(in, 1); err != nil {
		return nil, err
	}
	rank := len(in[0].Shape)
	seen := make([]bool, rank)
	bad := len(o.Perm) != rank
	for _, p := range o.Perm {
		if p < 0 || p >= int64(rank) || seen[p] {
			bad = true
			break
		}
		seen[p] = true
	}
	if bad {
		return nil, fmt.Errorf("%v is no permutation of %s", o.Perm, plural(rank, "axis"))
	}
	s := make(ir.Shape, rank)
	for i, p := range o.Perm {
		s[i] = in[0].Shape[p]
	}
	return one(in[0].DType, s), nil
}
