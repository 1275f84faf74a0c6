package op

import (
	"fmt"
	"math"

	"aitk/ir"
)

// BatchNorm normalises each channel by the statistics of the batch (training): (x - mean) / sqrt(variance + Eps) * scale + bias.
//
//	x [N, C, ...], scale [C], bias [C] -> y like x, mean [C], variance [C]
//
// mean and variance are taken over all axes but the second; the variance is the biased one, which ONNX also averages into the running
// variance. Sums run over (sample, position) in index order, the mean's first. y may be written over x.
type BatchNorm struct {
	over0
	Eps float64
}

// BatchNormGrad is the gradient of BatchNorm's y, through the statistics; mean and var are the forward's.
//
//	x [N, C, ...], scale [C], mean [C], var [C], dy like x -> dx like x, dscale [C], dbias [C]
//
// dx may be written over x or dy.
type BatchNormGrad struct {
	over0or4
	Eps float64
}

// over0or4 lets output 0 be written over operand 0 or 4.
type over0or4 struct{}

func (over0or4) Alias() []ir.AliasPair { return []ir.AliasPair{{Out: 0, In: 4}, {Out: 0, In: 0}} }
func (over0or4) Stateful() bool        { return false }
func (over0or4) Stream() uint64        { return 0 }

// Infer gives the types of x, scale, scale.
func (o BatchNorm) Infer(in []ir.Type) ([]ir.Type, error) {
	if err := inferChannelNorm(in, o.Eps, "x", "scale", "bias"); err != nil {
		return nil, err
	}
	return []ir.Type{in[0], in[1], in[1]}, nil
}

// Infer gives the types of x, scale, scale.
func (o BatchNormGrad) Infer(in []ir.Type) ([]ir.Type, error) {
	if err := inferChannelNorm(in, o.Eps, "x", "scale", "mean", "var", "dy"); err != nil {
		return nil, err
	}
	return []ir.Type{in[0], in[1], in[1]}, nil
}

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

// channel visits the offsets of channel c of x [N, C, ...] in (sample, position) order.
func channel(x ir.Shape, c int64, visit func(at int64)) {
	inner := x[2:].Elems()
	for n := range x[0] {
		for i := range inner {
			visit((n*x[1]+c)*inner + i)
		}
	}
}

// perChannel is the number of elements of one channel.
func perChannel(x ir.Shape) float64 { return float64(x[0] * x[2:].Elems()) }

// Eval takes channel by channel.
func (o BatchNorm) Eval(in, out []ir.Tensor) {
	x, scale, bias := in[0].F, in[1].F, in[2].F
	y, mean, variance := out[0].F, out[1].F, out[2].F
	s := in[0].Type.Shape
	count := perChannel(s)
	for c := range s[1] {
		var sum, squares float64
		channel(s, c, func(at int64) { sum += x[at] })
		m := sum / count
		channel(s, c, func(at int64) { squares += (x[at] - m) * (x[at] - m) })
		mean[c], variance[c] = m, squares/count
		rstd := 1 / math.Sqrt(variance[c]+o.Eps)
		channel(s, c, func(at int64) { y[at] = (x[at]-m)*rstd*scale[c] + bias[c] })
	}
}

// Eval takes channel by channel: dx = scale/std * (dy - mean(dy) - hat*mean(dy*hat)).
func (o BatchNormGrad) Eval(in, out []ir.Tensor) {
	x, scale, mean, variance, dy := in[0].F, in[1].F, in[2].F, in[3].F, in[4].F
	dx, dscale, dbias := out[0].F, out[1].F, out[2].F
	s := in[0].Type.Shape
	count := perChannel(s)
	for c := range s[1] {
		rstd := 1 / math.Sqrt(variance[c]+o.Eps)
		hat := func(at int64) float64 { return (x[at] - mean[c]) * rstd }
		channel(s, c, func(at int64) {
			dscale[c] += dy[at] * hat(at)
			dbias[c] += dy[at]
		})
		channel(s, c, func(at int64) {
			dx[at] = scale[c] * rstd * (dy[at] - dbias[c]/count - hat(at)*dscale[c]/count)
		})
	}
}

// Grad is BatchNormGrad and, where gradients arrive at the statistics themselves, what they add: dmean/count + 2*(x-mean)/count*dvar.
func (o BatchNorm) Grad(b *ir.Builder, n *ir.Node, dOut []*ir.Value) []*ir.Value {
	x, scale, mean := n.In[0], n.In[1], n.Out[1]
	d := make([]*ir.Value, 3)
	if dOut[0] != nil {
		copy(d, b.Multi(BatchNormGrad{Eps: o.Eps}, x, scale, mean, n.Out[2], dOut[0])) // the slice is the node's own
	}
	s := x.Type.Shape
	xw := wide(b, x)
	share := func(v *ir.Value, times float64) *ir.Value {
		v = b.Add(Mul{}, wide(b, v), b.Scalar(xw.Type.DType, times/perChannel(s)))
		return perChannelShaped(b, v, s)
	}
	add := func(v *ir.Value) {
		v = narrow(b, v, x.Type.DType)
		if d[0] != nil {
			v = b.Add(Add{}, d[0], v)
		}
		d[0] = v
	}
	if dOut[1] != nil {
		add(b.Add(Expand{Shape: s.Clone()}, share(dOut[1], 1)))
	}
	if dOut[2] != nil {
		add(b.Add(Mul{}, b.Add(Sub{}, xw, perChannelShaped(b, wide(b, mean), s)), share(dOut[2], 2)))
	}
	return d
}

// perChannelShaped is v [C] as [1, C, 1...] of x's rank, to broadcast against x.
func perChannelShaped(b *ir.Builder, v *ir.Value, x ir.Shape) *ir.Value {
	s := make(ir.Shape, len(x))
	for i := range s {
		s[i] = 1
	}
	s[1] = x[1]
	return shaped(b, v, s)
}

// NoGradReason says why gradients stop here.
func (BatchNormGrad) NoGradReason() string { return noSecond }

// Decompose is the definition.
func (o BatchNorm) Decompose(b *ir.Builder, in []*ir.Value) []*ir.Value {
	x, s := wide(b, in[0]), in[0].Type.Shape
	axes := append([]int64{0}, axesFrom(2, len(s))...)
	mean := b.Add(ReduceMean{Axes: axes, KeepDims: true}, x)
	c := b.Add(Sub{}, x, mean)
	variance := b.Add(ReduceMean{Axes: axes, KeepDims: true}, b.Add(Mul{}, c, c))
	rstd := b.Add(Rsqrt{}, b.Add(Add{}, variance, b.Scalar(x.Type.DType, o.Eps)))
	y := b.Add(Mul{}, b.Add(Mul{}, c, rstd), perChannelShaped(b, wide(b, in[1]), s))
	y = b.Add(Add{}, y, perChannelShaped(b, wide(b, in[2]), s))
	d := in[0].Type.DType
	return []*ir.Value{narrow(b, y, d), narrow(b, shaped(b, mean, s[1:2]), d), narrow(b, shaped(b, variance, s[1:2]), d)}
}

// Cost: one for the mean, three for the variance, four for the result.
func (BatchNorm) Cost(in, out []ir.Type) ir.Work { return perElement(8, in, out) }

// Cost: five for the sums, seven for dx.
func (BatchNormGrad) Cost(in, out []ir.Type) ir.Work { return perElement(12, in, out) }

// Samples are channelNormSamples.
func (BatchNorm) Samples() []ir.Sample {
	return channelNormSamples(func(eps float64) ir.Op { return BatchNorm{Eps: eps} }, "x", "scale", "bias")
}

// Samples are channelNormSamples.
func (BatchNormGrad) Samples() []ir.Sample {
	return channelNormSamples(func(eps float64) ir.Op { return BatchNormGrad{Eps: eps} }, "x", "scale", "mean", "var", "dy")
}

// channelNormSamples try ranks 2 to 5, one sample, one channel, no sample, and wrong operands of the given names.
func channelNormSamples(norm func(eps float64) ir.Op, names ...string) []ir.Sample {
	like := func(name string, x ir.Shape) ir.Shape {
		if name == "x" || name == "dy" {
			return x
		}
		return x[1:2]
	}
	var all []ir.Sample
	for i, c := range []struct {
		d ir.DType
		x ir.Shape
	}{
		{ir.F32, ir.Shape{4, 3}},
		{ir.F32, ir.Shape{2, 3, 4}},
		{ir.F32, ir.Shape{2, 3, 2, 3}},
		{ir.F32, ir.Shape{2, 2, 2, 1, 2}},
		{ir.F32, ir.Shape{1, 2, 5}},
		{ir.F32, ir.Shape{3, 1, 2, 2}},
		{ir.F64, ir.Shape{2, 3, 300}},
		{ir.BF16, ir.Shape{3, 2, 4}},
		{ir.F16, ir.Shape{3, 2, 4}},
		{ir.F32, ir.Shape{0, 3, 2}},
	} {
		s := ir.Sample{Op: norm(1e-5)}
		for k, name := range names {
			if name == "var" {
				s.In = append(s.In, samplePositives(uint64(10*i+k), c.d, like(name, c.x)...))
			} else {
				s.In = append(s.In, sampleFloats(uint64(10*i+k), c.d, like(name, c.x)...))
			}
			if c.x[0] == 0 {
				s.NoDiff = append(s.NoDiff, k) // statistics of nothing are NaN
			}
		}
		all = append(all, s)
	}
	types := func(change func([]ir.Type)) []ir.Type {
		var in []ir.Type
		for _, name := range names {
			in = append(in, ir.T(ir.F32, like(name, ir.Shape{2, 3, 4})...))
		}
		change(in)
		return in
	}
	return append(all,
		bad(norm(-1), "eps must not be negative", types(func([]ir.Type) {})...),
		bad(norm(1e-5), "scale must have shape [3]", types(func(in []ir.Type) { in[1] = ir.T(ir.F32, 4) })...),
		bad(norm(1e-5), "x must have rank 2 or more", types(func(in []ir.Type) { in[0] = ir.T(ir.F32, 3) })...),
		bad(norm(1e-5), "want one element type", types(func(in []ir.Type) { in[2].DType = ir.F16 })...),
		bad(norm(1e-5), "takes", types(func([]ir.Type) {})[:2]...),
	)
}
