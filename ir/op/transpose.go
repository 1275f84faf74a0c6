package op

import (
	"fmt"

	"aitk/ir"
)

// Transpose permutes axes: axis i of the result is axis Perm[i] of the operand. Any element type.
type Transpose struct {
	mover
	Perm []int64
}

func (o Transpose) Infer(in []ir.Type) ([]ir.Type, error) {
	if err := operands(in, 1); err != nil {
		return nil, err
	}
	rank := len(in[0].Shape)
	seen := make([]bool, rank)
	bad := len(o.Perm) != rank
	for _, p := range o.Perm {
		if p < 0 || p >= int64(rank) || seen[p] {
			bad = true
			break
		}
		seen[p] = true
	}
	if bad {
		return nil, fmt.Errorf("%v is no permutation of %d axes", o.Perm, rank)
	}
	s := make(ir.Shape, rank)
	for i, p := range o.Perm {
		s[i] = in[0].Shape[p]
	}
	return one(in[0].DType, s), nil
}

func (o Transpose) Eval(in, out []ir.Tensor) {
	own := rowMajor(in[0].Type.Shape)
	strides := make([]int64, len(own))
	for i, p := range o.Perm {
		strides[i] = own[p]
	}
	walk(out[0].Type.Shape, func(i int64, at []int64) { moveOne(out[0], i, in[0], at[0]) }, strides)
}

func (o Transpose) Grad(b *ir.Builder, n *ir.Node, dOut []*ir.Value) []*ir.Value {
	if !differentiable(n) {
		return none(1)
	}
	back := make([]int64, len(o.Perm))
	for i, p := range o.Perm {
		back[p] = int64(i)
	}
	return []*ir.Value{b.Add(Transpose{Perm: back}, dOut[0])}
}

func (Transpose) Samples() []ir.Sample {
	list := badOperands(Transpose{Perm: []int64{0}}, ir.T(ir.F32, 2))
	for _, s := range []struct {
		shape ir.Shape
		perm  []int64
	}{
		{nil, nil}, {ir.Shape{3}, []int64{0}}, {ir.Shape{3, 5}, []int64{1, 0}}, {ir.Shape{3, 5}, []int64{0, 1}},
		{ir.Shape{2, 3, 4}, []int64{0, 2, 1}}, {ir.Shape{2, 3, 4}, []int64{2, 0, 1}}, {ir.Shape{2, 3, 4}, []int64{1, 0, 2}}, {ir.Shape{2, 3, 4}, []int64{2, 1, 0}},
		{ir.Shape{2, 3, 2, 5}, []int64{0, 2, 1, 3}}, {ir.Shape{2, 1, 3, 0}, []int64{3, 1, 0, 2}}, {ir.Shape{2, 1, 3, 2, 1}, []int64{4, 3, 1, 2, 0}},
		{ir.Shape{70, 67}, []int64{1, 0}},
	} {
		for _, d := range []ir.DType{ir.F32, ir.F64, ir.F16, ir.I64, ir.I32, ir.I8, ir.Bool} {
			if d == ir.F32 || len(s.shape) < 4 && s.shape.Elems() < 100 {
				list = append(list, good(Transpose{Perm: s.perm}, ramp(d, 0, -2, 2, s.shape...)))
			}
		}
	}
	return append(list,
		bad(Transpose{Perm: []int64{0}}, "[0] is no permutation of 2 axes", ir.T(ir.F32, 2, 3)),
		bad(Transpose{Perm: []int64{0, 0}}, "no permutation", ir.T(ir.F32, 2, 3)),
		bad(Transpose{Perm: []int64{0, 2}}, "no permutation", ir.T(ir.F32, 2, 3)),
		bad(Transpose{Perm: []int64{-1, 0}}, "no permutation", ir.T(ir.F32, 2, 3)))
}
