//go:build cuda && linux

package cuda

import (
	"aitk/ir"
	"aitk/ir/op"
)

// castKernel serves Cast. Floats of 32 and 16 bits have a kernel that stays in f32.
func castKernel(b *builder) (*kernel, error) {
	if _, ok := b.x.Op.(op.Cast); !ok {
		return nil, nil
	}
	from, to := b.inType(0).DType, b.outType(0).DType
	if from == ir.I4 || to == ir.I4 {
		return nil, b.noKernel(b.inType(0))
	}
	name := "cast"
	if narrow(from) && narrow(to) {
		name = "cast_float"
	}
	n := b.inType(0).Elems()
	return b.k, b.launch("cast", name, b.dev.blocksFor(n), threads, 0, b.out[0], b.in[0], n, int32(to), int32(from))
}

func narrow(d ir.DType) bool { return d == ir.F32 || d == ir.F16 || d == ir.BF16 }
