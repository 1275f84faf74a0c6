package op

import (
	"fmt"

	"aitk/ir"
)

// BatchNorm normalises each channel by the statistics of the batch (training): (x - mean) / sqrt(variance + Eps) * scale + bias.
//
//	x [N, C, ...], scale [C], bias [C] -> y like x, mean [C], variance [C]
//
// mean and variance are taken over all axes but the second; the variance is the biased one, which ONNX also averages into the running
// variance. Sums run over (sample, position) in index order.
type BatchNorm struct{ Eps float64 }

// Infer gives the types of x, scale, scale.
func (o BatchNorm) Infer(in []ir.Type) ([]ir.Type, error) {
	if err := inferChannelNorm(in, o.Eps, "x", "scale", "bias"); err != nil {
		return nil, err
	}
	return []ir.Type{in[0], in[1], in[1]}, nil
}

// BatchNormGrad is the gradient of BatchNorm's y, through the statistics; mean and var are the forward's.
//
//	x [N, C, ...], scale [C], mean [C], var [C], dy like x -> dx like x, dscale [C], dbias [C]
type BatchNormGrad struct{ Eps float64 }

// Infer gives the types of x, scale, scale.
func (o BatchNormGrad) Infer(in []ir.Type) ([]ir.Type, error) {
	if err := inferChannelNorm(in, o.Eps, "x", "scale", "mean", "var", "dy"); err != nil {
		return nil, err
	}
	return []ir.Type{in[0], in[1], in[1]}, nil
}

// NoGradReason says why gradients stop here.
func (BatchNormGrad) NoGradReason() string { return noSecond }

// BatchNormInference normalises each channel by given statistics: (x - mean) / sqrt(var + Eps) * scale + bias.
//
//	x [N, C, ...], scale [C], bias [C], mean [C], var [C] -> like x
//
// No gradient flows to mean and var.
type BatchNormInference struct{ Eps float64 }

// Infer gives x's type.
func (o BatchNormInference) Infer(in []ir.Type) ([]ir.Type, error) {
	if err := inferChannelNorm(in, o.Eps, "x", "scale", "bias", "mean", "var"); err != nil {
		return nil, err
	}
	return []ir.Type{in[0]}, nil
}

// BatchNormInferenceGrad is the gradient of BatchNormInference with mean and var held fixed.
//
//	x [N, C, ...], scale [C], mean [C], var [C], dy like x -> dx like x, dscale [C], dbias [C]
type BatchNormInferenceGrad struct{ Eps float64 }

// Infer gives the types of x, scale, scale.
func (o BatchNormInferenceGrad) Infer(in []ir.Type) ([]ir.Type, error) {
	if err := inferChannelNorm(in, o.Eps, "x", "scale", "mean", "var", "dy"); err != nil {
		return nil, err
	}
	return []ir.Type{in[0], in[1], in[1]}, nil
}

// NoGradReason says why gradients stop here.
func (BatchNormInferenceGrad) NoGradReason() string { return noSecond }

// inferChannelNorm checks x [N, C, ...] and operands like x (dy) or [C] (the others).
func inferChannelNorm(in []ir.Type, eps float64, names ...string) error {
	if err := wantOperands(in, names...); err != nil {
		return err
	}
	x := in[0].Shape
	if len(x) < 2 {
		return fmt.Errorf("x must have rank 2 or more ([N,C,...]), got shape %v", x)
	}
	for i, name := range names {
		if err := wantFloats(in, 0, i); err != nil {
			return err
		}
		want := x[1:2]
		if name == "x" || name == "dy" {
			want = x
		}
		if err := wantShape(in, i, name, want); err != nil {
			return err
		}
	}
	return wantEps(eps)
}
