package cpu

import (
	"aitk/ir"
	"aitk/ir/op"
	"aitk/runtime"
)

// matmulKernel serves MatMul: all four orientations are strides of the packers.
func matmulKernel(b *builder) (runtime.Kernel, error) {
	o, ok := b.x.Op.(op.MatMul)
	if !ok {
		return nil, nil
	}
	x, err := b.floatIn(0)
	if err != nil {
		return nil, err
	}
	y, err := b.floatIn(1)
	if err != nil {
		return nil, err
	}
	out, err := b.floatOut(0)
	if err != nil {
		return nil, err
	}
	as, bs, cs := b.inType(0).Shape, b.inType(1).Shape, b.outType(0).Shape
	batch := cs[:len(cs)-2]
	g := product{batch: int(batch.Elems()), m: int(cs[len(cs)-2]), n: int(cs[len(cs)-1]), k: int(as[len(as)-1])}
	if o.TransA {
		g.k = int(as[len(as)-2])
	}
	left := &matrix{v: x, at: matrices(as, batch), lineStep: g.k, kStep: 1}
	if o.TransA {
		left.lineStep, left.kStep = 1, g.m
	}
	right := &matrix{v: y, at: matrices(bs, batch), lineStep: 1, kStep: g.n}
	if o.TransB {
		right.lineStep, right.kStep = g.k, 1
	}
	if !o.TransA && bs[:len(bs)-2].Elems() == 1 && as[:len(as)-2].Elems() == int64(g.batch) {
		// One matrix for the whole batch: the batch is so many more rows.
		g.m, g.batch = g.m*g.batch, min(1, g.batch)
	}
	switch { // a vector is not worth packing the matrix
	case g.n == 1:
		return b.matvec(g, left, right, out), nil
	case g.m == 1:
		return b.matvec(product{batch: g.batch, m: g.n, n: 1, k: g.k}, right, left, out), nil
	}
	g.a, g.b = left.pack, right.pack
	g.store = func(p, i0, i1, j0, j1 int, c []float64, ld int) {
		for i := i0; i < i1; i++ {
			out.store((p*g.m+i)*g.n+j0, c[(i-i0)*ld:(i-i0)*ld+j1-j0])
		}
	}
	return b.gemm(g), nil
}

// matrices gives the offset of each matrix of an operand of shape s as broadcasting takes them for batch.
func matrices(s, batch ir.Shape) []int {
	at := make([]int, batch.Elems())
	own := s[:len(s)-2]
	size := s[len(s)-2] * s[len(s)-1]
	for p := range at {
		rest, step, offset := int64(p), size, int64(0)
		for i := len(batch) - 1; i >= 0; i-- {
			c := rest % batch[i]
			rest /= batch[i]
			if k := i - (len(batch) - len(own)); k >= 0 {
				if own[k] != 1 {
					offset += c * step
				}
				step *= own[k]
			}
		}
		at[p] = int(offset)
	}
	return at
}

// vecLines is how many elements of a matrix-vector product are one tile.
const vecLines = blockElems

// matvec multiplies the lines of a with the one line of x: memory is read once, in the order in which it lies.
func (b *builder) matvec(g product, a, x *matrix, out floats) runtime.Kernel {
	across := (g.m + vecLines - 1) / vecLines
	return b.tiles(g.batch*across, func(w *worker, tile int) error {
		p, i0 := tile/across, tile%across*vecLines
		n := min(vecLines, g.m-i0)
		sums := w.f64(0)[:n]
		clear(sums)
		for k0 := 0; k0 < g.k; k0 += blockElems {
			kn := min(blockElems, g.k-k0)
			xs := w.f64(1)[:kn]
			x.pack(w, xs, 1, p, 0, 1, k0, k0+kn)
			if a.kStep == 1 {
				line := w.f64(2)
				for i := range sums {
					a.v.load(line[:kn], a.at[p]+(i0+i)*a.lineStep+k0)
					s := sums[i]
					for k, v := range line[:kn] {
						s += float64(v * xs[k])
					}
					sums[i] = s
				}
				continue
			}
			line := w.f64(2)[:n]
			for k, xk := range xs {
				a.v.load(line, a.at[p]+(k0+k)*a.kStep+i0)
				for i, v := range line {
					sums[i] += float64(v * xk)
				}
			}
		}
		out.store(p*g.m+i0, sums)
		return nil
	})
}
