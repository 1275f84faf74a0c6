package op

import (
	"fmt"
	"math"
	"slices"

	"aitk/ir"
)

// LayerNorm normalises over the axes from Axis (0 <= Axis < rank) to the last: (x - mean) / sqrt(variance + Eps) * scale + bias.
//
//	x [rows..., cols...], scale [cols...], bias [cols...] (optional) -> like x
//
// cols are the axes from Axis on. The variance is the biased one. Mean and then variance (of x - mean) are summed in index order.
type LayerNorm struct {
	over0
	Axis int64
	Eps  float64
}

// LayerNormGrad is the gradient of LayerNorm; mean and variance are computed again from x.
//
//	x [rows..., cols...], scale [cols...], dy like x -> dx like x, dscale like scale, dbias like scale
//
// dscale = sum over rows of dy*(x-mean)/std, dbias = sum over rows of dy: in row order within NormBlocks blocks of rows, then block by block.
// dx may be written over x or dy.
type LayerNormGrad struct {
	over0or2
	Axis int64
	Eps  float64
}

// over0or2 lets output 0 be written over operand 0 or 2.
type over0or2 struct{}

func (over0or2) Alias() []ir.AliasPair { return []ir.AliasPair{{Out: 0, In: 2}, {Out: 0, In: 0}} }
func (over0or2) Stateful() bool        { return false }
func (over0or2) Stream() uint64        { return 0 }

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

// Infer gives the types of x, scale, scale.
func (o LayerNormGrad) Infer(in []ir.Type) ([]ir.Type, error) {
	if err := inferRowNorm(in, o.Axis, o.Eps, "x", "scale", "dy"); err != nil {
		return nil, err
	}
	return []ir.Type{in[0], in[1], in[1]}, nil
}

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

// normalised is (row - mean) / sqrt(variance + eps), and the factor 1/sqrt(variance + eps).
func normalised(row []float64, eps float64) (hat []float64, rstd float64) {
	var sum, squares float64
	for _, x := range row {
		sum += x
	}
	mean := sum / float64(len(row))
	hat = make([]float64, len(row))
	for i, x := range row {
		hat[i] = x - mean
		squares += hat[i] * hat[i]
	}
	rstd = 1 / math.Sqrt(squares/float64(len(row))+eps)
	for i := range hat {
		hat[i] *= rstd
	}
	return hat, rstd
}

// Eval takes row by row.
func (o LayerNorm) Eval(in, out []ir.Tensor) {
	x, scale, y := in[0].F, in[1].F, out[0].F
	cols := len(scale)
	for r := range in[0].Type.Shape[:o.Axis].Elems() {
		at := int(r) * cols
		hat, _ := normalised(x[at:at+cols], o.Eps)
		for i := range hat {
			y[at+i] = hat[i] * scale[i]
			if len(in) == 3 {
				y[at+i] += in[2].F[i]
			}
		}
	}
}

// Eval takes row by row: with g = dy*scale, dx = (g - mean(g) - hat*mean(g*hat)) / std.
func (o LayerNormGrad) Eval(in, out []ir.Tensor) {
	x, scale, dy := in[0].F, in[1].F, in[2].F
	dx, dscale, dbias := out[0].F, out[1].F, out[2].F
	cols := len(scale)
	for r := range in[0].Type.Shape[:o.Axis].Elems() {
		at := int(r) * cols
		hat, rstd := normalised(x[at:at+cols], o.Eps)
		var sum, dot float64
		for i := range hat {
			g := dy[at+i] * scale[i]
			sum += g
			dot += g * hat[i]
			dscale[i] += dy[at+i] * hat[i]
			dbias[i] += dy[at+i]
		}
		n := float64(cols)
		for i := range hat {
			dx[at+i] = rstd * (dy[at+i]*scale[i] - sum/n - hat[i]*dot/n)
		}
	}
}

// Grad is LayerNormGrad.
func (o LayerNorm) Grad(b *ir.Builder, n *ir.Node, dOut []*ir.Value) []*ir.Value {
	d := b.Multi(LayerNormGrad{Axis: o.Axis, Eps: o.Eps}, n.In[0], n.In[1], dOut[0])
	return slices.Clone(d[:len(n.In)])
}

// NoGradReason says why gradients stop here.
func (LayerNormGrad) NoGradReason() string { return noSecond }

// Decompose is the definition.
func (o LayerNorm) Decompose(b *ir.Builder, in []*ir.Value) []*ir.Value {
	x := wide(b, in[0])
	axes := axesFrom(o.Axis, len(x.Type.Shape))
	c := b.Add(Sub{}, x, b.Add(ReduceMean{Axes: axes, KeepDims: true}, x))
	variance := b.Add(ReduceMean{Axes: axes, KeepDims: true}, b.Add(Mul{}, c, c))
	y := b.Add(Mul{}, c, b.Add(Rsqrt{}, b.Add(Add{}, variance, b.Scalar(x.Type.DType, o.Eps))))
	y = b.Add(Mul{}, y, wide(b, in[1]))
	if len(in) == 3 {
		y = b.Add(Add{}, y, wide(b, in[2]))
	}
	return []*ir.Value{narrow(b, y, in[0].Type.DType)}
}

// Cost: one for the mean, three for the variance, four for the result.
func (LayerNorm) Cost(in, out []ir.Type) ir.Work { return perElement(8, in, out) }

// Cost: four for the statistics, ten for the gradients; scratch for the partial sums of dscale and dbias.
func (o LayerNormGrad) Cost(in, out []ir.Type) ir.Work {
	w := perElement(14, in, out)
	w.ScratchBytes, w.PartialBytes = normScratch(in[0].Shape, o.Axis, 2), normPartials(in[0].Shape, o.Axis)
	return w
}

// NormBlocks is the number of blocks of consecutive rows in which the gradients of a scale and a bias are summed, for a norm with the
// given number of rows. Each block has NormBlockRows rows but the last, which may have fewer. It does not depend on the number of workers.
func NormBlocks(rows int64) int64 {
	if rows == 0 {
		return 0
	}
	each := NormBlockRows(rows)
	return (rows + each - 1) / each
}

// maxNormBlocks is the number of workers that scratch is planned for.
const maxNormBlocks = 16

// NormBlockRows is the extent of a block of rows.
func NormBlockRows(rows int64) int64 { return (rows + maxNormBlocks - 1) / maxNormBlocks }

// normScratch holds the partial sums, in float64, of sums rows of a norm's columns for each block of rows.
func normScratch(x ir.Shape, axis, sums int64) int64 {
	return NormBlocks(x[:axis].Elems()) * sums * x[axis:].Elems() * 8
}

// NormChunk is how many rows of a norm's gradient a GPU takes at a time.
const NormChunk = 8192

// normPartials holds the statistics, two float64, of the rows of a chunk.
func normPartials(x ir.Shape, axis int64) int64 { return 16 * min(x[:axis].Elems(), NormChunk) }

// Samples are rowNormSamples, with and without bias.
func (LayerNorm) Samples() []ir.Sample {
	make := func(axis int64, eps float64) ir.Op { return LayerNorm{Axis: axis, Eps: eps} }
	return append(rowNormSamples(make, "x", "scale"), rowNormSamples(make, "x", "scale", "bias")...)
}

// Samples are rowNormSamples.
func (LayerNormGrad) Samples() []ir.Sample {
	return rowNormSamples(func(axis int64, eps float64) ir.Op { return LayerNormGrad{Axis: axis, Eps: eps} }, "x", "scale", "dy")
}

// rowNormSamples try every axis, more rows than blocks, no rows, and wrong operands of the given names.
func rowNormSamples(norm func(axis int64, eps float64) ir.Op, names ...string) []ir.Sample {
	like := func(name string, axis int64, x ir.Shape) ir.Shape {
		if name == "x" || name == "dy" {
			return x
		}
		return x[axis:]
	}
	var all []ir.Sample
	for i, c := range []struct {
		d    ir.DType
		axis int64
		x    ir.Shape
	}{
		{ir.F32, 2, ir.Shape{2, 3, 8}},
		{ir.F32, 1, ir.Shape{2, 3, 4}},
		{ir.F32, 0, ir.Shape{3, 4}},
		{ir.F32, 1, ir.Shape{37, 3}},
		{ir.F32, 1, ir.Shape{0, 4}},
		{ir.F64, 1, ir.Shape{2, 700}},
		{ir.BF16, 1, ir.Shape{3, 8}},
		{ir.F16, 1, ir.Shape{3, 8}},
	} {
		var in []ir.Tensor
		for k, name := range names {
			in = append(in, sampleFloats(uint64(10*i+k), c.d, like(name, c.axis, c.x)...))
		}
		all = append(all, good(norm(c.axis, 1e-5), in...))
	}
	x := ir.Shape{2, 3, 8}
	types := func(change func([]ir.Type)) []ir.Type {
		var in []ir.Type
		for _, name := range names {
			in = append(in, ir.T(ir.F32, like(name, 2, x)...))
		}
		change(in)
		return in
	}
	return append(all,
		bad(norm(3, 1e-5), "axis 3 is outside rank 3", types(func([]ir.Type) {})...),
		bad(norm(2, -1), "eps must not be negative", types(func([]ir.Type) {})...),
		bad(norm(2, math.NaN()), "eps must not be negative", types(func([]ir.Type) {})...),
		bad(norm(2, 1e-5), "scale must have shape [8]", types(func(in []ir.Type) { in[1] = ir.T(ir.F32, 3) })...),
		bad(norm(2, 1e-5), "want one element type", types(func(in []ir.Type) { in[1].DType = ir.F64 })...),
		bad(norm(2, 1e-5), "want floats", types(func(in []ir.Type) { in[0].DType = ir.I32 })...),
		bad(norm(2, 1e-5), "takes", types(func([]ir.Type) {})[:1]...),
	)
}
