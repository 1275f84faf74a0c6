//go:build cuda && linux

package cuda

import (
	"aitk/ir/op"
)

// dropoutKernel serves Dropout and Uniform.
func dropoutKernel(b *builder) (*kernel, error) {
	switch o := b.x.Op.(type) {
	case op.Dropout:
		t := b.inType(0)
		module, tail, ok := floatVariant("dropout", t.DType)
		if !ok {
			return nil, b.noKernel(t)
		}
		n := t.Elems()
		args := []any{b.out[0], b.in[0], n, b.in[1], b.in[2], b.in[3], o.StreamID, op.DropoutThreshold(o.Ratio), number(t.DType, 1/(1-o.Ratio))}
		return b.k, b.launch(module, "dropout", b.dev.blocksFor(n), threads, 0, append(args, tail...)...)
	case op.Uniform:
		t := b.outType(0)
		module, tail, ok := floatVariant("dropout", t.DType)
		if !ok {
			return nil, b.noKernel(t)
		}
		n, bits := t.Elems(), o.Mantissa()
		args := []any{b.out[0], n, b.in[0], b.in[1], b.in[2], o.StreamID, int(bits), number(t.DType, 1/float64(uint64(1)<<bits))}
		return b.k, b.launch(module, "uniform", b.dev.blocksFor(n), threads, 0, append(args, tail...)...)
	}
	return nil, nil
}
