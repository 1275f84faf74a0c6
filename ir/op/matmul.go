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

// Eval sums each product along k in index order.
func (o MatMul) Eval(in, out []ir.Tensor) {
	a, b, y := in[0], in[1], out[0]
	d, err := o.dims(a.Type.Shape, b.Type.Shape)
	if err != nil {
		panic(ir.Bugf("MatMul: %v", err))
	}
	am, ak := d.k, int64(1)
	if o.TransA {
		am, ak = 1, d.m
	}
	bk, bn := d.n, int64(1)
	if o.TransB {
		bk, bn = 1, d.k
	}
	batch := y.Type.Shape[:len(y.Type.Shape)-2]
	aAt, bAt := stretch(a.Type.Shape, batch), stretch(b.Type.Shape, batch)
	for p := range batch.Elems() {
		a, b, y := a.F[aAt(p):], b.F[bAt(p):], y.F[p*d.m*d.n:]
		for i := range d.m {
			for j := range d.n {
				var sum float64
				for k := range d.k {
					sum += a[i*am+k*ak] * b[k*bk+j*bn]
				}
				y[i*d.n+j] = sum
			}
		}
	}
}

// stretch maps the number of a matrix within batch to the offset of the matrix that broadcasting takes from a tensor of shape s.
func stretch(s, batch ir.Shape) func(p int64) int64 {
	size := s[len(s)-1] * s[len(s)-2]
	own := s[:len(s)-2]
	return func(p int64) int64 {
		var at int64
		step := size
		for i := len(batch) - 1; i >= 0; i-- {
			c := p % batch[i]
			p /= batch[i]
			if k := i - (len(batch) - len(own)); k >= 0 {
				if own[k] != 1 {
					at += c * step
				}
				step *= own[k]
			}
		}
		return at
	}
}

// Grad multiplies dy by the other operand, transposed as the operand's own orientation asks:
//
//	da = dy·opB(b)ᵀ, or its transpose where TransA;  db = opA(a)ᵀ·dy, or its transpose where TransB
func (o MatMul) Grad(b *ir.Builder, n *ir.Node, dOut []*ir.Value) []*ir.Value {
	x, w, dy := n.In[0], n.In[1], dOut[0]
	var dx *ir.Value
	if o.TransA {
		dx = b.Add(MatMul{TransA: o.TransB, TransB: true}, w, dy)
	} else {
		dx = b.Add(MatMul{TransB: !o.TransB}, dy, w)
	}
	if dw := o.weightGrad(b, x, w, dy); dw != nil {
		return []*ir.Value{sumBatch(b, dx, x.Type.Shape), dw}
	}
	var dw *ir.Value
	if o.TransB {
		dw = b.Add(MatMul{TransA: true, TransB: o.TransA}, dy, x)
	} else {
		dw = b.Add(MatMul{TransA: !o.TransA}, x, dy)
	}
	return []*ir.Value{sumBatch(b, dx, x.Type.Shape), sumBatch(b, dw, w.Type.Shape)}
}

// weightGrad is the gradient of one matrix w that serves a whole batch of a [..., m, k]: the batch is folded into m, so that the sum over
// it happens inside one product instead of over a stack of matrices like w. nil where a cannot be folded without copying.
func (o MatMul) weightGrad(b *ir.Builder, x, w, dy *ir.Value) *ir.Value {
	if len(w.Type.Shape) != 2 || len(x.Type.Shape) == 2 || o.TransA {
		return nil
	}
	fold := func(v *ir.Value) *ir.Value {
		s := v.Type.Shape
		last := s[len(s)-1]
		return b.Add(Reshape{Shape: ir.Shape{s[:len(s)-1].Elems(), last}}, v)
	}
	if o.TransB {
		return b.Add(MatMul{TransA: true}, fold(dy), fold(x))
	}
	return b.Add(MatMul{TransA: true}, fold(x), fold(dy))
}

// sumBatch sums v over the batch axes along which broadcasting stretched a tensor of shape want.
func sumBatch(b *ir.Builder, v *ir.Value, want ir.Shape) *ir.Value {
	s := v.Type.Shape
	lead := len(s) - len(want)
	var axes []int64
	for i := range s {
		if i < lead || want[i-lead] == 1 && s[i] != 1 {
			axes = append(axes, int64(i))
		}
	}
	if len(axes) == 0 {
		return v
	}
	v = b.Add(ReduceSum{Axes: axes}, v)
	if v.Type.Shape.Equal(want) {
		return v
	}
	return b.Add(Reshape{Shape: want.Clone()}, v)
}

// Cost is 2·m·n·k for each product.
func (o MatMul) Cost(in, out []ir.Type) ir.Work {
	w := moved(in, out)
	if d, err := o.dims(in[0].Shape, in[1].Shape); err == nil {
		w.FLOPs = 2 * d.k * out[0].Elems()
	}
	return w
}

// Samples take every orientation, batches that broadcast either way, and no work at all.
func (MatMul) Samples() []ir.Sample {
	f := func(seed uint64, shape ...int64) ir.Tensor { return sampleFloats(seed, ir.F32, shape...) }
	return []ir.Sample{
		good(MatMul{}, f(1, 3, 4), f(2, 4, 5)),
		good(MatMul{TransA: true}, f(3, 4, 3), f(4, 4, 5)),
		good(MatMul{TransB: true}, f(5, 3, 4), f(6, 5, 4)),
		good(MatMul{TransA: true, TransB: true}, f(7, 4, 3), f(8, 5, 4)),
		good(MatMul{}, f(9, 2, 3, 4), f(10, 4, 5)),
		good(MatMul{TransB: true}, f(11, 2, 3, 4), f(12, 5, 4)),
		good(MatMul{TransA: true}, f(13, 2, 4, 3), f(14, 4, 5)),
		good(MatMul{}, f(15, 3, 4), f(16, 2, 4, 5)),
		good(MatMul{TransA: true, TransB: true}, f(17, 2, 1, 4, 3), f(18, 3, 5, 4)),
		good(MatMul{}, f(19, 2, 2, 3, 4), f(20, 2, 1, 4, 2)),
		good(MatMul{}, f(21, 1, 3, 4), f(22, 2, 1, 4, 2)),
		good(MatMul{}, f(23, 1, 1), f(24, 1, 1)),
		good(MatMul{}, f(25, 0, 3, 4), f(26, 4, 5)),
		good(MatMul{}, f(27, 2, 0), f(28, 0, 3)),
		good(MatMul{}, sampleFloats(29, ir.F64, 17, 33), sampleFloats(30, ir.F64, 33, 19)),
		good(MatMul{TransB: true}, sampleFloats(31, ir.BF16, 2, 3, 4), sampleFloats(32, ir.BF16, 5, 4)),
		good(MatMul{}, sampleFloats(33, ir.F16, 3, 4), sampleFloats(34, ir.F16, 4, 5)),
		bad(MatMul{}, "inner dimensions differ: 4 and 5", ir.T(ir.F32, 3, 4), ir.T(ir.F32, 5, 4)),
		bad(MatMul{TransA: true}, "inner dimensions differ: 3 and 4", ir.T(ir.F32, 3, 4), ir.T(ir.F32, 4, 5)),
		bad(MatMul{}, "do not broadcast", ir.T(ir.F32, 2, 3, 4), ir.T(ir.F32, 3, 4, 5)),
		bad(MatMul{}, "rank 2 or more", ir.T(ir.F32, 4), ir.T(ir.F32, 4, 5)),
		bad(MatMul{}, "want floats", ir.T(ir.I64, 3, 4), ir.T(ir.I64, 4, 5)),
		bad(MatMul{}, "want one element type", ir.T(ir.F32, 3, 4), ir.T(ir.F64, 4, 5)),
		bad(MatMul{}, "takes 2 operands (a, b)", ir.T(ir.F32, 3, 4)),
		bad(MatMul{}, "too large", ir.T(ir.F32, 1<<40, 1), ir.T(ir.F32, 1, 1<<40)),
	}
}
