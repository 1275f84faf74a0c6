package cpu

import (
	"aitk/ir/op"
	"aitk/runtime"
)

// gatherKernel serves Gather and its adjoint.
func gatherKernel(b *builder) (runtime.Kernel, error) {
	switch o := b.x.Op.(type) {
	case op.Gather:
		return gather(b, o)
	case op.ScatterAdd:
		return scatterAdd(b, o)
	}
	return nil, nil
}

// gather copies whole entries as bytes.
func gather(b *builder, o op.Gather) (runtime.Kernel, error) {
	data := b.inType(0).Shape
	n := int(data[o.Axis])
	idx, err := b.indicesAt(1, n, o.Axis)
	if err != nil {
		return nil, err
	}
	count := int(b.inType(1).Elems())
	outer := int(data[:o.Axis].Elems())
	size := int(data[o.Axis+1:].Elems()) * int(b.outType(0).DType.Bits()/8)
	x, y := view[uint8](b.in[0]), view[uint8](b.out[0])
	return b.ranges(outer*count, max(1, 4*rangeElems/max(1, size)), func(_ *worker, lo, hi int) error {
		for i := lo; i < hi; i++ {
			e, err := idx.entry(i % count)
			if err != nil {
				return err
			}
			from := (i/count*n + e) * size
			copy(y[i*size:(i+1)*size], x[from:from+size])
		}
		return nil
	}), nil
}

func scatterAdd(b *builder, o op.ScatterAdd) (runtime.Kernel, error) {
	idx, err := b.indicesAt(0, int(o.Size), o.Axis)
	if err != nil {
		return nil, err
	}
	t, err := b.newBuckets(int(o.Size), int(b.inType(0).Elems()))
	if err != nil {
		return nil, err
	}
	shape := b.outType(0).Shape
	sums, err := t.sums(b, int(shape[:o.Axis].Elems()), int(shape[o.Axis+1:].Elems()))
	if err != nil {
		return nil, err
	}
	return b.sequence(t.sort(b, idx.entry), sums), nil
}
