package op

import (
	"math"
	"slices"

	"aitk/ir"
)

// RMSNorm divides by the root of the mean square over the axes from Axis (0 <= Axis < rank) to the last: x / sqrt(mean(x*x) + Eps) * scale.
//
//	x [rows..., cols...], scale [cols...] -> like x
//
// cols are the axes from Axis on; squares are summed in index order.
type RMSNorm struct {
	over0
	Axis int64
	Eps  float64
}

// RMSNormGrad is the gradient of RMSNorm; the mean square is computed again from x.
//
//	x [rows..., cols...], scale [cols...], dy like x -> dx like x, dscale like scale
//
// dscale = sum over rows of dy*x/rms, in row order within NormBlocks blocks of rows, then block by block. dx may be written over x or dy.
type RMSNormGrad struct {
	over0or2
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

// Infer gives the types of x and scale.
func (o RMSNormGrad) Infer(in []ir.Type) ([]ir.Type, error) {
	if err := inferRowNorm(in, o.Axis, o.Eps, "x", "scale", "dy"); err != nil {
		return nil, err
	}
	return []ir.Type{in[0], in[1]}, nil
}

// inverseRMS is 1/sqrt(mean(row*row) + eps).
func inverseRMS(row []float64, eps float64) float64 {
	var squares float64
	for _, x := range row {
		squares += x * x
	}
	return 1 / math.Sqrt(squares/float64(len(row))+eps)
}

// Eval takes row by row.
func (o RMSNorm) Eval(in, out []ir.Tensor) {
	x, scale, y := in[0].F, in[1].F, out[0].F
	cols := len(scale)
	for r := range in[0].Type.Shape[:o.Axis].Elems() {
		at := int(r) * cols
		inv := inverseRMS(x[at:at+cols], o.Eps)
		for i, s := range scale {
			y[at+i] = x[at+i] * inv * s
		}
	}
}

// Eval takes row by row: with g = dy*scale and hat = x/rms, dx = (g - hat*mean(g*hat)) / rms.
func (o RMSNormGrad) Eval(in, out []ir.Tensor) {
	x, scale, dy := in[0].F, in[1].F, in[2].F
	dx, dscale := out[0].F, out[1].F
	cols := len(scale)
	for r := range in[0].Type.Shape[:o.Axis].Elems() {
		at := int(r) * cols
		inv := inverseRMS(x[at:at+cols], o.Eps)
		var dot float64
		for i, s := range scale {
			hat := x[at+i] * inv
			dot += dy[at+i] * s * hat
			dscale[i] += dy[at+i] * hat
		}
		for i, s := range scale {
			dx[at+i] = inv * (dy[at+i]*s - x[at+i]*inv*dot/float64(cols))
		}
	}
}

// Grad is RMSNormGrad.
func (o RMSNorm) Grad(b *ir.Builder, n *ir.Node, dOut []*ir.Value) []*ir.Value {
	return slices.Clone(b.Multi(RMSNormGrad{Axis: o.Axis, Eps: o.Eps}, n.In[0], n.In[1], dOut[0]))
}

// NoGradReason says why gradients stop here.
func (RMSNormGrad) NoGradReason() string { return noSecond }

// Decompose is the definition.
func (o RMSNorm) Decompose(b *ir.Builder, in []*ir.Value) []*ir.Value {
	x := wide(b, in[0])
	square := b.Add(ReduceMean{Axes: axesFrom(o.Axis, len(x.Type.Shape)), KeepDims: true}, b.Add(Mul{}, x, x))
	y := b.Add(Mul{}, x, b.Add(Rsqrt{}, b.Add(Add{}, square, b.Scalar(x.Type.DType, o.Eps))))
	return []*ir.Value{narrow(b, b.Add(Mul{}, y, wide(b, in[1])), in[0].Type.DType)}
}

// Cost: two for the mean square, two for the result.
func (RMSNorm) Cost(in, out []ir.Type) ir.Work { return perElement(4, in, out) }

// Cost: two for the mean square, ten for the gradients; scratch for the partial sums of dscale.
func (o RMSNormGrad) Cost(in, out []ir.Type) ir.Work {
	w := perElement(12, in, out)
	w.ScratchBytes, w.PartialBytes = normScratch(in[0].Shape, o.Axis, 1), normPartials(in[0].Shape, o.Axis)
	return w
}

// Samples are rowNormSamples.
func (RMSNorm) Samples() []ir.Sample {
	return rowNormSamples(func(axis int64, eps float64) ir.Op { return RMSNorm{Axis: axis, Eps: eps} }, "x", "scale")
}

// Samples are rowNormSamples.
func (RMSNormGrad) Samples() []ir.Sample {
	return rowNormSamples(func(axis int64, eps float64) ir.Op { return RMSNormGrad{Axis: axis, Eps: eps} }, "x", "scale", "dy")
}
