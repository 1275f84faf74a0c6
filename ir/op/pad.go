package op

import (
	"fmt"
	"math"

	"aitk/ir"
)

// Pad surrounds the operand with Before and After elements of Value along each axis; no entry is negative. Any element type that
// holds Value. The gradient is a Slice.
type Pad struct {
	mover
	Before, After []int64
	Value         float64
}

func (o Pad) Infer(in []ir.Type) ([]ir.Type, error) {
	if err := operands(in, 1); err != nil {
		return nil, err
	}
	s := in[0].Shape.Clone()
	if len(o.Before) != len(s) || len(o.After) != len(s) {
		return nil, fmt.Errorf("has %d and %d widths for rank %d", len(o.Before), len(o.After), len(s))
	}
	for a := range s {
		const most = 1 << 60 // three of these do not overflow
		if o.Before[a] < 0 || o.After[a] < 0 || o.Before[a] > most || o.After[a] > most {
			return nil, fmt.Errorf("axis %d: widths %d and %d are negative or too large", a, o.Before[a], o.After[a])
		}
		s[a] = min(s[a], most) + o.Before[a] + o.After[a]
	}
	if err := s.Check(); err != nil {
		return nil, err
	}
	if err := wantValue(in[0].DType, o.Value); err != nil {
		return nil, err
	}
	return one(in[0].DType, s), nil
}

func (o Pad) Eval(in, out []ir.Tensor) {
	fill(out[0], o.Value)
	first := int64(0)
	strides := rowMajor(out[0].Type.Shape)
	for a, n := range o.Before {
		first += n * strides[a]
	}
	walk(in[0].Type.Shape, func(i int64, at []int64) { moveOne(out[0], first+at[0], in[0], i) }, strides)
}

func (o Pad) Grad(b *ir.Builder, n *ir.Node, dOut []*ir.Value) []*ir.Value {
	if !differentiable(n) {
		return none(1)
	}
	s := n.In[0].Type.Shape
	cut := Slice{Starts: o.Before, Ends: make([]int64, len(s)), Steps: make([]int64, len(s))}
	for a := range s {
		cut.Ends[a], cut.Steps[a] = o.Before[a]+s[a], 1
	}
	return []*ir.Value{b.Add(cut, dOut[0])}
}

func (Pad) Samples() []ir.Sample {
	ok := Pad{Before: []int64{1}, After: []int64{0}}
	list := badOperands(ok, ir.T(ir.F32, 2))
	for _, s := range []struct {
		shape         ir.Shape
		before, after []int64
		value         float64
	}{
		{nil, nil, nil, 3}, {ir.Shape{3}, []int64{1}, []int64{2}, 0}, {ir.Shape{3}, []int64{0}, []int64{0}, 0}, {ir.Shape{0}, []int64{1}, []int64{2}, 1},
		{ir.Shape{2, 3}, []int64{0, 1}, []int64{1, 0}, 1}, {ir.Shape{1, 2, 3, 2}, []int64{0, 0, 1, 2}, []int64{0, 0, 2, 1}, 0}, {ir.Shape{2, 0}, []int64{1, 0}, []int64{1, 0}, 0},
	} {
		for _, d := range []ir.DType{ir.F32, ir.F64, ir.BF16, ir.I64, ir.I32, ir.U8} {
			list = append(list, good(Pad{Before: s.before, After: s.after, Value: s.value}, ramp(d, 0, -2, 2, s.shape...)))
		}
	}
	return append(list,
		kinked(Pad{Before: []int64{1}, After: []int64{2}, Value: math.Inf(-1)}, ramp(ir.F32, 0, -2, 2, 3)),
		good(Pad{Before: []int64{1}, After: []int64{2}, Value: 1}, ramp(ir.Bool, 0, 0, 1, 3)),
		bad(ok, "has 1 and 1 widths for rank 2", ir.T(ir.F32, 2, 2)),
		bad(Pad{Before: []int64{-1}, After: []int64{0}}, "negative or too large", ir.T(ir.F32, 2)),
		bad(Pad{Before: []int64{0}, After: []int64{math.MaxInt64}}, "negative or too large", ir.T(ir.F32, 2)),
		bad(Pad{Before: []int64{1 << 60}, After: []int64{1 << 60}}, "negative or too large", ir.T(ir.F32, 2)),
		bad(Pad{Before: []int64{0}, After: []int64{0}, Value: 0.5}, "value 0.5 is outside i32", ir.T(ir.I32, 2)))
}
