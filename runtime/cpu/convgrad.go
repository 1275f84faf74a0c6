package cpu

import "aitk/runtime"

func convGradInput(b *builder, c conv) (runtime.Kernel, error) {
	w, dy, dx, err := b.convOperands()
	if err != nil {
		return nil, err
	}
	channels, filters, cells := c.channels(), c.filters(), c.cells()
	weights := func(wk *worker, dst []float64, width, p, r0, r1, k0, k1 int) {
		packFilters(&w, wk, dst, width, p*filters*channels*cells, channels, cells, r0, r1, k0, k1)
	}
	return b.gemm(product{batch: c.group, m: channels, n: c.samples() * c.inputs(), k: filters * cells,
		a: weights, b: c.over(dy).packPositions, store: c.storeImages(dx, channels, c.inputs())}), nil
}

// packFilters packs w [filters, channels, cells] from element at on with channels as lines and (filter, cell) as k.
func packFilters(w *floats, wk *worker, dst []float64, width, at, channels, cells, r0, r1, k0, k1 int) {
	n := k1 - k0
	if tail := (r1 - r0) % width; tail != 0 {
		clear(dst[(r1-r0)/width*width*n:])
	}
	for r := r0; r < r1; r++ {
		d := dst[(r-r0)/width*width*n+(r-r0)%width:]
		for k := k0; k < k1; {
			filter, cell := k/cells, k%cells
			run := wk.f64(packBlock)[:min(cells-cell, k1-k, blockElems)]
			w.load(run, at+(filter*channels+r)*cells+cell)
			for i, x := range run {
				d[(k-k0+i)*width] = x
			}
			k += len(run)
		}
	}
}

func convGradWeight(b *builder, c conv) (runtime.Kernel, error) {
	x, dy, dw, err := b.convOperands()
	if err != nil {
		return nil, err
	}
	filters, positions, n := c.filters(), c.positions(), c.channels()*c.cells()
	images := func(w *worker, dst []float64, width, p, r0, r1, k0, k1 int) {
		packImages(&dy, w, dst, width, p*filters, c.group*filters, positions, r0, r1, k0, k1)
	}
	return b.gemm(product{batch: c.group, m: filters, n: n, k: c.samples() * positions,
		a: images, b: c.under(x).packCells,
		store: func(p, i0, i1, j0, j1 int, t []float64, ld int) {
			for i := i0; i < i1; i++ {
				dw.store((p*filters+i)*n+j0, t[(i-i0)*ld:(i-i0)*ld+j1-j0])
			}
		}}), nil
}

// packImages packs a tensor [samples, all, positions] with channels first, first+1 ... as lines and (sample, position) as k.
func packImages(v *floats, w *worker, dst []float64, width, first, all, positions, r0, r1, k0, k1 int) {
	n := k1 - k0
	if tail := (r1 - r0) % width; tail != 0 {
		clear(dst[(r1-r0)/width*width*n:])
	}
	for r := r0; r < r1; r++ {
		d := dst[(r-r0)/width*width*n+(r-r0)%width:]
		for k := k0; k < k1; {
			sample, at := k/positions, k%positions
			run := w.f64(packBlock)[:min(positions-at, k1-k, blockElems)]
			v.load(run, (sample*all+first+r)*positions+at)
			for i, x := range run {
				d[(k-k0+i)*width] = x
			}
			k += len(run)
		}
	}
}
