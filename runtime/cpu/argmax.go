package cpu

import (
	"aitk/ir/op"
	"aitk/runtime"
)

// argmaxKernel serves ArgMax.
func argmaxKernel(b *builder) (runtime.Kernel, error) {
	o, ok := b.x.Op.(op.ArgMax)
	if !ok {
		return nil, nil
	}
	if b.inType(0).DType.IsFloat() {
		x, err := b.floatIn(0)
		if err != nil {
			return nil, err
		}
		return argmax(b, o, &x, (*worker).f64), nil
	}
	x, err := b.intIn(0)
	if err != nil {
		return nil, err
	}
	return argmax(b, o, &x, (*worker).i64), nil
}

// argmax takes a tile for each stretch of at most blockElems lines that lie side by side, or for some lines where the axis is the last one.
func argmax[A float64 | int64](b *builder, o op.ArgMax, x elements[A], block func(*worker, int) []A) runtime.Kernel {
	l := linesAlong(b.inType(0).Shape, o.Axis)
	y := view[int64](b.out[0])
	beats := winner[A](o)
	if l.inner == 1 {
		return l.over(b, func(w *worker, line int) error {
			var best A
			where := 0
			for lo := 0; lo < l.n; lo += blockElems {
				part := block(w, 0)[:min(blockElems, l.n-lo)]
				x.load(part, line*l.n+lo)
				for i, v := range part {
					if lo+i == 0 || beats(v, best) {
						best, where = v, lo+i
					}
				}
			}
			y[line] = int64(where)
			return nil
		})
	}
	stripes := (l.inner + blockElems - 1) / blockElems
	outer := l.count / max(1, l.inner)
	return b.tiles(outer*stripes, func(w *worker, tile int) error {
		begin := tile % stripes * blockElems
		k := min(blockElems, l.inner-begin)
		best, part := block(w, 0)[:k], block(w, 1)[:k]
		where := y[tile/stripes*l.inner+begin:][:k]
		for j := range l.n {
			x.load(part, (tile/stripes*l.n+j)*l.inner+begin)
			for i, v := range part {
				if j == 0 || beats(v, best[i]) {
					best[i], where[i] = v, int64(j)
				}
			}
		}
		return nil
	})
}

// winner tells whether a later element takes the place of the best one so far. NaN beats every number.
func winner[A float64 | int64](o op.ArgMax) func(v, best A) bool {
	beats := func(v, best A) bool { return v > best || v != v && best == best }
	if o.Min {
		beats = func(v, best A) bool { return v < best || v != v && best == best }
	}
	if !o.Last {
		return beats
	}
	return func(v, best A) bool { return beats(v, best) || v == best || v != v }
}
