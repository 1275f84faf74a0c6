//go:build cuda && linux

package cuda

import (
	"aitk/ir"
	"aitk/ir/op"
	"aitk/runtime"
)

// dequantizeKernel serves Dequantize.
func dequantizeKernel(b *builder) (*kernel, error) {
	o, ok := b.x.Op.(op.Dequantize)
	if !ok {
		return nil, nil
	}
	q, scale := b.inType(0), b.inType(1)
	code, ok := codeArgs(o, b.in, scale.DType)
	if !ok {
		return nil, b.noKernel(q)
	}
	var axis, inner, blocks int64
	if len(scale.Shape) > 0 {
		axis, inner = q.Shape[o.Axis], q.Shape[o.Axis+1:].Elems()
		if o.Block > 0 {
			blocks = scale.Shape[o.Axis]
		}
	}
	n := q.Elems()
	args := append(append([]any{b.out[0], b.in[0]}, code...), n, int32(o.To), axis, inner, o.Block, blocks)
	return b.k, b.launch("dequantize", "dequantize", b.dev.blocksFor(n), threads, 0, args...)
}

// codeArgs are the arguments SCALE of dequantize.h, for the operands of a Dequantize.
func codeArgs(o op.Dequantize, in []runtime.Slice, scale ir.DType) (args []any, ok bool) {
	format, ok := map[string]int{"int8": 0, "uint8": 1, "fp8": 2, "int4": 3, "uint4": 4, "nf4": 5}[o.Format]
	zero, steps, offset := any(uint64(0)), any(uint64(0)), any(uint64(0))
	switch len(in) {
	case 3:
		zero = in[2]
	case 4:
		steps, offset = in[2], in[3]
	}
	return []any{in[1], zero, steps, offset, format, int32(scale)}, ok
}
