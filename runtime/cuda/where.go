//go:build cuda && linux

package cuda

import (
	"aitk/ir"
	"aitk/ir/op"
)

// whereKernel serves Where, by the width of the elements.
func whereKernel(b *builder) (*kernel, error) {
	if _, ok := b.x.Op.(op.Where); !ok {
		return nil, nil
	}
	t := b.outType(0)
	if t.DType == ir.I4 {
		return nil, b.noKernel(t)
	}
	return b.broadcast("where", "where", width(t.DType), []int{0, 1, 2}, nil, nil)
}
