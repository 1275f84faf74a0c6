package cpu

import (
	"math"

	"aitk/ir"
	"aitk/ir/op"
	"aitk/runtime"
)

// layerNormKernel serves LayerNorm and LayerNormGrad.
func layerNormKernel(b *builder) (runtime.Kernel, error) {
	switch o := b.x.Op.(type) {
	case op.LayerNorm:
		return layerNorm(b, o)
	case op.LayerNormGrad:
		return layerNormGrad(b, o)
	}
	return nil, nil
}

func layerNorm(b *builder, o op.LayerNorm) (runtime.Kernel, error) {
	ins := []int{0, 1, 2}[:len(b.in)]
	in, out, err := b.floatsAt(ins...)
	if err != nil {
		return nil, err
	}
	x, scale, y := in[0], in[1], out[0]
	l := rowsFrom(b.inType(0).Shape, o.Axis)
	return l.over(b, func(w *worker, row int) error {
		first := row * l.n
		mean, rstd := l.moments(w, &x, first, o.Eps)
		for lo := 0; lo < l.n; lo += lineChunk {
			xs, ss := w.panelA[:min(lineChunk, l.n-lo)], w.panelB[:min(lineChunk, l.n-lo)]
			if l.n > lineChunk {
				x.load(xs, first+lo)
			}
			scale.load(ss, lo)
			for k, s := range ss {
				xs[k] = (xs[k] - mean) * rstd * s
			}
			if len(in) == 3 {
				in[2].load(ss, lo)
				for k, s := range ss {
					xs[k] += s
				}
			}
			y.store(first+lo, xs)
		}
		return nil
	}), nil
}

// moments are the mean of a row and 1/sqrt(variance + eps), each summed in index order. The row stays in panelA where it is no longer
// than lineChunk.
func (l lines) moments(w *worker, x *floats, first int, eps float64) (mean, rstd float64) {
	var sum, squares float64
	for lo := 0; lo < l.n; lo += lineChunk {
		xs := w.panelA[:min(lineChunk, l.n-lo)]
		x.load(xs, first+lo)
		for _, v := range xs {
			sum += v
		}
	}
	mean = sum / float64(l.n)
	for lo := 0; lo < l.n; lo += lineChunk {
		xs := w.panelA[:min(lineChunk, l.n-lo)]
		if l.n > lineChunk {
			x.load(xs, first+lo)
		}
		for _, v := range xs {
			squares += float64((v - mean) * (v - mean))
		}
	}
	return mean, 1 / math.Sqrt(squares/float64(l.n)+eps)
}

// layerNormGrad takes a block of rows as a tile. It leaves the block's sums of dy*hat and dy in the scratch, from which dscale and dbias
// are added up block by block.
func layerNormGrad(b *builder, o op.LayerNormGrad) (runtime.Kernel, error) {
	in, out, err := b.floatsAt(0, 1, 2)
	if err != nil {
		return nil, err
	}
	x, scale, dy, dx := in[0], in[1], in[2], out[0]
	l := rowsFrom(b.inType(0).Shape, o.Axis)
	p, err := b.partials(l, 2)
	if err != nil {
		return nil, err
	}
	grads := p.rows(b, func(w *worker, row int, sums []float64) {
		first := row * l.n
		mean, rstd := l.moments(w, &x, first, o.Eps)
		var sum, dot float64
		for lo := 0; lo < l.n; lo += lineChunk {
			xs, gs := l.chunkPair(w, &x, &dy, first, lo)
			ss := w.tile[:len(xs)]
			scale.load(ss, lo)
			dscale, dbias := sums[lo:lo+len(xs)], sums[l.n+lo:l.n+lo+len(xs)]
			for k, g := range gs {
				hat := (xs[k] - mean) * rstd
				xs[k] = hat
				dscale[k] += float64(g * hat)
				dbias[k] += g
				g *= ss[k]
				gs[k] = g
				sum += g
				dot += float64(g * hat)
			}
		}
		sum /= float64(l.n)
		dot /= float64(l.n)
		for lo := 0; lo < l.n; lo += lineChunk {
			hats, gs := w.panelA[:min(lineChunk, l.n-lo)], w.panelB[:min(lineChunk, l.n-lo)]
			if l.n > lineChunk {
				hats, gs = l.chunkPair(w, &x, &dy, first, lo)
				ss := w.tile[:len(hats)]
				scale.load(ss, lo)
				for k, s := range ss {
					hats[k] = (hats[k] - mean) * rstd
					gs[k] *= s
				}
			}
			for k, g := range gs {
				gs[k] = rstd * (g - sum - float64(hats[k]*dot))
			}
			dx.store(first+lo, gs)
		}
	})
	return b.sequence(grads, p.total(b, out[1], out[2])), nil
}

// partials are sums over rows: for each of op.NormBlocks blocks of rows and each of some quantities, a row of float64 in the scratch.
type partials struct {
	l          lines
	quantities int
	blocks     int
	blockRows  int
	sums       []float64 // [blocks][quantities][l.n]
}

// partials lays sums of so many quantities out in the scratch.
func (b *builder) partials(l lines, quantities int) (*partials, error) {
	p := &partials{l: l, quantities: quantities, blocks: int(op.NormBlocks(int64(l.count)))}
	if p.blocks > 0 {
		p.blockRows = int(op.NormBlockRows(int64(l.count)))
	}
	var err error
	p.sums, err = b.scratchF64(p.blocks * quantities * l.n)
	return p, err
}

// scratchF64 is the planned scratch as n float64. Fewer bytes than the op asks for are an error of the plan.
func (b *builder) scratchF64(n int) ([]float64, error) {
	if b.scratch.Bytes < int64(n)*8 {
		return nil, ir.Errorf(ir.Failed, b.x.Origin, "%s needs %d bytes of scratch, the plan gives %d", ir.OpName(b.x.Op), int64(n)*8, b.scratch.Bytes)
	}
	return view[float64](b.scratch)[:n], nil
}

// rows makes a kernel that runs body on every row; sums are those of the row's block, one quantity after the other.
func (p *partials) rows(b *builder, body func(w *worker, row int, sums []float64)) runtime.Kernel {
	size := p.quantities * p.l.n
	return b.tiles(p.blocks, func(w *worker, block int) error {
		sums := p.sums[block*size : (block+1)*size]
		clear(sums)
		for r := block * p.blockRows; r < min((block+1)*p.blockRows, p.l.count); r++ {
			body(w, r, sums)
		}
		return nil
	})
}

// total makes a kernel that adds the blocks up in order, quantity i to out[i].
func (p *partials) total(b *builder, out ...floats) runtime.Kernel {
	return b.ranges(p.l.n, rangeElems, func(w *worker, lo, hi int) error {
		for q := range out {
			for at := lo; at < hi; at += blockElems {
				acc := w.f64(0)[:min(blockElems, hi-at)]
				clear(acc)
				for block := range p.blocks {
					from := (block*p.quantities + q) * p.l.n
					for k, v := range p.sums[from+at : from+at+len(acc)] {
						acc[k] += v
					}
				}
				out[q].store(at, acc)
			}
		}
		return nil
	})
}
