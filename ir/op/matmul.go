package op

import (
	"fmt"

	"aitk/ir"
)

// MatMul multiplies matrices: the last two axes of a and b, each first transposed where TransA or TransB says so; the axes before
// them broadcast as in numpy.
//
//	a [..., m, k] (TransA: [..., k, m]), b [..., k, n] (TransB: [..., n, k]) -> [..., m, n]
//
// Both operands have rank 2 or more and one float dtype, which the result keeps. Products are summed along k in index order, in
// float32 or wider whatever the dtype, and rounded once. k = 0 gives zeros.
type MatMul struct{ TransA, TransB bool }

// matDims are the extents of one product.
type matDims struct{ m, n, k int64 }

func (o MatMul) dims(a, b ir.Shape) (d matDims, err error) {
	if len(a) < 2 || len(b) < 2 {
		return d, fmt.Errorf("operands must have rank 2 or more, got shapes %v and %v", a, b)
	}
	m, k := a[len(a)-2], a[len(a)-1]
	if o.TransA {
		m, k = k, m
	}
	k2, n := b[len(b)-2], b[len(b)-1]
	if o.TransB {
		k2, n = n, k2
	}
	if k != k2 {
		return d, fmt.Errorf("inner dimensions differ: %d and %d (shapes %v and %v, transposed %t and %t)", k, k2, a, b, o.TransA, o.TransB)
	}
	return matDims{m, n, k}, nil
}

// Infer gives [batch..., m, n].
func (o MatMul) Infer(in []ir.Type) ([]ir.Type, error) {
	if err := wantOperands(in, "a", "b"); err != nil {
		return nil, err
	}
	if err := wantFloats(in, 0, 1); err != nil {
		return nil, err
	}
	a, b := in[0].Shape, in[1].Shape
	d, err := o.dims(a, b)
	if err != nil {
		return nil, err
	}
	batch, err := ir.Broadcast(a[:len(a)-2], b[:len(b)-2])
	if err != nil {
		return nil, fmt.Errorf("batch axes: %w", err)
	}
	out := append(batch, d.m, d.n)
	return []ir.Type{{DType: in[0].DType, Shape: out}}, out.Check()
}
