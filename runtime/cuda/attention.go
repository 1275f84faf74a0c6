//go:build cuda && linux

package cuda

import (
	"slices"

	"aitk/ir"
	"aitk/ir/op"
)

// attentionSide is the side of the tiles of attention.c.
const attentionSide = 32

// attentionChunk is how many columns a block makes.
func attentionChunk(d ir.DType) int64 {
	if d == ir.F64 {
		return 64
	}
	return 128
}

// attentionKernel serves Attention and its gradients.
func attentionKernel(b *builder) (*kernel, error) {
	scale, guard, mask := 0.0, false, 6
	switch o := b.x.Op.(type) {
	case op.Attention:
		scale, guard, mask = o.Scale, o.Guard, 3
	case op.AttentionGrad:
		scale, guard = o.Scale, o.Guard
	case op.AttentionMaskGrad:
		scale, guard = o.Scale, o.Guard
	default:
		return nil, nil
	}
	t := b.inType(0)
	module, tail, ok := floatVariant("attention", t.DType)
	if !ok {
		return nil, b.noKernel(t)
	}
	types := make([]ir.Type, len(b.x.In))
	for i := range types {
		types[i] = b.inType(i)
	}
	d := op.AttentionDimsOf(types)
	shape := []any{d.Heads, d.Groups, d.Queries, d.Keys, d.Size, d.Width, number(t.DType, scale), guard}
	if mask < len(b.in) {
		steps := stretched(types[mask].Shape, ir.Shape{d.Batch, d.Heads, d.Queries, d.Keys})
		shape = append(shape, b.in[mask], int32(types[mask].DType), steps[0], steps[1], steps[2], steps[3])
	} else {
		shape = append(shape, uint64(0), int32(0), int64(0), int64(0), int64(0), int64(0))
	}
	if rows := b.attentionMMA(d); rows > 0 {
		return b.k, b.launchAttentionMMA(d, rows, mask, shape)
	}
	shape = append(shape, tail...)
	var operands []any
	for _, s := range b.in[:min(mask, len(b.in))] {
		operands = append(operands, s)
	}
	args := func(first ...any) []any { return append(append(first, operands...), shape...) }
	tiles := func(n int64) int64 { return (n + attentionSide - 1) / attentionSide }
	chunks := func(n int64) int64 { return (n + attentionChunk(t.DType) - 1) / attentionChunk(t.DType) }
	heads := d.Batch * d.Heads
	switch b.x.Op.(type) {
	case op.Attention:
		grid := [3]int{int(heads * tiles(d.Queries)), int(max(1, chunks(d.Width))), 1} // lse is wanted of values without columns too
		return b.k, b.launch(module, "attention", grid, threads, 0, args(b.out[0], b.out[1])...)
	case op.AttentionGrad:
		if err := b.launch(module, "attention_dq", [3]int{int(heads * tiles(d.Queries)), int(chunks(d.Size)), 1}, threads, 0, args(b.out[0])...); err != nil {
			return nil, err
		}
		grid := [3]int{int(d.Batch * d.Groups * tiles(d.Keys)), int(chunks(d.Width) + chunks(d.Size)), 1}
		return b.k, b.launch(module, "attention_dkv", grid, threads, 0, args(b.out[1], b.out[2])...)
	}
	out := b.outType(0).Shape
	grid := [3]int{int(out[0] * out[1] * tiles(d.Queries) * tiles(d.Keys)), 1, 1}
	all := append([]any{b.out[0]}, operands...)
	return b.k, b.launch(module, "attention_dmask", grid, threads, 0, append(append(all, d.Batch, out[0], out[1]), shape...)...)
}

// attentionMMA is how many queries or keys a block of attentionmma.h takes; 0 where tensor cores do not serve: rows are copied in pieces of 16 bytes, and the gradient to a mask is
// no product of matrices.
func (b *builder) attentionMMA(d op.AttentionDims) int64 {
	wide := max(d.Size, d.Width)
	if _, ok := b.x.Op.(op.AttentionMaskGrad); ok || !b.dev.multiplies(b.inType(0).DType) || min(d.Size, d.Width) < mmaPiece || wide > 128 || d.Size%mmaPiece != 0 || d.Width%mmaPiece != 0 {
		return 0
	}
	for _, s := range slices.Concat(b.in, b.out) {
		if addressOf(s)%16 != 0 {
			return 0
		}
	}
	if wide <= 64 {
		return 64
	}
	return 32
}

// launchAttentionMMA has a warp for each 16 rows of a block.
func (b *builder) launchAttentionMMA(d op.AttentionDims, rows int64, mask int, shape []any) error {
	module := mmaModule("attention64mma", b.inType(0).DType)
	if rows == 32 {
		module = mmaModule("attention128mma", b.inType(0).DType)
	}
	args := func(first ...any) []any {
		for _, s := range b.in[:min(mask, len(b.in))] {
			first = append(first, s)
		}
		return append(first, shape...)
	}
	grid := func(heads, n int64) [3]int { return [3]int{int(d.Batch * heads * ((n + rows - 1) / rows)), 1, 1} }
	block := int(2 * rows)
	if _, ok := b.x.Op.(op.Attention); ok {
		return b.launch(module, "attention", grid(d.Heads, d.Queries), block, 0, args(b.out[0], b.out[1])...)
	}
	if err := b.launch(module, "attention_dq", grid(d.Heads, d.Queries), block, 0, args(b.out[0])...); err != nil {
		return err
	}
	return b.launch(module, "attention_dkv", grid(d.Groups, d.Keys), block, 0, args(b.out[1], b.out[2])...)
}
