package op

import "aitk/ir"

// RMSNorm divides by the root of the mean square over the axes from Axis (0 <= Axis < rank) to the last: x / sqrt(mean(x*x) + Eps) * scale.
//
//	x [rows..., cols...], scale [cols...] -> like x
//
// cols are the axes from Axis on; squares are summed in index order.
type RMSNorm struct {
	Axis int64
	Eps  float64
}

// Infer gives x's type.
func (o RMSNorm) Infer(in []ir.Type) ([]ir.Type, error) {
	if err := inferRowNorm(in, o.Axis, o.Eps, "x", "scale"); err != nil {
		return nil, err
	}
	return []ir.Type{in[0]}, nil
}

// RMSNormGrad is the gradient of RMSNorm; the mean square is computed again from x.
//
//	x [rows..., cols...], scale [cols...], dy like x -> dx like x, dscale like scale
//
// dscale = sum over rows of dy*x/rms, in row order within blocks of rows, then block by block.
type RMSNormGrad struct {
	Axis int64
	Eps  float64
}

// Infer gives the types of x and scale.
func (o RMSNormGrad) Infer(in []ir.Type) ([]ir.Type, error) {
	if err := inferRowNorm(in, o.Axis, o.Eps, "x", "scale", "dy"); err != nil {
		return nil, err
	}
	return []ir.Type{in[0], in[1]}, nil
}

// NoGradReason says why gradients stop here.
func (RMSNormGrad) NoGradReason() string { return noSecond }
