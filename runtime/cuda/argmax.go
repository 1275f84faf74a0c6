//go:build cuda && linux

package cuda

import (
	"aitk/ir"
	"aitk/ir/op"
)

// argmaxKernel serves ArgMax and TopK.
func argmaxKernel(b *builder) (*kernel, error) {
	switch o := b.x.Op.(type) {
	case op.ArgMax:
		t := b.inType(0)
		module, tail, ok := variant("argmax", t.DType)
		if !ok {
			return nil, b.noKernel(t)
		}
		outer, n, inner := around(t.Shape, o.Axis)
		block := 32
		if n > 256 {
			block = 128
		}
		return b.k, b.launch(module, "argmax", linesGrid(outer*inner), block, 0, append([]any{b.out[0], b.in[0], outer * inner, n, inner, o.Min, o.Last}, tail...)...)
	case op.TopK:
		t := b.inType(0)
		module, tail, ok := variant("argmax", t.DType)
		if !ok {
			return nil, b.noKernel(t)
		}
		outer, n, inner := around(t.Shape, o.Axis)
		name, grid := "topk", b.dev.blocksFor(outer*inner*n)
		if n > threads && o.K <= n/32 { // k passes over a line by one block against one pass by each element
			name, grid = "topk_rounds", linesGrid(outer*inner)
		}
		return b.k, b.launch(module, name, grid, threads, 0,
			append([]any{b.out[0], b.out[1], b.in[0], outer * inner, n, inner, o.K, o.Smallest, t.DType == ir.U64}, tail...)...)
	}
	return nil, nil
}

// linesGrid has a block for each line, and a loop over the grid where there are very many.
func linesGrid(lines int64) [3]int { return [3]int{int(min(lines, 1<<20)), 1, 1} }
