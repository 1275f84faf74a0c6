package op

import (
	"fmt"
	"math"
	"slices"

	"aitk/ir"
)

// TopK takes the K greatest elements along Axis, or with Smallest the K least, in order, and their i64 indices:
//
//	x [..., n, ...] -> values [..., K, ...], indices i64[..., K, ...]
//
// At ties the lower index comes first; NaN is greater than every number. The gradient goes to the elements taken.
//
// It is a core op because no chain of others sorts.
type TopK struct {
	Axis, K  int64
	Smallest bool
}

func (o TopK) Infer(in []ir.Type) ([]ir.Type, error) {
	if _, err := inferNumbers(in); err != nil {
		return nil, err
	}
	if err := wantAxis(o.Axis, len(in[0].Shape)); err != nil {
		return nil, err
	}
	if o.K < 0 || o.K > in[0].Shape[o.Axis] {
		return nil, fmt.Errorf("%d elements of an axis of extent %d", o.K, in[0].Shape[o.Axis])
	}
	s := in[0].Shape.Clone()
	s[o.Axis] = o.K
	return []ir.Type{{DType: in[0].DType, Shape: s}, {DType: ir.I64, Shape: s.Clone()}}, nil
}

func (o TopK) Eval(in, out []ir.Tensor) {
	x := in[0]
	_, _, inner := around(x.Type.Shape, o.Axis)
	to := lines(out[0].Type.Shape, o.Axis)
	for i, from := range lines(x.Type.Shape, o.Axis) {
		order := make([]int64, from.n)
		for j := range order {
			order[j] = int64(j)
		}
		slices.SortStableFunc(order, func(a, b int64) int {
			a, b = from.first+a*from.step, from.first+b*from.step
			if x.Type.DType.IsFloat() {
				return o.compareFloats(x.F[a], x.F[b])
			}
			return o.compareInts(x.Type.DType, x.I[a], x.I[b])
		})
		for j := range o.K {
			at := to[i].first + j*inner
			moveOne(out[0], at, x, from.first+order[j]*from.step)
			out[1].I[at] = order[j]
		}
	}
}

// compareFloats is negative where a comes before b.
func (o TopK) compareFloats(a, b float64) int {
	c := 0
	switch {
	case math.IsNaN(a) || math.IsNaN(b):
		c = int(truth(math.IsNaN(b))) - int(truth(math.IsNaN(a)))
	case a > b:
		c = -1
	case a < b:
		c = 1
	}
	if o.Smallest {
		return -c
	}
	return c
}

func (o TopK) compareInts(d ir.DType, a, b int64) int {
	if d == ir.U64 { // held by its bits
		a, b = a^math.MinInt64, b^math.MinInt64
	}
	c := 0
	switch {
	case a > b:
		c = -1
	case a < b:
		c = 1
	}
	if o.Smallest {
		return -c
	}
	return c
}

// Cost is a heap of K elements that every element may enter.
func (o TopK) Cost(in, out []ir.Type) ir.Work {
	depth := int64(1)
	for k := o.K; k > 1; k /= 2 {
		depth++
	}
	return perElement(2*depth, in, out)
}

func (o TopK) Grad(b *ir.Builder, n *ir.Node, dOut []*ir.Value) []*ir.Value {
	if !differentiable(n) || dOut[0] == nil {
		return none(1)
	}
	t := n.In[0].Type
	zeros := b.Add(Fill{DType: t.DType, Shape: t.Shape})
	return []*ir.Value{b.Add(ScatterElements{Axis: o.Axis}, zeros, n.Out[1], dOut[0])} // no index twice
}

func (TopK) Samples() []ir.Sample {
	list := append(badOperands(TopK{K: 1}, ir.T(ir.F32, 2)),
		bad(TopK{K: 1}, "operand 0 is bool, want numbers", ir.T(ir.Bool, 2)),
		bad(TopK{Axis: 1, K: 1}, "axis 1 is outside rank 1", ir.T(ir.F32, 2)),
		bad(TopK{K: 3}, "3 elements of an axis of extent 2", ir.T(ir.F32, 2)),
		bad(TopK{K: -1}, "-1 elements of an axis", ir.T(ir.F32, 2)))
	for _, least := range []bool{false, true} {
		for _, d := range []ir.DType{ir.F32, ir.F64, ir.F16, ir.BF16, ir.I64, ir.I32, ir.I16, ir.I8, ir.U64, ir.U32, ir.U16, ir.U8} {
			list = append(list,
				good(TopK{Axis: 1, K: 3, Smallest: least}, ramp(d, 0, -9, 9, 2, 7, 3)),
				good(TopK{Axis: 0, K: 5, Smallest: least}, ramp(d, 0, -9, 9, 5)),
				good(TopK{Axis: 1, K: 2, Smallest: least}, ramp(d, 0, -9, 9, 3, 4)))
		}
		list = append(list,
			good(TopK{K: 0, Smallest: least}, ramp(ir.F32, 0, -9, 9, 5)),
			good(TopK{Axis: 1, K: 2, Smallest: least}, ramp(ir.F32, 0, -9, 9, 0, 4)),
			good(TopK{Axis: 1, K: 40, Smallest: least}, ramp(ir.F32, 0, -9, 9, 3, 700)),
			kinked(TopK{K: 16, Smallest: least}, special(ir.F32)),
			kinked(TopK{K: 3, Smallest: least}, listed(ir.F32, 1, 2, 2, 1, 2, 1)),
			kinked(TopK{K: 3, Smallest: least}, ir.Tensor{Type: ir.T(ir.U64, 4), I: []int64{-1, 1, math.MinInt64, 5}}))
	}
	return list
}
