package op

import (
	"fmt"
	"math"

	"aitk/ir"
)

// The extrema over Axes, which are ascending and not negative; no axes reduce nothing, and an axis without elements is refused. NaN wins.
// Elements that tie share the gradient equally. KeepDims leaves the axes in place with extent 1.
type (
	// ReduceMax is the greatest element.
	ReduceMax struct {
		Axes     []int64
		KeepDims bool
	}
	// ReduceMin is the smallest element.
	ReduceMin struct {
		Axes     []int64
		KeepDims bool
	}
)

// inferExtremum is inferReduce for a reduction without a neutral element.
func inferExtremum(in []ir.Type, axes []int64, keep bool) ([]ir.Type, error) {
	out, err := inferReduce(in, axes, keep)
	if err != nil {
		return nil, err
	}
	for _, a := range axes {
		if in[0].Shape[a] == 0 {
			return nil, fmt.Errorf("axis %d of %v has no elements to choose from", a, in[0].Shape)
		}
	}
	return out, nil
}

func (o ReduceMax) Infer(in []ir.Type) ([]ir.Type, error) {
	return inferExtremum(in, o.Axes, o.KeepDims)
}
func (o ReduceMin) Infer(in []ir.Type) ([]ir.Type, error) {
	return inferExtremum(in, o.Axes, o.KeepDims)
}

func (o ReduceMax) Eval(in, out []ir.Tensor) {
	evalExtremum(in, out, o.Axes, "max", math.Inf(-1), math.MinInt64)
}
func (o ReduceMin) Eval(in, out []ir.Tensor) {
	evalExtremum(in, out, o.Axes, "min", math.Inf(1), math.MaxInt64)
}

func evalExtremum(in, out []ir.Tensor, axes []int64, reduce string, first float64, firstInt int64) {
	for i := range out[0].F {
		out[0].F[i] = first
	}
	for i := range out[0].I {
		out[0].I[i] = firstInt
	}
	onto(in[0], axes, func(i, to int64) { combineOne(reduce, out[0], to, in[0], i) })
}

// Cost is one comparison for each element read.
func (o ReduceMax) Cost(in, out []ir.Type) ir.Work { return reduceWork(o.Axes, in, out) }

// Cost is one comparison for each element read.
func (o ReduceMin) Cost(in, out []ir.Type) ir.Work { return reduceWork(o.Axes, in, out) }

func (o ReduceMax) Grad(b *ir.Builder, n *ir.Node, dOut []*ir.Value) []*ir.Value {
	return gradReduced(b, n, o.Axes, dOut[0])
}

func (o ReduceMin) Grad(b *ir.Builder, n *ir.Node, dOut []*ir.Value) []*ir.Value {
	return gradReduced(b, n, o.Axes, dOut[0])
}

// gradReduced shares the gradient among the elements that equal the result.
func gradReduced(b *ir.Builder, n *ir.Node, axes []int64, dy *ir.Value) []*ir.Value {
	if !differentiable(n) {
		return none(1)
	}
	d := dy.Type.DType
	zero := b.Scalar(d, 0)
	wins := b.Add(Equal{}, n.In[0], keptAxes(b, n, axes, n.Out[0]))
	count := b.Add(ReduceSum{Axes: axes, KeepDims: true}, b.Add(Cast{To: d}, wins))
	share := b.Add(Div{}, keptAxes(b, n, axes, dy), count)
	return []*ir.Value{b.Add(Where{}, wins, share, zero)}
}

func (ReduceMax) Samples() []ir.Sample {
	return append(reduceSamples(func(axes []int64, keep bool) ir.Op { return ReduceMax{Axes: axes, KeepDims: keep} }, false),
		kinked(ReduceMax{Axes: []int64{0}}, listed(ir.F32, 1, 3, 3)),
		bad(ReduceMax{Axes: []int64{1}}, "axis 1 of [2,0] has no elements to choose from", ir.T(ir.F32, 2, 0)))
}

func (ReduceMin) Samples() []ir.Sample {
	return append(reduceSamples(func(axes []int64, keep bool) ir.Op { return ReduceMin{Axes: axes, KeepDims: keep} }, false),
		kinked(ReduceMin{Axes: []int64{0}}, listed(ir.F32, 1, 3, 1)),
		bad(ReduceMin{Axes: []int64{1}}, "axis 1 of [2,0] has no elements to choose from", ir.T(ir.F32, 2, 0)))
}
