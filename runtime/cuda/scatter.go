//go:build cuda && linux

package cuda

import (
	"aitk/ir"
	"aitk/ir/op"
	"aitk/runtime"
)

// scatterKernel serves ScatterAdd, ScatterElements, ScatterND and GatherNDGrad.
func scatterKernel(b *builder) (*kernel, error) {
	switch o := b.x.Op.(type) {
	case op.ScatterAdd:
		return b.scatterAdd(o)
	case op.GatherNDGrad:
		t, err := b.tuples(o.Shape, b.inType(0).Shape, o.BatchDims)
		if err != nil {
			return nil, err
		}
		return b.buckets(t, 1, t.size)
	case op.ScatterElements:
		return b.scatterElements(o)
	case op.ScatterND:
		return b.scatterND(o)
	}
	return nil, nil
}

func (b *builder) scatterAdd(o op.ScatterAdd) (*kernel, error) {
	out, idx := b.outType(0).Shape, b.inType(0)
	outer, _, inner := around(out, o.Axis)
	record, err := b.indexRecord(o.Size, o.Axis)
	if err != nil {
		return nil, err
	}
	t := tuples{rows: idx.Elems(), places: o.Size, record: record,
		args: []any{int64(1), max(1, idx.Elems()), int64(0), o.Size, int64(0), int64(0), int64(0), int64(0), int64(0), int64(1), int64(0), int64(0), int64(0), int64(0), int64(0)}}
	return b.buckets(t, outer, inner)
}

// buckets adds rows of operand 1 up by the places that operand 0 names. Scratch holds the offset of each place and one more, then the rows of each
// place as they came and once more in order.
func (b *builder) buckets(t tuples, outer, inner int64) (*kernel, error) {
	idx, dy := b.inType(0), b.inType(1)
	module, tail, ok := variant("scatter", dy.DType)
	if !ok {
		return nil, b.noKernel(dy)
	}
	offsets := b.scratch
	offsets.Bytes = 8 * (t.places + 1)
	loose := from(b.scratch, t.places+1, 8) // 8 bytes a row: two numbers of 32 bits
	order := from(loose, t.rows, 4)
	loose.Bytes = 4 * t.rows
	if t.rows >= 1<<32 {
		return nil, b.noKernel(idx)
	}
	wide := idx.DType == ir.I64
	if err := b.fill(ir.T(ir.I64, t.places+1), offsets, 0); err != nil {
		return nil, err
	}
	named := append([]any{b.in[0], t.rows, wide, t.record}, t.args...)
	grid := b.dev.blocksFor(t.rows)
	if err := b.launch(module, "bucket_count", grid, threads, 0, append([]any{offsets}, named...)...); err != nil {
		return nil, err
	}
	if err := b.launch(module, "bucket_scan", [3]int{1, 1, 1}, threads, 0, offsets, t.places+1); err != nil {
		return nil, err
	}
	if err := b.launch(module, "bucket_place", grid, threads, 0, append([]any{loose, offsets}, named...)...); err != nil {
		return nil, err
	}
	if err := b.launch(module, "bucket_order", grid, threads, 0, append([]any{order, loose, offsets}, named...)...); err != nil {
		return nil, err
	}
	total := b.outType(0).Elems()
	return b.k, b.launch(module, "bucket_sum", b.dev.blocksFor(total), threads, 0, append([]any{b.out[0], b.in[1], offsets, order, total, t.places, t.rows, inner}, tail...)...)
}

// reduction is the number of a way to combine updates.
func reduction(name string) int {
	return map[string]int{"": 0, "add": 1, "mul": 2, "min": 3, "max": 4}[name]
}

// copyAll adds the launch that copies operand i to an output of the same bytes.
func (b *builder) copyAll(dst, src runtime.Slice) error {
	w, bytes := "8", int64(8)
	if dst.Bytes%8 != 0 || dst.Offset%8 != 0 || src.Offset%8 != 0 {
		w, bytes = "1", 1
	}
	n := dst.Bytes / bytes
	return b.launch("move", "copy"+w, b.dev.blocksFor(n), threads, 0, dst, src, n)
}

func (b *builder) scatterElements(o op.ScatterElements) (*kernel, error) {
	data, idx := b.inType(0), b.inType(1)
	record, err := b.indexRecord(data.Shape[o.Axis], o.Axis)
	if err != nil {
		return nil, err
	}
	if err := b.copyAll(b.out[0], b.in[0]); err != nil {
		return nil, err
	}
	module, tail, wide, err := b.scatterModule(data, idx)
	if err != nil || idx.Elems() == 0 {
		return b.k, err
	}
	lines, strides, steps := idx.Shape.Clone(), rowMajor(data.Shape), rowMajor(idx.Shape)
	lines[o.Axis] = 1
	all, err := pieces(lines, []int64{0, 0}, steps, strides)
	if err != nil {
		return nil, err
	}
	for _, p := range all {
		args := []any{b.out[0], b.in[1], b.in[2], p.n, p.first[0], p.first[1], idx.Shape[o.Axis], steps[o.Axis], data.Shape[o.Axis], strides[o.Axis], reduction(o.Reduce), wide, record}
		grid := [3]int{int((p.n + 63) / 64), 1, 1}
		if err := b.launch(module, "scatter_elements", grid, 64, 0, append(append(args, p.args()...), tail...)...); err != nil {
			return nil, err
		}
	}
	return b.k, nil
}

// scatterModule finds the kernels for elements of data. Booleans are only replaced: they go as u8.
func (b *builder) scatterModule(data, idx ir.Type) (module string, tail []any, wide bool, err error) {
	module, tail, ok := variant("scatter", data.DType)
	if !ok {
		err = b.noKernel(data)
	}
	return module, tail, idx.DType == ir.I64, err
}

func (b *builder) scatterND(o op.ScatterND) (*kernel, error) {
	data, idx := b.inType(0), b.inType(1)
	t, err := b.tuples(data.Shape, idx.Shape, 0)
	if err != nil {
		return nil, err
	}
	if err := b.copyAll(b.out[0], b.in[0]); err != nil {
		return nil, err
	}
	module, tail, wide, err := b.scatterModule(data, idx)
	if err != nil || t.rows == 0 {
		return b.k, err
	}
	args := append([]any{b.out[0], b.in[1], b.in[2], t.rows, t.size, reduction(o.Reduce), wide, t.record}, t.args...)
	return b.k, b.launch(module, "scatter_nd", [3]int{int(min((t.size+63)/64, 1<<20)), 1, 1}, 64, 0, append(args, tail...)...)
}
