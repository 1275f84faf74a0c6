package cpu

import (
	"aitk/ir/op"
	"aitk/runtime"
)

// gatherNDKernel serves the ops whose indices are rows of coordinates.
func gatherNDKernel(b *builder) (runtime.Kernel, error) {
	switch o := b.x.Op.(type) {
	case op.GatherND:
		return gatherND(b, o)
	case op.ScatterND:
		return scatterND(b, o)
	case op.GatherNDGrad:
		return gatherNDGrad(b, o)
	}
	return nil, nil
}

// gatherND copies whole slices as bytes.
func gatherND(b *builder, o op.GatherND) (runtime.Kernel, error) {
	t, err := b.tuplesAt(1, b.inType(0).Shape, o.BatchDims)
	if err != nil {
		return nil, err
	}
	size := t.size * int(b.outType(0).DType.Bits()/8)
	x, y := view[uint8](b.in[0]), view[uint8](b.out[0])
	return b.ranges(t.rows, max(1, 4*rangeElems/max(1, size)), func(_ *worker, lo, hi int) error {
		for row := lo; row < hi; row++ {
			p, err := t.place(row)
			if err != nil {
				return err
			}
			copy(y[row*size:(row+1)*size], x[p*size:(p+1)*size])
		}
		return nil
	}), nil
}

// scatterND runs on one worker: where a slice is named twice, order counts.
func scatterND(b *builder, o op.ScatterND) (runtime.Kernel, error) {
	t, err := b.tuplesAt(1, b.inType(0).Shape, 0)
	if err != nil {
		return nil, err
	}
	put, err := b.combine(o.Reduce)
	if err != nil {
		return nil, err
	}
	return b.sequence(b.copyAll(b.out[0], b.in[0]), b.serial(func(*worker) error {
		for row := range t.rows {
			p, err := t.place(row)
			if err != nil {
				return err
			}
			for i := range t.size {
				put(p*t.size+i, row*t.size+i)
			}
		}
		return nil
	})), nil
}

func gatherNDGrad(b *builder, o op.GatherNDGrad) (runtime.Kernel, error) {
	t, err := b.tuplesAt(0, o.Shape, o.BatchDims)
	if err != nil {
		return nil, err
	}
	sorted, err := b.newBuckets(int(o.Shape[:o.BatchDims].Elems())*t.places, t.rows)
	if err != nil {
		return nil, err
	}
	sums, err := sorted.sums(b, 1, t.size)
	if err != nil {
		return nil, err
	}
	return b.sequence(sorted.sort(b, t.place), sums), nil
}
