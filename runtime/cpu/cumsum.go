package cpu

import (
	"aitk/ir/op"
	"aitk/runtime"
)

// cumsumKernel serves CumSum. Where the axis is not the last one, the running sums of a block of neighbouring lines are carried together.
func cumsumKernel(b *builder) (runtime.Kernel, error) {
	o, ok := b.x.Op.(op.CumSum)
	if !ok {
		return nil, nil
	}
	if b.inType(0).DType.IsFloat() {
		x, err := b.floatIn(0)
		if err != nil {
			return nil, err
		}
		y, err := b.floatOut(0)
		if err != nil {
			return nil, err
		}
		return runningSums(b, o, &x, &y, (*worker).f64), nil
	}
	x, err := b.intIn(0)
	if err != nil {
		return nil, err
	}
	y, err := b.intOut(0)
	if err != nil {
		return nil, err
	}
	return runningSums(b, o, &x, &y, (*worker).i64), nil
}

// elements is a tensor that is read and written as A, whatever it stores: floats or ints.
type elements[A float64 | int64] interface {
	load(dst []A, i int)
	store(i int, src []A)
	at(i int) A
	set(i int, x A)
}

// runningSums takes a tile for each stretch of at most blockElems neighbouring lines.
func runningSums[A float64 | int64](b *builder, o op.CumSum, x, y elements[A], block func(*worker, int) []A) runtime.Kernel {
	l := linesAlong(b.inType(0).Shape, o.Axis)
	if l.inner == 1 {
		return l.over(b, func(w *worker, line int) error {
			var sum A
			buf := block(w, 0)
			for lo := 0; lo < l.n; lo += blockElems {
				k := min(blockElems, l.n-lo)
				first := line*l.n + lo
				if o.Reverse {
					first = line*l.n + l.n - lo - k
				}
				part := buf[:k]
				x.load(part, first)
				sum = runningSum(part, sum, o)
				y.store(first, part)
			}
			return nil
		})
	}
	stripes := (l.inner + blockElems - 1) / blockElems
	outer := l.count / max(1, l.inner)
	return b.tiles(outer*stripes, func(w *worker, tile int) error {
		begin := tile % stripes * blockElems
		k := min(blockElems, l.inner-begin)
		sums, part, before := block(w, 0)[:k], block(w, 1)[:k], block(w, 2)[:k]
		clear(sums)
		for j := range l.n {
			if o.Reverse {
				j = l.n - 1 - j
			}
			first := (tile/stripes*l.n+j)*l.inner + begin
			x.load(part, first)
			copy(before, sums)
			for i, v := range part {
				sums[i] += v
			}
			if o.Exclusive {
				y.store(first, before)
			} else {
				y.store(first, sums)
			}
		}
		return nil
	})
}

// runningSum replaces a part of a line by its running sums, which begin at sum, and returns where they end.
func runningSum[A float64 | int64](part []A, sum A, o op.CumSum) A {
	for i := range part {
		if o.Reverse {
			i = len(part) - 1 - i
		}
		before := sum
		sum += part[i]
		part[i] = sum
		if o.Exclusive {
			part[i] = before
		}
	}
	return sum
}
