package cpu

import (
	"math"

	"aitk/ir/op"
	"aitk/runtime"
)

// compareKernel serves the questions about numbers.
func compareKernel(b *builder) (runtime.Kernel, error) {
	switch b.x.Op.(type) {
	case op.Equal:
		return comparison(b, equalBlock[float64], equalBlock[int64])
	case op.Less:
		return comparison(b, lessBlock[float64], lessBlock[int64])
	case op.LessEqual:
		return comparison(b, lessEqualBlock[float64], lessEqualBlock[int64])
	case op.IsNaN:
		return question(b, math.IsNaN)
	case op.IsInf:
		return question(b, func(x float64) bool { return math.IsInf(x, 0) })
	}
	return nil, nil
}

// comparison asks f of floats or g of integers and booleans, which broadcast.
func comparison(b *builder, f func(dst []uint8, x, y []float64), g func(dst []uint8, x, y []int64)) (runtime.Kernel, error) {
	s := b.broadcast()
	z := view[uint8](b.out[0])
	if b.inType(0).DType.IsFloat() {
		x, err := b.floatIn(0)
		if err != nil {
			return nil, err
		}
		y, err := b.floatIn(1)
		if err != nil {
			return nil, err
		}
		return s.blocks(b, func(w *worker, n int, at [maxLists]int) {
			xs, ys := w.f64(0)[:n], w.f64(1)[:n]
			x.loadRun(xs, at[1], s.step[1])
			y.loadRun(ys, at[2], s.step[2])
			f(z[at[0]:at[0]+n], xs, ys)
		}), nil
	}
	x, err := b.intIn(0)
	if err != nil {
		return nil, err
	}
	y, err := b.intIn(1)
	if err != nil {
		return nil, err
	}
	return s.blocks(b, func(w *worker, n int, at [maxLists]int) {
		xs, ys := w.i64(0)[:n], w.i64(1)[:n]
		x.loadRun(xs, at[1], s.step[1])
		y.loadRun(ys, at[2], s.step[2])
		g(z[at[0]:at[0]+n], xs, ys)
	}), nil
}

// question asks f of each float.
func question(b *builder, f func(x float64) bool) (runtime.Kernel, error) {
	x, err := b.floatIn(0)
	if err != nil {
		return nil, err
	}
	z := view[uint8](b.out[0])
	return b.ranges(len(z), rangeElems, func(w *worker, lo, hi int) error {
		for i := lo; i < hi; i += blockElems {
			xs := w.f64(0)[:min(blockElems, hi-i)]
			x.load(xs, i)
			for k, v := range xs {
				z[i+k] = boolByte(f(v))
			}
		}
		return nil
	}), nil
}

func equalBlock[T float64 | int64](dst []uint8, x, y []T) {
	for i, v := range x {
		dst[i] = boolByte(v == y[i])
	}
}

func lessBlock[T float64 | int64](dst []uint8, x, y []T) {
	for i, v := range x {
		dst[i] = boolByte(v < y[i])
	}
}

func lessEqualBlock[T float64 | int64](dst []uint8, x, y []T) {
	for i, v := range x {
		dst[i] = boolByte(v <= y[i])
	}
}
