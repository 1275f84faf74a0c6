package op

import (
	"math"

	"aitk/ir"
)

// BatchNormInference normalises each channel by given statistics: (x - mean) / sqrt(var + Eps) * scale + bias.
//
//	x [N, C, ...], scale [C], bias [C], mean [C], var [C] -> like x
//
// No gradient flows to mean and var. The result may be written over x.
type BatchNormInference struct {
	over0
	Eps float64
}

// BatchNormInferenceGrad is the gradient of BatchNormInference with mean and var held fixed.
//
//	x [N, C, ...], scale [C], mean [C], var [C], dy like x -> dx like x, dscale [C], dbias [C]
//
// dx may be written over x or dy.
type BatchNormInferenceGrad struct {
	over0or4
	Eps float64
}

// Infer gives x's type.
func (o BatchNormInference) Infer(in []ir.Type) ([]ir.Type, error) {
	if err := inferChannelNorm(in, o.Eps, "x", "scale", "bias", "mean", "var"); err != nil {
		return nil, err
	}
	return []ir.Type{in[0]}, nil
}

// Infer gives the types of x, scale, scale.
func (o BatchNormInferenceGrad) Infer(in []ir.Type) ([]ir.Type, error) {
	if err := inferChannelNorm(in, o.Eps, "x", "scale", "mean", "var", "dy"); err != nil {
		return nil, err
	}
	return []ir.Type{in[0], in[1], in[1]}, nil
}

// Eval takes channel by channel.
func (o BatchNormInference) Eval(in, out []ir.Tensor) {
	x, scale, bias, mean, variance, y := in[0].F, in[1].F, in[2].F, in[3].F, in[4].F, out[0].F
	s := in[0].Type.Shape
	for c := range s[1] {
		rstd := 1 / math.Sqrt(variance[c]+o.Eps)
		channel(s, c, func(at int64) { y[at] = (x[at]-mean[c])*rstd*scale[c] + bias[c] })
	}
}

// Eval takes channel by channel.
func (o BatchNormInferenceGrad) Eval(in, out []ir.Tensor) {
	x, scale, mean, variance, dy := in[0].F, in[1].F, in[2].F, in[3].F, in[4].F
	dx, dscale, dbias := out[0].F, out[1].F, out[2].F
	s := in[0].Type.Shape
	for c := range s[1] {
		rstd := 1 / math.Sqrt(variance[c]+o.Eps)
		channel(s, c, func(at int64) {
			dscale[c] += dy[at] * (x[at] - mean[c]) * rstd
			dbias[c] += dy[at]
			dx[at] = dy[at] * rstd * scale[c]
		})
	}
}

// Grad is BatchNormInferenceGrad; statistics are constants here.
func (o BatchNormInference) Grad(b *ir.Builder, n *ir.Node, dOut []*ir.Value) []*ir.Value {
	x, scale, mean, variance := n.In[0], n.In[1], n.In[3], n.In[4]
	d := b.Multi(BatchNormInferenceGrad{Eps: o.Eps}, x, scale, mean, variance, dOut[0])
	return []*ir.Value{d[0], d[1], d[2], nil, nil}
}

// NoGradReason says why gradients stop here.
func (BatchNormInferenceGrad) NoGradReason() string { return noSecond }

// Decompose is the definition.
func (o BatchNormInference) Decompose(b *ir.Builder, in []*ir.Value) []*ir.Value {
	s := in[0].Type.Shape
	each := func(v *ir.Value) *ir.Value { return perChannelShaped(b, v, s) }
	x, scale, bias, mean, variance := wide(b, in[0]), wide(b, in[1]), wide(b, in[2]), wide(b, in[3]), wide(b, in[4])
	rstd := b.Add(Rsqrt{}, b.Add(Add{}, variance, b.Scalar(x.Type.DType, o.Eps)))
	y := b.Add(Mul{}, b.Add(Sub{}, x, each(mean)), each(rstd))
	y = b.Add(Add{}, b.Add(Mul{}, y, each(scale)), each(bias))
	return []*ir.Value{narrow(b, y, in[0].Type.DType)}
}

// Cost: difference, two products, sum.
func (BatchNormInference) Cost(in, out []ir.Type) ir.Work { return perElement(4, in, out) }

// Cost: five for the sums, two for dx.
func (BatchNormInferenceGrad) Cost(in, out []ir.Type) ir.Work { return perElement(7, in, out) }

// Samples are channelNormSamples; mean and var, operands 3 and 4, are held fixed.
func (BatchNormInference) Samples() []ir.Sample {
	all := channelNormSamples(func(eps float64) ir.Op { return BatchNormInference{Eps: eps} }, "x", "scale", "bias", "mean", "var")
	for i := range all {
		all[i].NoDiff = append(all[i].NoDiff, 3, 4)
	}
	return all
}

// Samples are channelNormSamples.
func (BatchNormInferenceGrad) Samples() []ir.Sample {
	return channelNormSamples(func(eps float64) ir.Op { return BatchNormInferenceGrad{Eps: eps} }, "x", "scale", "mean", "var", "dy")
}
