package op

import (
	"fmt"
	"slices"

	"aitk/ir"
)

// The reductions over Axes, which are ascending and not negative; no axes reduce nothing. KeepDims leaves the axes in place with extent 1.
// Elements are taken in row-major order; floats accumulate in float64 and are rounded once.
type (
	// ReduceSum adds up; integers wrap, and no elements give 0.
	ReduceSum struct {
		Axes     []int64
		KeepDims bool
	}
	// ReduceMean is the sum divided by the number of elements: truncated for integers, NaN (integers: 0) for no elements.
	ReduceMean struct {
		Axes     []int64
		KeepDims bool
	}
	// ReduceProd multiplies; integers wrap, and no elements give 1. The gradient is exact where elements are 0.
	ReduceProd struct {
		Axes     []int64
		KeepDims bool
	}
)

// inferReduce drops axes, or keeps them with extent 1.
func inferReduce(in []ir.Type, axes []int64, keep bool) ([]ir.Type, error) {
	if _, err := inferNumbers(in); err != nil {
		return nil, err
	}
	last := int64(-1)
	for _, a := range axes {
		if err := wantAxis(a, len(in[0].Shape)); err != nil {
			return nil, err
		}
		if a <= last {
			return nil, fmt.Errorf("axes %v are not ascending", axes)
		}
		last = a
	}
	return one(in[0].DType, reducedShape(in[0].Shape, axes, keep)), nil
}

// reducedShape is what remains of a shape when axes are reduced.
func reducedShape(s ir.Shape, axes []int64, keep bool) ir.Shape {
	out := ir.Shape{}
	for a, d := range s {
		switch {
		case !slices.Contains(axes, int64(a)):
			out = append(out, d)
		case keep:
			out = append(out, 1)
		}
	}
	return out
}

func (o ReduceSum) Infer(in []ir.Type) ([]ir.Type, error) { return inferReduce(in, o.Axes, o.KeepDims) }
func (o ReduceMean) Infer(in []ir.Type) ([]ir.Type, error) {
	return inferReduce(in, o.Axes, o.KeepDims)
}
func (o ReduceProd) Infer(in []ir.Type) ([]ir.Type, error) {
	return inferReduce(in, o.Axes, o.KeepDims)
}

// onto visits the elements of an operand in row-major order with the element of the result that each belongs to.
func onto(in ir.Tensor, axes []int64, f func(i, to int64)) {
	s := in.Type.Shape
	kept := reducedShape(s, axes, true)
	walk(s, func(i int64, at []int64) { f(i, at[0]) }, stretched(kept, s))
}

// reducedCount is how many elements make one of the result.
func reducedCount(s ir.Shape, axes []int64) int64 {
	n := int64(1)
	for _, a := range axes {
		n *= s[a]
	}
	return n
}

func (o ReduceSum) Eval(in, out []ir.Tensor) {
	onto(in[0], o.Axes, func(i, to int64) { addOne(out[0], to, in[0], i) })
}

func (o ReduceMean) Eval(in, out []ir.Tensor) {
	onto(in[0], o.Axes, func(i, to int64) { addOne(out[0], to, in[0], i) })
	n := reducedCount(in[0].Type.Shape, o.Axes)
	for i := range out[0].F {
		out[0].F[i] /= float64(n)
	}
	for i := range out[0].I {
		out[0].I[i] = divInt(out[0].I[i], n)
	}
}

func (o ReduceProd) Eval(in, out []ir.Tensor) {
	fill(out[0], 1)
	onto(in[0], o.Axes, func(i, to int64) { combineOne("mul", out[0], to, in[0], i) })
}

// Cost is one operation for each element read.
func (o ReduceSum) Cost(in, out []ir.Type) ir.Work { return reduceWork(o.Axes, in, out) }

// Cost is one operation for each element read.
func (o ReduceMean) Cost(in, out []ir.Type) ir.Work { return reduceWork(o.Axes, in, out) }

// Cost is one operation for each element read.
func (o ReduceProd) Cost(in, out []ir.Type) ir.Work { return reduceWork(o.Axes, in, out) }

// keptAxes gives a value of a reduction's result its reduced axes back, with extent 1.
func keptAxes(b *ir.Builder, n *ir.Node, axes []int64, v *ir.Value) *ir.Value {
	s := reducedShape(n.In[0].Type.Shape, axes, true)
	if v.Type.Shape.Equal(s) {
		return v
	}
	return b.Add(Reshape{Shape: s}, v)
}

// spread repeats the gradient of a sum over the axes that were reduced.
func spread(b *ir.Builder, n *ir.Node, axes []int64, dy *ir.Value) *ir.Value {
	s := n.In[0].Type.Shape
	dy = keptAxes(b, n, axes, dy)
	if dy.Type.Shape.Equal(s) {
		return dy
	}
	return b.Add(Expand{Shape: s}, dy)
}

func (o ReduceSum) Grad(b *ir.Builder, n *ir.Node, dOut []*ir.Value) []*ir.Value {
	if !differentiable(n) {
		return none(1)
	}
	return []*ir.Value{spread(b, n, o.Axes, dOut[0])}
}

func (o ReduceMean) Grad(b *ir.Builder, n *ir.Node, dOut []*ir.Value) []*ir.Value {
	if !differentiable(n) {
		return none(1)
	}
	return []*ir.Value{spread(b, n, o.Axes, divide(b, dOut[0], reducedCount(n.In[0].Type.Shape, o.Axes)))}
}

// Grad multiplies by the product of the other elements: that of all elements but zeros, divided by the own one, where no other is 0.
func (o ReduceProd) Grad(b *ir.Builder, n *ir.Node, dOut []*ir.Value) []*ir.Value {
	if !differentiable(n) {
		return none(1)
	}
	x := n.In[0]
	d := x.Type.DType
	zero, unit := b.Scalar(d, 0), b.Scalar(d, 1)
	isZero := b.Add(Equal{}, x, zero)
	factor := b.Add(Where{}, isZero, unit, x)
	count := b.Add(Where{}, isZero, unit, zero)
	product := b.Add(ReduceProd{Axes: o.Axes, KeepDims: true}, factor)
	zeros := b.Add(ReduceSum{Axes: o.Axes, KeepDims: true}, count)
	others := b.Add(Div{}, b.Add(Mul{}, keptAxes(b, n, o.Axes, dOut[0]), product), factor)
	return []*ir.Value{b.Add(Where{}, b.Add(Equal{}, zeros, count), others, zero)}
}

// reduceSamples are samples of a reduction; with makes it for given axes.
func reduceSamples(with func(axes []int64, keep bool) ir.Op, empty bool) []ir.Sample {
	o := with([]int64{0}, false)
	list := append(badOperands(o, ir.T(ir.F32, 2)),
		bad(o, "operand 0 is bool, want numbers", ir.T(ir.Bool, 2)),
		bad(o, "axis 0 is outside rank 0", ir.T(ir.F32)),
		bad(with([]int64{-1}, false), "axis -1 is outside rank 1", ir.T(ir.F32, 2)),
		bad(with([]int64{1, 0}, false), "axes [1 0] are not ascending", ir.T(ir.F32, 2, 2)),
		bad(with([]int64{1, 1}, false), "axes [1 1] are not ascending", ir.T(ir.F32, 2, 2)))
	for _, keep := range []bool{false, true} {
		for _, s := range []struct {
			shape ir.Shape
			axes  []int64
		}{
			{nil, nil}, {ir.Shape{5}, nil}, {ir.Shape{5}, []int64{0}}, {ir.Shape{2, 3}, []int64{0}}, {ir.Shape{2, 3}, []int64{1}}, {ir.Shape{2, 3}, []int64{0, 1}},
			{ir.Shape{2, 3, 4}, []int64{0}}, {ir.Shape{2, 3, 4}, []int64{1}}, {ir.Shape{2, 3, 4}, []int64{2}}, {ir.Shape{2, 3, 4}, []int64{0, 2}},
			{ir.Shape{2, 3, 4}, []int64{0, 1}}, {ir.Shape{2, 3, 4}, []int64{1, 2}}, {ir.Shape{2, 2, 3, 2}, []int64{1, 3}}, {ir.Shape{2, 1, 3}, []int64{1}}, {ir.Shape{3, 0}, []int64{0}},
			{ir.Shape{2, 0, 3}, []int64{1}}, {ir.Shape{0}, []int64{0}}, {ir.Shape{3, 700}, []int64{0}}, {ir.Shape{700, 3}, []int64{0}}, {ir.Shape{3, 700}, []int64{1}},
		} {
			if empty || reducedCount(s.shape, s.axes) > 0 {
				list = append(list, good(with(s.axes, keep), ramp(ir.F32, 0, -2, 2, s.shape...)))
			}
		}
		for _, d := range []ir.DType{ir.F64, ir.F16, ir.BF16, ir.I64, ir.I32, ir.I8, ir.U8} {
			for _, axes := range [][]int64{{0}, {1}, {2}, {0, 2}, {0, 1, 2}} {
				list = append(list, good(with(axes, keep), ramp(d, 1, -2, 2, 2, 3, 4)))
			}
		}
	}
	return append(list, kinked(o, ir.Tensor{Type: ir.T(ir.F32, 4, 4), F: special(ir.F32).F}))
}

func (ReduceSum) Samples() []ir.Sample {
	return reduceSamples(func(axes []int64, keep bool) ir.Op { return ReduceSum{Axes: axes, KeepDims: keep} }, true)
}

func (ReduceMean) Samples() []ir.Sample {
	return reduceSamples(func(axes []int64, keep bool) ir.Op { return ReduceMean{Axes: axes, KeepDims: keep} }, true)
}

func (ReduceProd) Samples() []ir.Sample {
	list := reduceSamples(func(axes []int64, keep bool) ir.Op { return ReduceProd{Axes: axes, KeepDims: keep} }, true)
	zeros := ir.Tensor{Type: ir.T(ir.F64, 3, 3), F: []float64{2, 3, 4, 2, 0, 4, 0, 3, 0}}
	return append(list, good(ReduceProd{Axes: []int64{1}}, zeros), good(ReduceProd{Axes: []int64{0}, KeepDims: true}, zeros))
}
