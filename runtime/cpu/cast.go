package cpu

import (
	"aitk/ir"
	"aitk/ir/op"
	"aitk/runtime"
)

// castKernel serves Cast. Where both sides have one width the output may be the operand's bytes: a block is read before it is written.
func castKernel(b *builder) (runtime.Kernel, error) {
	o, ok := b.x.Op.(op.Cast)
	if !ok {
		return nil, nil
	}
	from := b.inType(0).DType
	n := int(b.outType(0).Elems())
	switch {
	case from == o.To:
		return b.copyAll(b.out[0], b.in[0]), nil
	case from.IsFloat() && o.To.IsFloat():
		return unaryFloat(b, nil, func(_, _ []float64) {})
	case from.IsFloat():
		x, err := b.floatIn(0)
		if err != nil {
			return nil, err
		}
		y, err := b.intOut(0)
		if err != nil {
			return nil, err
		}
		lo, hi := o.To.IntRange()
		return b.ranges(n, rangeElems, func(w *worker, first, end int) error {
			for i := first; i < end; i += blockElems {
				k := min(blockElems, end-i)
				xs, ys := w.f64(0)[:k], w.i64(0)[:k]
				x.load(xs, i)
				switch o.To {
				case ir.Bool:
					truths(ys, xs)
				case ir.U64:
					cutUnsigned(ys, xs)
				default:
					cut(ys, xs, lo, hi)
				}
				y.store(i, ys)
			}
			return nil
		}), nil
	}
	x, err := b.intIn(0)
	if err != nil {
		return nil, err
	}
	if o.To.IsFloat() {
		y, err := b.floatOut(0)
		if err != nil {
			return nil, err
		}
		return b.ranges(n, rangeElems, func(w *worker, lo, hi int) error {
			for i := lo; i < hi; i += blockElems {
				k := min(blockElems, hi-i)
				xs, ys := w.i64(0)[:k], w.f64(0)[:k]
				x.load(xs, i)
				if from == ir.U64 { // held by its bits
					for j, v := range xs {
						ys[j] = float64(uint64(v))
					}
				} else {
					for j, v := range xs {
						ys[j] = float64(v)
					}
				}
				y.store(i, ys)
			}
			return nil
		}), nil
	}
	y, err := b.intOut(0)
	if err != nil {
		return nil, err
	}
	return b.ranges(n, rangeElems, func(w *worker, lo, hi int) error {
		for i := lo; i < hi; i += blockElems {
			xs := w.i64(0)[:min(blockElems, hi-i)]
			x.load(xs, i)
			y.store(i, xs)
		}
		return nil
	}), nil
}

// cut drops fractions and saturates; NaN becomes 0.
func cut(dst []int64, src []float64, lo, hi int64) {
	least, most := float64(lo), float64(hi)
	for i, x := range src {
		switch {
		case x != x:
			dst[i] = 0
		case x <= least:
			dst[i] = lo
		case x >= most: // 2^63 for i64, so that the conversion below is defined
			dst[i] = hi
		default:
			dst[i] = int64(x)
		}
	}
}

// cutUnsigned is cut for u64, which is held by its bits.
func cutUnsigned(dst []int64, src []float64) {
	for i, x := range src {
		switch {
		case !(x > 0): // NaN too
			dst[i] = 0
		case x >= 1<<64:
			dst[i] = -1
		default:
			dst[i] = int64(uint64(x))
		}
	}
}

func truths(dst []int64, src []float64) {
	for i, x := range src {
		dst[i] = int64(boolByte(x != 0))
	}
}
