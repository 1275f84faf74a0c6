//go:build cuda && linux

package cuda

import (
	"encoding/binary"

	"aitk/ir"
	"aitk/runtime"
)

// move adds the launches that copy elements of src to dst, both strided, over a shape.
func (b *builder) move(d ir.DType, shape ir.Shape, dst runtime.Slice, dstFirst int64, dstStrides []int64, src runtime.Slice, srcFirst int64, srcStrides []int64) error {
	all, err := pieces(shape, []int64{dstFirst, srcFirst}, dstStrides, srcStrides)
	if err != nil {
		return err
	}
	bytes := d.Bits() / 8
	for _, p := range all {
		y, x := from(dst, p.first[0], bytes), from(src, p.first[1], bytes)
		if r, c, ok := p.transposed(); ok {
			grid := [3]int{int((c + 31) / 32), int((r + 31) / 32), int(p.n / (r * c))}
			if grid[1] <= 65535 && grid[2] <= 65535 {
				if err := b.launch("move", "transpose"+width(d), grid, threads, 0, y, x, r, c); err != nil {
					return err
				}
				continue
			}
		}
		grid := b.dev.blocksFor(p.n)
		if p.straight() {
			err = b.launch("move", "copy"+width(d), grid, threads, 0, y, x, p.n)
		} else {
			err = b.launch("move", "move"+width(d), grid, threads, 0, append([]any{y, x, p.n}, p.args()...)...)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// straight tells whether both sides of a copy are one run.
func (p *piece) straight() bool {
	return p.dims[maxAxes-2] == 1 && p.dims[0] == 1 && p.dims[1] == 1 && p.dims[2] == 1 && p.dims[3] == 1 && p.strides[0][maxAxes-1] == 1 && p.strides[1][maxAxes-1] == 1
}

// transposed tells whether a copy turns matrices of r rows and c columns, one after the other on both sides, that are large enough for tiles.
func (p *piece) transposed() (r, c int64, ok bool) {
	const i, j, k = maxAxes - 1, maxAxes - 2, maxAxes - 3
	r, c = int64(p.dims[i]), int64(p.dims[j])
	y, x := p.strides[0], p.strides[1]
	ok = r >= 16 && c >= 16 && y[i] == 1 && y[j] == r && x[j] == 1 && x[i] == c && p.dims[0] == 1 && p.dims[1] == 1 && p.dims[2] == 1
	if ok && p.dims[k] > 1 {
		ok = y[k] == r*c && x[k] == r*c
	}
	return r, c, ok
}

// fill adds the launch that makes every element of a slice the same.
func (b *builder) fill(t ir.Type, dst runtime.Slice, value float64) error {
	one := ir.NewTensor(ir.T(t.DType))
	if t.DType.IsFloat() {
		one.F[0] = value
	} else {
		one.I[0] = int64(value)
	}
	raw := append(one.Encode(), make([]byte, 8)...)
	n := t.Elems()
	return b.launch("move", "fill"+width(t.DType), b.dev.blocksFor(n), threads, 0, dst, n, binary.LittleEndian.Uint64(raw))
}
