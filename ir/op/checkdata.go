package op

import (
	"fmt"

	"aitk/ir"
)

// dataChecker is implemented by ops whose operands' content may be wrong although their types are right.
type dataChecker interface{ checkData(in []ir.Tensor) error }

// CheckData tells what is wrong with the content of operands: an index out of range. Whoever calls Eval on content from outside calls
// this first, since Eval of such operands panics with a *ir.Bug. Devices find the same in their kernels. The error is an *ir.Error of kind Failed.
func CheckData(o ir.Op, in []ir.Tensor) error {
	c, ok := o.(dataChecker)
	if !ok {
		return nil
	}
	if err := c.checkData(in); err != nil {
		return ir.Errorf(ir.Failed, ir.Origin{}, "%s: %w", ir.OpName(o), err)
	}
	return nil
}

// checkIndices checks that every index selects one of n entries along an axis, from the front or, negative, from the end.
func checkIndices(idx []int64, n, axis int64) error {
	for _, i := range idx {
		if i < -n || i >= n {
			return fmt.Errorf("index %d is outside extent %d of axis %d", i, n, axis)
		}
	}
	return nil
}

// entry is the entry among n that index i selects.
func entry(i, n int64) int64 {
	if i < -n || i >= n {
		panic(ir.Bugf("index %d is outside extent %d, and CheckData was not asked", i, n))
	}
	if i < 0 {
		i += n
	}
	return i
}
