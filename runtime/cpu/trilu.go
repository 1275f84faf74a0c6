package cpu

import (
	"aitk/ir/op"
	"aitk/runtime"
)

// triluKernel serves Trilu: a row keeps one stretch, and zeros are zero bytes in every element type.
func triluKernel(b *builder) (runtime.Kernel, error) {
	o, ok := b.x.Op.(op.Trilu)
	if !ok {
		return nil, nil
	}
	t := b.outType(0)
	rank := len(t.Shape)
	rows, cols := int(t.Shape[rank-2]), int(t.Shape[rank-1])
	size := int(t.DType.Bits() / 8)
	x, y := view[uint8](b.in[0]), view[uint8](b.out[0])
	k := int(min(max(o.K, -int64(rows)-1), int64(cols)+1)) // no row differs beyond
	lines := int(t.Shape[:rank-1].Elems())
	return b.ranges(lines, max(1, rangeElems/max(1, cols)), func(_ *worker, lo, hi int) error {
		for line := lo; line < hi; line++ {
			row := line % rows
			first, end := 0, min(max(row+k+1, 0), cols)
			if o.Upper {
				first, end = min(max(row+k, 0), cols), cols
			}
			dst, src := y[line*cols*size:][:cols*size], x[line*cols*size:][:cols*size]
			clear(dst[:first*size])
			copy(dst[first*size:end*size], src[first*size:end*size])
			clear(dst[end*size:])
		}
		return nil
	}), nil
}
