package cpu

import (
	"aitk/internal/quant"
	"aitk/ir"
	"aitk/ir/op"
	"aitk/runtime"
)

// dequantizeKernel serves Dequantize: a table of 256 values looks up codes, scales follow in runs.
func dequantizeKernel(b *builder) (runtime.Kernel, error) {
	o, ok := b.x.Op.(op.Dequantize)
	if !ok {
		return nil, nil
	}
	y, err := b.floatOut(0)
	if err != nil {
		return nil, err
	}
	d := &dequantizer{
		table: quant.Table(quant.Format(o.Format)), groups: o.Groups(b.inType(0).Shape, b.inType(1).Shape),
		nibbles: b.inType(0).DType == ir.I4, codes: view[uint8](b.in[0]),
	}
	switch len(b.in) {
	case 4:
		d.packed, d.steps, d.offset = view[int8](b.in[1]), view[float32](b.in[2]), view[float32](b.in[3])
	case 3:
		d.zero = view[uint8](b.in[2])
		fallthrough
	default:
		if d.scale, err = b.floatIn(1); err != nil {
			return nil, err
		}
	}
	return b.ranges(int(b.outType(0).Elems()), rangeElems, func(w *worker, lo, hi int) error {
		for i := lo; i < hi; i += blockElems {
			out := w.f64(0)[:min(blockElems, hi-i)]
			d.block(out, int64(i))
			y.store(i, out)
		}
		return nil
	}), nil
}

// dequantizer is the operands of one Dequantize.
type dequantizer struct {
	table   [256]float32
	groups  op.ScaleIndex
	nibbles bool
	codes   []uint8
	scale   floats // unless packed
	zero    []uint8
	packed  []int8
	steps   []float32
	offset  []float32
}

// block computes elements from i on.
func (d *dequantizer) block(out []float64, i int64) {
	for len(out) > 0 {
		g, step, run := d.groups.At(i)
		n := min(run, int64(len(out)))
		s, z := d.scaleAt(g)
		for k := range out[:n] {
			if step != 0 && k > 0 {
				g += step
				s, z = d.scaleAt(g)
			}
			out[k] = float64(float32((d.table[d.code(i+int64(k))] - z) * s))
		}
		out, i = out[n:], i+n
	}
}

func (d *dequantizer) code(i int64) uint8 {
	if d.nibbles {
		return d.codes[i>>1] >> (4 * (i & 1)) & 15
	}
	return d.codes[i]
}

// scaleAt is the scale of a group and the value of its zero point.
func (d *dequantizer) scaleAt(g int64) (scale, zero float32) {
	if d.packed != nil {
		return quant.UnpackScale(d.packed[g], d.steps[g/quant.DoubleBlock], d.offset[0]), 0
	}
	scale = float32(d.scale.at(int(g)))
	if d.zero != nil {
		if d.nibbles {
			zero = d.table[d.zero[g>>1]>>(4*(g&1))&15]
		} else {
			zero = d.table[d.zero[g]]
		}
	}
	return scale, zero
}
