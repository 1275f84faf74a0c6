package cpu

import "aitk/runtime"

func convGradInput(b *builder, c conv) (runtime.Kernel, error) {
	w, dy, dx, err := b.convOperands()
	if err != nil {
		return nil, err
	}
	channels, filters, cells := c.channels(), c.filters(), c.cells()
	weights := func(wk *worker, dst []float64, width, p, r0, r1, k0, k1 int) {
		packChannels(&w, wk, dst, width, p*filters*channels*cells, channels, cells, r0, r1, k0, k1)
	}
	return b.gemm(product{batch: c.group, m: channels, n: c.samples() * c.inputs(), k: filters * cells,
		a: weights, b: c.over(dy).packPositions, store: c.storeImages(dx, channels, c.inputs())}), nil
}

func convGradWeight(b *builder, c conv) (runtime.Kernel, error) {
	x, dy, dw, err := b.convOperands()
	if err != nil {
		return nil, err
	}
	filters, positions, n := c.filters(), c.positions(), c.channels()*c.cells()
	images := func(w *worker, dst []float64, width, p, r0, r1, k0, k1 int) {
		packChannels(&dy, w, dst, width, p*filters*positions, c.group*filters, positions, r0, r1, k0, k1)
	}
	return b.gemm(product{batch: c.group, m: filters, n: n, k: c.samples() * positions,
		a: images, b: c.under(x).packCells,
		store: func(p, i0, i1, j0, j1 int, t []float64, ld int) {
			for i := i0; i < i1; i++ {
				dw.store((p*filters+i)*n+j0, t[(i-i0)*ld:(i-i0)*ld+j1-j0])
			}
		}}), nil
}

// packChannels packs a tensor [outer, all, inner] from element at on, with the channels there, neighbours along all, as lines and
// (outer, inner) as k: filters of one group, with their cells, or images, with their positions.
func packChannels(v *floats, w *worker, dst []float64, width, at, all, inner, r0, r1, k0, k1 int) {
	n := k1 - k0
	if tail := (r1 - r0) % width; tail != 0 {
		clear(dst[(r1-r0)/width*width*n:])
	}
	for r := r0; r < r1; r++ {
		d := dst[(r-r0)/width*width*n+(r-r0)%width:]
		for k := k0; k < k1; {
			o, i := k/inner, k%inner
			run := w.f64(packBlock)[:min(inner-i, k1-k, blockElems)]
			v.load(run, at+(o*all+r)*inner+i)
			for j, x := range run {
				d[(k-k0+j)*width] = x
			}
			k += len(run)
		}
	}
}
