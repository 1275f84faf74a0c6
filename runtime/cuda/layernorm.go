//go:build cuda && linux

package cuda

import "aitk/ir/op"

// normKernel serves LayerNorm, RMSNorm and their gradients.
func normKernel(b *builder) (*kernel, error) {
	switch o := b.x.Op.(type) {
	case op.LayerNorm:
		return b.norm(o.Axis, o.Eps, false)
	case op.RMSNorm:
		return b.norm(o.Axis, o.Eps, true)
	case op.LayerNormGrad:
		return b.normGrad(o.Axis, o.Eps, false)
	case op.RMSNormGrad:
		return b.normGrad(o.Axis, o.Eps, true)
	}
	return nil, nil
}

func (b *builder) norm(axis int64, eps float64, rms bool) (*kernel, error) {
	t := b.inType(0)
	module, tail, ok := floatVariant("layernorm", t.DType)
	if !ok {
		return nil, b.noKernel(t)
	}
	rows, cols := t.Shape[:axis].Elems(), t.Shape[axis:].Elems()
	args := []any{b.out[0], b.in[0], b.in[1], uint64(0)}
	if len(b.in) == 3 {
		args[3] = b.in[2]
	}
	return b.k, b.launch(module, "norm", linesGrid(rows), lineBlock(cols), 0, append(append(args, rows, cols, eps, rms), tail...)...)
}

func (b *builder) normGrad(axis int64, eps float64, rms bool) (*kernel, error) {
	t := b.inType(0)
	module, tail, ok := floatVariant("layernorm", t.DType)
	if !ok {
		return nil, b.noKernel(t)
	}
	rows, cols := t.Shape[:axis].Elems(), t.Shape[axis:].Elems()
	x, scale, dy := b.in[0], b.in[1], b.in[2]
	blocks, each, block := op.NormBlocks(rows), op.NormBlockRows(rows), lineBlock(cols)
	sums := blocks * cols * 8
	if !rms {
		sums *= 2
	}
	stats, err := b.partials(sums, 16*min(rows, op.NormChunk))
	if err != nil {
		return nil, err
	}
	for lo := int64(0); lo < rows; lo += op.NormChunk {
		hi := min(lo+op.NormChunk, rows)
		grid := [3]int{int(hi - lo), 1, 1}
		if err := b.launch(module, "norm_stats", grid, block, 0, append([]any{stats, x, lo, hi, cols, eps, rms}, tail...)...); err != nil {
			return nil, err
		}
		columns := [3]int{int((cols + 31) / 32), int(blocks), 1}
		if err := b.launch(module, "norm_columns", columns, threads, 0, append([]any{b.scratch, stats, x, dy, lo, hi, rows, cols, each, rms}, tail...)...); err != nil {
			return nil, err
		}
		if err := b.launch(module, "norm_dx", grid, block, 0, append([]any{b.out[0], stats, x, scale, dy, lo, hi, cols, rms}, tail...)...); err != nil {
			return nil, err
		}
	}
	args := []any{b.out[1], uint64(0), b.scratch, blocks, cols, rms}
	if !rms {
		args[1] = b.out[2]
	}
	return b.k, b.launch(module, "norm_finish", b.dev.blocksFor(cols), threads, 0, append(args, tail...)...)
}
