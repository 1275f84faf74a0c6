package op

import "aitk/ir"

// SumSquares is the sum of the squares of all elements, for gradient norms.
//
//	x [...] -> f32[] (f64[] for f64)
//
// Squares are summed in index order within blocks of 4096 elements, then block by block, wider than the result and rounded once.
type SumSquares struct{}

// Infer gives the scalar.
func (SumSquares) Infer(in []ir.Type) ([]ir.Type, error) {
	if err := wantOperands(in, "x"); err != nil {
		return nil, err
	}
	if err := wantFloats(in, 0); err != nil {
		return nil, err
	}
	if in[0].DType == ir.F64 {
		return []ir.Type{ir.T(ir.F64)}, nil
	}
	return []ir.Type{ir.T(ir.F32)}, nil
}

// AllFinite is true if ok is and no element of x is NaN or infinite.
//
//	ok bool[], x [...] -> bool[]
//
// It chains: the flag of one tensor is the ok of the next, so once fallen it stays down. It updates state: it runs exactly once a step and
// may write over ok.
type AllFinite struct{}

// Infer gives bool[].
func (AllFinite) Infer(in []ir.Type) ([]ir.Type, error) {
	if err := wantOperands(in, "ok", "x"); err != nil {
		return nil, err
	}
	if err := wantScalar(in, 0, "ok", ir.Bool); err != nil {
		return nil, err
	}
	if err := wantFloats(in, 1); err != nil {
		return nil, err
	}
	return []ir.Type{in[0]}, nil
}

// NoGradReason says why gradients stop here.
func (AllFinite) NoGradReason() string { return "boolean result" }
