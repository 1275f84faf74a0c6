//go:build cuda && linux

package cuda

import (
	"fmt"

	"aitk/ir"
	"aitk/ir/op"
)

// gatherKernel serves Gather, GatherElements and GatherND.
func gatherKernel(b *builder) (*kernel, error) {
	switch o := b.x.Op.(type) {
	case op.Gather:
		return b.gather(o.Axis)
	case op.GatherElements:
		return b.gatherElements(o.Axis)
	case op.GatherND:
		return b.gatherND(o.BatchDims)
	}
	return nil, nil
}

func (b *builder) gather(axis int64) (*kernel, error) {
	data, idx := b.inType(0), b.inType(1)
	_, n, inner := around(data.Shape, axis)
	record, err := b.indexRecord(n, axis)
	if err != nil {
		return nil, err
	}
	total := b.outType(0).Elems()
	if total == 0 {
		return b.k, b.launch("gather", "check_indices", b.dev.blocksFor(idx.Elems()), threads, 0, b.in[1], idx.Elems(), n, idx.DType == ir.I64, record)
	}
	return b.k, b.launch("gather", "gather"+width(data.DType), b.dev.blocksFor(total), threads, 0,
		b.out[0], b.in[0], b.in[1], total, idx.Elems(), n, inner, idx.DType == ir.I64, record)
}

func (b *builder) gatherElements(axis int64) (*kernel, error) {
	data, idx := b.inType(0), b.inType(1)
	record, err := b.indexRecord(data.Shape[axis], axis)
	if err != nil {
		return nil, err
	}
	strides := rowMajor(data.Shape)
	along := strides[axis]
	strides[axis] = 0
	all, err := pieces(idx.Shape, []int64{0, 0}, rowMajor(idx.Shape), strides)
	if err != nil {
		return nil, err
	}
	wide, bytes := idx.DType == ir.I64, idx.DType.Bits()/8
	for _, p := range all {
		base := p.first[1]
		p.strides = p.strides[1:]
		args := append([]any{from(b.out[0], p.first[0], data.DType.Bits()/8), b.in[0], from(b.in[1], p.first[0], bytes), p.n, base, data.Shape[axis], along, wide, record}, p.args()...)
		if err := b.launch("gather", "gather_elements"+width(data.DType), b.dev.blocksFor(p.n), threads, 0, args...); err != nil {
			return nil, err
		}
	}
	return b.k, nil
}

func (b *builder) gatherND(batch int64) (*kernel, error) {
	data, idx := b.inType(0), b.inType(1)
	t, err := b.tuples(data.Shape, idx.Shape, batch)
	if err != nil {
		return nil, err
	}
	total := b.outType(0).Elems()
	if total == 0 {
		return b.k, b.launch("gather", "check_tuples", b.dev.blocksFor(t.rows), threads, 0, append([]any{b.in[1], t.rows, idx.DType == ir.I64, t.record}, t.args...)...)
	}
	return b.k, b.launch("gather", "gather_nd"+width(data.DType), b.dev.blocksFor(total), threads, 0,
		append([]any{b.out[0], b.in[0], b.in[1], total, t.size, idx.DType == ir.I64, t.record}, t.args...)...)
}

// indexRecord is where a kernel reports an index outside an axis of n entries.
func (b *builder) indexRecord(n, axis int64) (uint64, error) {
	say := b.outside
	return b.faultRecord(func(value, _ int64) error { return say(value, n, axis) })
}

// tuples are rows of coordinates, which select slices of data after some batch axes.
type tuples struct {
	rows   int64
	places int64 // slices in all
	size   int64 // elements of a slice
	record uint64
	args   []any // as tuples.h takes them
}

// maxCoordinates is how many coordinates a kernel takes.
const maxCoordinates = 6

func (b *builder) tuples(data, idx ir.Shape, batch int64) (t tuples, err error) {
	last := len(idx) - 1
	k := idx[last]
	if k > maxCoordinates {
		return t, fmt.Errorf("%s has no cuda kernel for %d coordinates; %d are the most", ir.OpName(b.x.Op), k, maxCoordinates)
	}
	t.rows = idx[:last].Elems()
	t.size = data[batch+k:].Elems()
	t.places = data[:batch+k].Elems()
	lead := data[batch : batch+k].Elems()
	perLead := max(1, idx[batch:last].Elems())
	extents, strides := [maxCoordinates]int64{}, [maxCoordinates]int64{}
	for c := range k {
		extents[c] = data[batch+c]
		strides[c] = data[batch+c+1 : batch+k].Elems()
	}
	t.args = []any{k, perLead, lead}
	for _, n := range extents {
		t.args = append(t.args, n)
	}
	for _, s := range strides {
		t.args = append(t.args, s)
	}
	say := b.outside
	t.record, err = b.faultRecord(func(value, element int64) error {
		c := element % k
		return say(value, extents[c], batch+c)
	})
	return t, err
}
