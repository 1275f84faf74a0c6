package op

import (
	"fmt"
	"math"

	"aitk/ir"
)

// Slice takes along each axis every Steps-th element, from Starts to before Ends. One entry per axis, normalised: 0 <= start <= extent,
// step != 0; for a positive step 0 <= end <= extent, for a negative one the first element read is start and end, exclusive, may be -1.
// Any element type. The gradient is an Unslice.
type Slice struct {
	picker
	Starts, Ends, Steps []int64
}

// Unslice is the adjoint of Slice: it writes the operand into zeros of Shape, element i of an axis to Starts + i*Steps. Numbers only.
type Unslice struct {
	mover
	Shape         ir.Shape
	Starts, Steps []int64
}

func (o Slice) Infer(in []ir.Type) ([]ir.Type, error) {
	if err := operands(in, 1); err != nil {
		return nil, err
	}
	dims := in[0].Shape
	if len(o.Starts) != len(dims) || len(o.Ends) != len(dims) || len(o.Steps) != len(dims) {
		return nil, fmt.Errorf("has %d starts, %d ends and %d steps for rank %d", len(o.Starts), len(o.Ends), len(o.Steps), len(dims))
	}
	s := make(ir.Shape, len(dims))
	for a, dim := range dims {
		start, end, step := o.Starts[a], o.Ends[a], o.Steps[a]
		least := int64(0)
		if step < 0 {
			least = -1
		}
		if step == 0 || start < 0 || start > dim || end < least || end > dim || step < 0 && start == dim && end < start {
			return nil, fmt.Errorf("axis %d: %d:%d:%d is no range of extent %d", a, start, end, step, dim)
		}
		switch {
		case step > 0 && end > start:
			s[a] = (end-start-1)/step + 1
		case step < 0 && start > end:
			s[a] = (start-end-1)/-step + 1 // right for the least int64 too: the quotient is 0
		}
	}
	return one(in[0].DType, s), nil
}

func (o Unslice) Infer(in []ir.Type) ([]ir.Type, error) {
	if err := operands(in, 1); err != nil {
		return nil, err
	}
	if err := wantNumber(in, 0); err != nil {
		return nil, err
	}
	if err := o.Shape.Check(); err != nil {
		return nil, err
	}
	s, rank := in[0].Shape, len(o.Shape)
	if len(s) != rank || len(o.Starts) != rank || len(o.Steps) != rank {
		return nil, fmt.Errorf("has %d starts and %d steps for an operand of rank %d in shape %v", len(o.Starts), len(o.Steps), len(s), o.Shape)
	}
	for a, dim := range o.Shape {
		start, step, n := o.Starts[a], o.Steps[a], s[a]
		ok := step != 0 && start >= 0 && start <= dim
		if ok && n > 0 {
			room := dim - 1 - start // elements after the first one
			if step < 0 {
				room = start
			}
			ok = start < dim && (n == 1 || step >= -dim && step <= dim && n-1 <= room/max(step, -step))
		}
		if !ok {
			return nil, fmt.Errorf("axis %d: %d elements from %d by %d do not fit extent %d", a, n, start, step, dim)
		}
	}
	return one(in[0].DType, o.Shape), nil
}

// places gives, for each axis of the shape that a slice has, how far apart its elements lie in the whole, and where the first one is.
func places(whole ir.Shape, starts, steps []int64) (strides []int64, first int64) {
	strides = rowMajor(whole)
	for a := range strides {
		first += starts[a] * strides[a]
		strides[a] *= steps[a]
	}
	return strides, first
}

func (o Slice) Eval(in, out []ir.Tensor) {
	strides, first := places(in[0].Type.Shape, o.Starts, o.Steps)
	walk(out[0].Type.Shape, func(i int64, at []int64) { moveOne(out[0], i, in[0], first+at[0]) }, strides)
}

func (o Unslice) Eval(in, out []ir.Tensor) {
	strides, first := places(o.Shape, o.Starts, o.Steps)
	walk(in[0].Type.Shape, func(i int64, at []int64) { moveOne(out[0], first+at[0], in[0], i) }, strides)
}

func (o Slice) Grad(b *ir.Builder, n *ir.Node, dOut []*ir.Value) []*ir.Value {
	if !differentiable(n) {
		return none(1)
	}
	return []*ir.Value{b.Add(Unslice{Shape: n.In[0].Type.Shape, Starts: o.Starts, Steps: o.Steps}, dOut[0])}
}

func (o Unslice) Grad(b *ir.Builder, n *ir.Node, dOut []*ir.Value) []*ir.Value {
	if !differentiable(n) {
		return none(1)
	}
	ends := make([]int64, len(o.Starts))
	for a, d := range n.In[0].Type.Shape {
		switch last := o.Starts[a] + (d-1)*o.Steps[a]; {
		case d == 0:
			ends[a] = o.Starts[a]
		case o.Steps[a] > 0:
			ends[a] = last + 1
		default:
			ends[a] = last - 1
		}
	}
	return []*ir.Value{b.Add(Slice{Starts: o.Starts, Ends: ends, Steps: o.Steps}, dOut[0])}
}

func (Slice) Samples() []ir.Sample {
	ok := Slice{Starts: []int64{0}, Ends: []int64{2}, Steps: []int64{1}}
	list := badOperands(ok, ir.T(ir.F32, 2))
	for _, s := range []struct {
		shape               ir.Shape
		starts, ends, steps []int64
	}{
		{nil, nil, nil, nil},
		{ir.Shape{5}, []int64{1}, []int64{4}, []int64{1}},
		{ir.Shape{5}, []int64{4}, []int64{-1}, []int64{-2}},
		{ir.Shape{5}, []int64{3}, []int64{2}, []int64{1}}, // empty
		{ir.Shape{0}, []int64{0}, []int64{0}, []int64{-1}},
		{ir.Shape{5}, []int64{0}, []int64{5}, []int64{math.MaxInt64}},
		{ir.Shape{5}, []int64{4}, []int64{-1}, []int64{math.MinInt64}},
		{ir.Shape{4, 5}, []int64{1, 0}, []int64{3, 5}, []int64{1, 1}},
		{ir.Shape{4, 5}, []int64{0, 1}, []int64{4, 4}, []int64{1, 1}},
		{ir.Shape{3, 4, 5}, []int64{2, 0, 4}, []int64{-1, 4, 0}, []int64{-1, 2, -3}},
		{ir.Shape{3, 4, 2}, []int64{0, 1, 0}, []int64{3, 3, 2}, []int64{2, 1, 1}},
	} {
		for _, d := range []ir.DType{ir.F32, ir.F64, ir.F16, ir.I64, ir.I32, ir.Bool} {
			list = append(list, good(Slice{Starts: s.starts, Ends: s.ends, Steps: s.steps}, ramp(d, 0, -2, 2, s.shape...)))
		}
	}
	for _, r := range [][3]int64{{0, 2, 0}, {-1, 2, 1}, {3, 2, 1}, {0, 3, 1}, {0, -1, 1}, {1, -2, -1}, {2, -1, -1}} {
		o := Slice{Starts: []int64{r[0]}, Ends: []int64{r[1]}, Steps: []int64{r[2]}}
		list = append(list, bad(o, "is no range of extent 2", ir.T(ir.F32, 2)))
	}
	return append(list, bad(ok, "has 1 starts, 1 ends and 1 steps for rank 2", ir.T(ir.F32, 2, 2)))
}

func (Unslice) Samples() []ir.Sample {
	ok := Unslice{Shape: ir.Shape{2}, Starts: []int64{0}, Steps: []int64{1}}
	list := append(badOperands(ok, ir.T(ir.F32, 2)), bad(ok, "operand 0 is bool, want numbers", ir.T(ir.Bool, 2)))
	for _, s := range []struct {
		whole, part   ir.Shape
		starts, steps []int64
	}{
		{nil, nil, nil, nil},
		{ir.Shape{5}, ir.Shape{3}, []int64{1}, []int64{1}},
		{ir.Shape{5}, ir.Shape{3}, []int64{4}, []int64{-2}},
		{ir.Shape{5}, ir.Shape{0}, []int64{5}, []int64{1}},
		{ir.Shape{5}, ir.Shape{1}, []int64{2}, []int64{math.MinInt64}},
		{ir.Shape{4, 5}, ir.Shape{2, 5}, []int64{1, 0}, []int64{1, 1}},
		{ir.Shape{3, 4, 5}, ir.Shape{3, 2, 2}, []int64{2, 0, 4}, []int64{-1, 2, -3}},
	} {
		for _, d := range []ir.DType{ir.F32, ir.F64, ir.F16, ir.I64, ir.I32} {
			list = append(list, good(Unslice{Shape: s.whole, Starts: s.starts, Steps: s.steps}, ramp(d, 0, -2, 2, s.part...)))
		}
	}
	for _, r := range [][2]int64{{0, 0}, {-1, 1}, {1, 1}, {0, 2}, {0, -1}, {3, 1}, {0, math.MinInt64}} {
		o := Unslice{Shape: ir.Shape{2}, Starts: []int64{r[0]}, Steps: []int64{r[1]}}
		list = append(list, bad(o, "do not fit extent 2", ir.T(ir.F32, 2)))
	}
	return append(list,
		bad(Unslice{Shape: ir.Shape{-1}}, "negative or too large", ir.T(ir.F32, 2)),
		bad(ok, "for an operand of rank 2 in shape [2]", ir.T(ir.F32, 2, 2)))
}
