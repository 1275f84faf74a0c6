package op

import (
	"fmt"

	"aitk/ir"
)

// LayerNorm normalises over the axes from Axis (0 <= Axis < rank) to the last: (x - mean) / sqrt(variance + Eps) * scale + bias.
//
//	x [rows..., cols...], scale [cols...], bias [cols...] (optional) -> like x
//
// cols are the axes from Axis on. The variance is the biased one. Mean and then variance (of x - mean) are summed in index order.
type LayerNorm struct {
	Axis int64
	Eps  float64
}

// Infer gives x's type.
func (o LayerNorm) Infer(in []ir.Type) ([]ir.Type, error) {
	names := []string{"x", "scale", "bias"}
	if len(in) == 2 {
		names = names[:2]
	}
	if err := inferRowNorm(in, o.Axis, o.Eps, names...); err != nil {
		return nil, err
	}
	return []ir.Type{in[0]}, nil
}

// LayerNormGrad is the gradient of LayerNorm; mean and variance are computed again from x.
//
//	x [rows..., cols...], scale [cols...], dy like x -> dx like x, dscale like scale, dbias like scale
//
// dscale = sum over rows of dy*(x-mean)/std, dbias = sum over rows of dy, both in row order within blocks of rows, then block by block.
type LayerNormGrad struct {
	Axis int64
	Eps  float64
}

// Infer gives the types of x, scale, scale.
func (o LayerNormGrad) Infer(in []ir.Type) ([]ir.Type, error) {
	if err := inferRowNorm(in, o.Axis, o.Eps, "x", "scale", "dy"); err != nil {
		return nil, err
	}
	return []ir.Type{in[0], in[1], in[1]}, nil
}

// NoGradReason says why gradients stop here.
func (LayerNormGrad) NoGradReason() string { return noSecond }

// inferRowNorm checks the operands of a norm over the axes from axis on. Operands called dy are like x, the others like scale.
func inferRowNorm(in []ir.Type, axis int64, eps float64, names ...string) error {
	if err := wantOperands(in, names...); err != nil {
		return err
	}
	x := in[0].Shape
	if err := wantAxis(axis, len(x)); err != nil {
		return err
	}
	for i, name := range names {
		if err := wantFloats(in, 0, i); err != nil {
			return err
		}
		want := x[axis:]
		if name == "x" || name == "dy" {
			want = x
		}
		if err := wantShape(in, i, name, want); err != nil {
			return err
		}
	}
	return wantEps(eps)
}

// wantEps checks what is added to a variance: negative or NaN would make square roots of negative numbers.
func wantEps(eps float64) error {
	if eps >= 0 {
		return nil
	}
	return fmt.Errorf("eps must not be negative, got %v", eps)
}
