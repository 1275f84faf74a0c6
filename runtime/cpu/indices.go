package cpu

import (
	"aitk/ir"
	"aitk/runtime"
)

// indices are i64 or i32 operands that select entries of an axis.
type indices struct {
	ints
	n    int // entries there are
	axis int64
	b    failure
}

// failure is what an error of the data names. It is kept apart from the builder, which is gone when kernels run.
type failure struct {
	op     string
	origin ir.Origin
}

func (b *builder) failure() failure { return failure{ir.OpName(b.x.Op), b.x.Origin} }

// outside is the error of an index that selects nothing.
func (f failure) outside(i int64, n int, axis int64) error {
	return ir.Errorf(ir.Failed, f.origin, "%s: index %d is outside extent %d of axis %d", f.op, i, n, axis)
}

// indicesAt views operand i as indices of an axis of n entries.
func (b *builder) indicesAt(i, n int, axis int64) (indices, error) {
	v, err := b.intIn(i)
	return indices{v, n, axis, b.failure()}, err
}

// entry is the entry that element i selects.
func (x *indices) entry(i int) (int, error) {
	v := x.at(i)
	e := v
	if e < 0 {
		e += int64(x.n)
	}
	if e < 0 || e >= int64(x.n) {
		return 0, x.b.outside(v, x.n, x.axis)
	}
	return int(e), nil
}

// tuples are rows of k coordinates, which select slices of data after some batch axes.
type tuples struct {
	ints
	k       int
	rows    int
	perLead int      // rows for each index of the batch axes
	batch   int64    // first axis that a coordinate is for
	extents ir.Shape // of the axes that the coordinates are for
	places  int      // slices for each index of the batch axes
	size    int      // elements of a slice
	b       failure
}

// tuplesAt views operand i as coordinates of data.
func (b *builder) tuplesAt(i int, data ir.Shape, batch int64) (tuples, error) {
	v, err := b.intIn(i)
	idx := b.inType(i).Shape
	last := len(idx) - 1
	k := idx[last]
	t := tuples{ints: v, k: int(k), rows: int(idx[:last].Elems()), batch: batch, extents: data[batch : batch+k], b: b.failure()}
	t.perLead = int(idx[batch:last].Elems())
	t.places = int(t.extents.Elems())
	t.size = int(data[batch+k:].Elems())
	return t, err
}

// place is the number of the slice of data that a row selects.
func (t *tuples) place(row int) (int, error) {
	p := 0
	for c, extent := range t.extents {
		v := t.at(row*t.k + c)
		e := v
		if e < 0 {
			e += extent
		}
		if e < 0 || e >= extent {
			return 0, t.b.outside(v, int(extent), t.batch+int64(c))
		}
		p = p*int(extent) + int(e)
	}
	return row/max(1, t.perLead)*t.places + p, nil
}

// buckets sort the numbers of rows by the place that each one adds to, keeping their order: the rows of place p are
// order[offsets[p]:offsets[p+1]]. Then places can be summed on different workers, each in the order of the indices.
type buckets struct{ offsets, order []int64 }

// newBuckets lays the tables into the scratch, which must hold one number for each place, one more, and one for each row.
func (b *builder) newBuckets(places, rows int) (buckets, error) {
	need := 8 * int64(places+1+rows)
	if b.scratch.Bytes < need {
		return buckets{}, ir.Errorf(ir.Failed, b.x.Origin, "%s needs %d bytes of scratch, the plan gives %d", ir.OpName(b.x.Op), need, b.scratch.Bytes)
	}
	s := b.scratch
	s.Bytes = need
	v := view[int64](s)
	return buckets{v[:places+1], v[places+1:]}, nil
}

// sort makes a kernel that fills the tables; place is asked twice for each row.
func (t buckets) sort(b *builder, place func(row int) (int, error)) runtime.Kernel {
	return b.serial(func(*worker) error {
		clear(t.offsets)
		for row := range t.order {
			p, err := place(row)
			if err != nil {
				return err
			}
			t.offsets[p+1]++
		}
		for p := 1; p < len(t.offsets); p++ {
			t.offsets[p] += t.offsets[p-1]
		}
		for row := range t.order { // offsets[p] moves to where the next one begins
			p, err := place(row)
			if err != nil {
				return err
			}
			t.order[t.offsets[p]] = int64(row)
			t.offsets[p]++
		}
		copy(t.offsets[1:], t.offsets) // and moves back
		t.offsets[0] = 0
		return nil
	})
}

// sums makes a kernel that adds up, for each of outer blocks and each place, the stretches of size elements that the rows of that place have in x.
func (t buckets) sums(b *builder, outer, size int) (runtime.Kernel, error) {
	if b.outType(0).DType.IsFloat() {
		x, err := b.floatIn(1)
		if err != nil {
			return nil, err
		}
		y, err := b.floatOut(0)
		if err != nil {
			return nil, err
		}
		return bucketSums(b, t, outer, size, &x, &y, (*worker).f64), nil
	}
	x, err := b.intIn(1)
	if err != nil {
		return nil, err
	}
	y, err := b.intOut(0)
	if err != nil {
		return nil, err
	}
	return bucketSums(b, t, outer, size, &x, &y, (*worker).i64), nil
}

func bucketSums[A float64 | int64](b *builder, t buckets, outer, size int, x, y elements[A], block func(*worker, int) []A) runtime.Kernel {
	places, rows := len(t.offsets)-1, len(t.order)
	return b.ranges(outer*places, max(1, rangeElems/max(1, size)), func(w *worker, lo, hi int) error {
		for line := lo; line < hi; line++ {
			from := line / places * rows
			p := line % places
			mine := t.order[t.offsets[p]:t.offsets[p+1]]
			for begin := 0; begin < size; begin += blockElems {
				n := min(blockElems, size-begin)
				sum, part := block(w, 0)[:n], block(w, 1)[:n]
				clear(sum)
				for _, row := range mine {
					x.load(part, (from+int(row))*size+begin)
					for i, v := range part {
						sum[i] += v
					}
				}
				y.store(line*size+begin, sum)
			}
		}
		return nil
	})
}
