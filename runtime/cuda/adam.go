//go:build cuda && linux

package cuda

import "aitk/ir/op"

// adamKernel serves Adam.
func adamKernel(b *builder) (*kernel, error) {
	o, ok := b.x.Op.(op.Adam)
	if !ok {
		return nil, nil
	}
	t := b.inType(0)
	module, tail, ok := floatVariant("adam", t.DType)
	if !ok {
		return nil, b.noKernel(t)
	}
	n := t.Elems()
	args := []any{b.out[0], b.out[1], b.out[2]}
	for _, s := range b.in {
		args = append(args, s)
	}
	args = append(args, n, o.Beta1, o.Beta2, number(t.DType, o.Eps), number(t.DType, o.WeightDecay), o.Decoupled)
	return b.k, b.launch(module, "adam", b.dev.blocksFor(n), threads, 0, append(args, tail...)...)
}
