package cpu

import (
	"math"

	"aitk/ir/op"
	"aitk/runtime"
)

// finiteKernel serves SumSquares and AllFinite.
func finiteKernel(b *builder) (runtime.Kernel, error) {
	switch b.x.Op.(type) {
	case op.SumSquares:
		return sumSquares(b)
	case op.AllFinite:
		return allFinite(b)
	}
	return nil, nil
}

// sumSquares sums stretches side by side, then the stretches in order.
func sumSquares(b *builder) (runtime.Kernel, error) {
	in, out, err := b.floatsAt(0)
	if err != nil {
		return nil, err
	}
	x, y := in[0], out[0]
	n := int(b.inType(0).Elems())
	tiles, each := stretches(n, rangeElems)
	sums := make([]float64, tiles)
	parts := b.tiles(tiles, func(w *worker, tile int) error {
		var sum float64
		lo, hi := tile*each, min((tile+1)*each, n)
		for i := lo; i < hi; i += blockElems {
			block := w.f64(0)[:min(blockElems, hi-i)]
			x.load(block, i)
			for _, v := range block {
				sum += float64(v * v)
			}
		}
		sums[tile] = sum
		return nil
	})
	total := b.serial(func(*worker) error {
		var sum float64
		for _, v := range sums {
			sum += v
		}
		y.set(0, sum)
		return nil
	})
	return b.sequence(parts, total), nil
}

// allFinite looks at stretches side by side. The flag is read after that: it may lie where the result goes.
func allFinite(b *builder) (runtime.Kernel, error) {
	x, err := b.floatIn(1)
	if err != nil {
		return nil, err
	}
	ok, err := b.intIn(0)
	if err != nil {
		return nil, err
	}
	out, err := b.intOut(0)
	if err != nil {
		return nil, err
	}
	n := int(b.inType(1).Elems())
	tiles, each := stretches(n, rangeElems)
	fine := make([]bool, tiles)
	parts := b.tiles(tiles, func(w *worker, tile int) error {
		all := true
		lo, hi := tile*each, min((tile+1)*each, n)
		for i := lo; i < hi && all; i += blockElems {
			block := w.f64(0)[:min(blockElems, hi-i)]
			x.load(block, i)
			for _, v := range block {
				if !(math.Abs(v) <= math.MaxFloat64) {
					all = false
				}
			}
		}
		fine[tile] = all
		return nil
	})
	total := b.serial(func(*worker) error {
		flag := ok.at(0)
		for _, f := range fine {
			if !f {
				flag = 0
			}
		}
		out.set(0, flag)
		return nil
	})
	return b.sequence(parts, total), nil
}
