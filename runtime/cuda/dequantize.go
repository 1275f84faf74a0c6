//go:build cuda && linux

package cuda

import (
	"aitk/ir/op"
)

// dequantizeKernel serves Dequantize.
func dequantizeKernel(b *builder) (*kernel, error) {
	o, ok := b.x.Op.(op.Dequantize)
	if !ok {
		return nil, nil
	}
	q, scale := b.inType(0), b.inType(1)
	format, ok := map[string]int{"int8": 0, "uint8": 1, "fp8": 2, "int4": 3, "uint4": 4, "nf4": 5}[o.Format]
	if !ok {
		return nil, b.noKernel(q)
	}
	zero, steps, offset := any(uint64(0)), any(uint64(0)), any(uint64(0))
	switch len(b.in) {
	case 3:
		zero = b.in[2]
	case 4:
		steps, offset = b.in[2], b.in[3]
	}
	var axis, inner, blocks int64
	if len(scale.Shape) > 0 {
		axis, inner = q.Shape[o.Axis], q.Shape[o.Axis+1:].Elems()
		if o.Block > 0 {
			blocks = scale.Shape[o.Axis]
		}
	}
	n := q.Elems()
	return b.k, b.launch("dequantize", "dequantize", b.dev.blocksFor(n), threads, 0,
		b.out[0], b.in[0], b.in[1], zero, steps, offset, n, format, int32(o.To), int32(scale.DType), axis, inner, o.Block, blocks)
}
