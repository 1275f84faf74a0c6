package devicetest

import (
	"fmt"
	"math"

	"aitk/ir"
	"aitk/ir/op"
)

// tolerances bound the deviation of a float element, as a fraction of the largest magnitude in its tensor. They leave a device the choice
// of its summation order and of its approximations, not of its precision: sums of narrow floats are wider than their dtype.
func tolerance(d ir.DType) float64 {
	switch d {
	case ir.F64:
		return 1e-12
	case ir.F32:
		return 2e-6
	case ir.F16:
		return 1e-3
	case ir.BF16:
		return 8e-3
	}
	return 0
}

// exact tells whether an op only chooses or moves elements, so that every bit is determined. Integers and bools are exact for all ops.
func exact(o ir.Op) bool {
	switch o.(type) {
	case op.Neg, op.Abs, op.Sign, op.Floor, op.Ceil, op.Round, op.Relu, op.ReluGrad, op.Clip, op.Max, op.Min, op.Where,
		op.Transpose, op.Expand, op.Concat, op.Slice, op.Unslice, op.Pad, op.Fill, op.Trilu,
		op.Gather, op.GatherElements, op.GatherND, op.ReduceMax, op.ReduceMin, op.MaxPool:
		return true
	}
	return false
}

// compare tells the first element that is wrong. want may hold f32 unrounded.
func compare(o ir.Op, got, want ir.Tensor) error {
	for i, x := range want.I {
		if got.I[i] != x {
			return fmt.Errorf("element %d of %v is %d, want %d", i, want.Type, got.I[i], x)
		}
	}
	want = ir.Tensor{Type: want.Type, F: append([]float64{}, want.F...)}
	want.Round()
	largest := 0.0
	for _, x := range want.F {
		if a := math.Abs(x); a > largest && !math.IsInf(a, 0) {
			largest = a
		}
	}
	limit := tolerance(want.Type.DType) * largest
	if exact(o) {
		limit = 0
	}
	for i, x := range want.F {
		y := got.F[i]
		if x == y || x != x && y != y {
			continue
		}
		if d := math.Abs(x - y); !(d <= limit) || math.IsInf(d, 0) {
			return fmt.Errorf("element %d of %v is %v, want %v: off by %.2g, allowed are %.2g", i, want.Type, y, x, d, limit)
		}
	}
	return nil
}
