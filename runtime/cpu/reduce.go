package cpu

import (
	"math"
	"slices"

	"aitk/ir"
	"aitk/ir/op"
	"aitk/runtime"
)

// reduceKernel serves the reductions over axes.
func reduceKernel(b *builder) (runtime.Kernel, error) {
	switch o := b.x.Op.(type) {
	case op.ReduceSum:
		return reduction(b, o.Axes, folds[float64]{first: 0, line: sumLine[float64], lines: addLines[float64]}, folds[int64]{first: 0, line: sumLine[int64], lines: addLines[int64]})
	case op.ReduceMean:
		n := countAlong(b.inType(0).Shape, o.Axes)
		return reduction(b, o.Axes,
			folds[float64]{first: 0, line: sumLine[float64], lines: addLines[float64], last: func(sum float64) float64 { return sum / float64(n) }},
			folds[int64]{first: 0, line: sumLine[int64], lines: addLines[int64], last: func(sum int64) int64 { return divInt(sum, int64(n)) }})
	case op.ReduceProd:
		return reduction(b, o.Axes, folds[float64]{first: 1, line: productLine[float64], lines: multiplyLines[float64]}, folds[int64]{first: 1, line: productLine[int64], lines: multiplyLines[int64]})
	case op.ReduceMax:
		return reduction(b, o.Axes, folds[float64]{first: math.Inf(-1), line: maxLine[float64], lines: maxLines[float64]}, folds[int64]{first: math.MinInt64, line: maxLine[int64], lines: maxLines[int64]})
	case op.ReduceMin:
		return reduction(b, o.Axes, folds[float64]{first: math.Inf(1), line: minLine[float64], lines: minLines[float64]}, folds[int64]{first: math.MaxInt64, line: minLine[int64], lines: minLines[int64]})
	}
	return nil, nil
}

// folds is one kind of reduction: where it begins, how a line of elements joins one accumulator, how a line joins a line of them, and what
// is done at the end (nil: nothing).
type folds[A float64 | int64] struct {
	first A
	line  func(acc A, xs []A) A
	lines func(acc, xs []A)
	last  func(A) A
}

// countAlong is how many elements make one of the result.
func countAlong(s ir.Shape, axes []int64) int {
	n := 1
	for _, a := range axes {
		n *= int(s[a])
	}
	return n
}

// cutAxes separates the axes that stay from those that are reduced, each with its strides in the operand.
func cutAxes(s ir.Shape, axes []int64) (kept, reduced *space) {
	var keptDims, reducedDims ir.Shape
	var keptAt, reducedAt []int
	for a, stride := range rowMajor(s) {
		if slices.Contains(axes, int64(a)) {
			reducedDims, reducedAt = append(reducedDims, s[a]), append(reducedAt, stride)
		} else {
			keptDims, keptAt = append(keptDims, s[a]), append(keptAt, stride)
		}
	}
	return newSpace(keptDims, keptAt), newSpace(reducedDims, reducedAt)
}

func reduction(b *builder, axes []int64, f folds[float64], g folds[int64]) (runtime.Kernel, error) {
	kept, reduced := cutAxes(b.inType(0).Shape, axes)
	if b.inType(0).DType.IsFloat() {
		x, err := b.floatIn(0)
		if err != nil {
			return nil, err
		}
		y, err := b.floatOut(0)
		if err != nil {
			return nil, err
		}
		return reduceOver(b, kept, reduced, f, &x, &y, (*worker).f64), nil
	}
	x, err := b.intIn(0)
	if err != nil {
		return nil, err
	}
	y, err := b.intOut(0)
	if err != nil {
		return nil, err
	}
	return reduceOver(b, kept, reduced, g, &x, &y, (*worker).i64), nil
}

// leastStripe is how many neighbours of the result a tile carries at least, where there are so many.
const leastStripe = 128

// reduceOver takes the reduced elements of each element of the result in row-major order. Where neighbours in the result are neighbours in
// the operand it carries a block of accumulators, which joins line after line; elsewhere it goes along the lines themselves.
func reduceOver[A float64 | int64](b *builder, kept, reduced *space, f folds[A], x, y elements[A], block func(*worker, int) []A) runtime.Kernel {
	if kept.step[0] == 1 && kept.run > 1 {
		width := min(blockElems, max(leastStripe, kept.run/16)) // 16 tiles where a stripe is still some cache lines wide
		stripes := (kept.run + width - 1) / width
		runs := kept.n / max(1, kept.run)
		grain := max(1, rangeElems/max(1, reduced.n*min(kept.run, width)))
		return b.ranges(runs*stripes, grain, func(w *worker, lo, hi int) error {
			for t := lo; t < hi; t++ {
				begin := t % stripes * width
				k := min(width, kept.run-begin)
				base := kept.at(t / stripes)[0] + begin
				acc, part := block(w, 0)[:k], block(w, 1)[:k]
				fillWords(acc, f.first)
				reduced.walk(0, reduced.n, func(n int, at [maxLists]int) {
					for i := range n {
						x.load(part, base+at[0]+i*reduced.step[0])
						f.lines(acc, part)
					}
				})
				f.finish(acc)
				y.store(t/stripes*kept.run+begin, acc)
			}
			return nil
		})
	}
	return b.ranges(kept.n, max(1, rangeElems/max(1, reduced.n)), func(w *worker, lo, hi int) error {
		for i := lo; i < hi; i++ {
			base := kept.at(i / kept.run)[0] + i%kept.run*kept.step[0]
			acc := f.first
			buf := block(w, 0)
			reduced.walk(0, reduced.n, func(n int, at [maxLists]int) {
				for from := base + at[0]; n > 0; {
					part := buf[:min(blockElems, n)]
					loadEvery(x, part, from, reduced.step[0])
					acc = f.line(acc, part)
					from += len(part) * reduced.step[0]
					n -= len(part)
				}
			})
			one := buf[:1]
			one[0] = acc
			f.finish(one)
			y.store(i, one)
		}
		return nil
	})
}

func (f folds[A]) finish(acc []A) {
	if f.last == nil {
		return
	}
	for i, v := range acc {
		acc[i] = f.last(v)
	}
}

// loadEvery widens elements that lie step apart.
func loadEvery[A float64 | int64](x elements[A], dst []A, i, step int) {
	if step == 1 {
		x.load(dst, i)
		return
	}
	for k := range dst {
		dst[k] = x.at(i + k*step)
	}
}

func sumLine[A float64 | int64](acc A, xs []A) A {
	for _, x := range xs {
		acc += x
	}
	return acc
}

func addLines[A float64 | int64](acc, xs []A) {
	xs = xs[:len(acc)]
	for i := range acc {
		acc[i] += xs[i]
	}
}

func productLine[A float64 | int64](acc A, xs []A) A {
	for _, x := range xs {
		acc *= x
	}
	return acc
}

func multiplyLines[A float64 | int64](acc, xs []A) {
	for i, x := range xs {
		acc[i] *= x
	}
}

// The extrema keep a NaN once they have met one: nothing is greater or smaller than it.

func maxLine[A float64 | int64](acc A, xs []A) A {
	for _, x := range xs {
		if x > acc || x != x {
			acc = x
		}
	}
	return acc
}

func maxLines[A float64 | int64](acc, xs []A) {
	for i, x := range xs {
		if x > acc[i] || x != x {
			acc[i] = x
		}
	}
}

func minLine[A float64 | int64](acc A, xs []A) A {
	for _, x := range xs {
		if x < acc || x != x {
			acc = x
		}
	}
	return acc
}

func minLines[A float64 | int64](acc, xs []A) {
	for i, x := range xs {
		if x < acc[i] || x != x {
			acc[i] = x
		}
	}
}
