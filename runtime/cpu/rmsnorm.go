package cpu

import (
	"math"

	"aitk/ir/op"
	"aitk/runtime"
)

// rmsNormKernel serves RMSNorm and RMSNormGrad.
func rmsNormKernel(b *builder) (runtime.Kernel, error) {
	switch o := b.x.Op.(type) {
	case op.RMSNorm:
		return rmsNorm(b, o)
	case op.RMSNormGrad:
		return rmsNormGrad(b, o)
	}
	return nil, nil
}

func rmsNorm(b *builder, o op.RMSNorm) (runtime.Kernel, error) {
	in, out, err := b.floatsAt(0, 1)
	if err != nil {
		return nil, err
	}
	x, scale, y := in[0], in[1], out[0]
	l := rowsFrom(b.inType(0).Shape, o.Axis)
	return l.over(b, func(w *worker, row int) error {
		first := row * l.n
		inv := l.inverseRMS(w, &x, first, o.Eps)
		for lo := 0; lo < l.n; lo += lineChunk {
			xs, ss := w.panelA[:min(lineChunk, l.n-lo)], w.panelB[:min(lineChunk, l.n-lo)]
			if l.n > lineChunk {
				x.load(xs, first+lo)
			}
			scale.load(ss, lo)
			for k, s := range ss {
				xs[k] *= inv * s
			}
			y.store(first+lo, xs)
		}
		return nil
	}), nil
}

// inverseRMS is 1/sqrt(mean(x*x) + eps) of a row, summed in index order. The row stays in panelA where it is no longer than lineChunk.
func (l lines) inverseRMS(w *worker, x *floats, first int, eps float64) float64 {
	var squares float64
	for lo := 0; lo < l.n; lo += lineChunk {
		xs := w.panelA[:min(lineChunk, l.n-lo)]
		x.load(xs, first+lo)
		for _, v := range xs {
			squares += float64(v * v)
		}
	}
	return 1 / math.Sqrt(squares/float64(l.n)+eps)
}

// rmsNormGrad takes a block of rows as a tile and leaves the block's sums of dy*hat in the scratch.
func rmsNormGrad(b *builder, o op.RMSNormGrad) (runtime.Kernel, error) {
	in, out, err := b.floatsAt(0, 1, 2)
	if err != nil {
		return nil, err
	}
	x, scale, dy, dx := in[0], in[1], in[2], out[0]
	l := rowsFrom(b.inType(0).Shape, o.Axis)
	p, err := b.partials(l, 1)
	if err != nil {
		return nil, err
	}
	grads := p.rows(b, func(w *worker, row int, sums []float64) {
		first := row * l.n
		inv := l.inverseRMS(w, &x, first, o.Eps)
		var dot float64
		for lo := 0; lo < l.n; lo += lineChunk {
			xs, gs := l.chunkPair(w, &x, &dy, first, lo)
			ss := w.tile[:len(xs)]
			scale.load(ss, lo)
			dscale := sums[lo : lo+len(xs)]
			for k, g := range gs {
				hat := xs[k] * inv
				xs[k] = hat
				dscale[k] += float64(g * hat)
				g *= ss[k]
				gs[k] = g
				dot += float64(g * hat)
			}
		}
		dot /= float64(l.n)
		for lo := 0; lo < l.n; lo += lineChunk {
			hats, gs := w.panelA[:min(lineChunk, l.n-lo)], w.panelB[:min(lineChunk, l.n-lo)]
			if l.n > lineChunk {
				hats, gs = l.chunkPair(w, &x, &dy, first, lo)
				ss := w.tile[:len(hats)]
				scale.load(ss, lo)
				for k, s := range ss {
					hats[k] *= inv
					gs[k] *= s
				}
			}
			for k, g := range gs {
				gs[k] = inv * (g - float64(hats[k]*dot))
			}
			dx.store(first+lo, gs)
		}
	})
	return b.sequence(grads, p.total(b, out[1])), nil
}
