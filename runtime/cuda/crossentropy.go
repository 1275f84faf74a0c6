//go:build cuda && linux

package cuda

import (
	"aitk/ir"
	"aitk/ir/op"
)

// crossEntropyKernel serves SoftmaxCrossEntropy and its gradient.
func crossEntropyKernel(b *builder) (*kernel, error) {
	grad := false
	o, ok := b.x.Op.(op.SoftmaxCrossEntropy)
	if !ok {
		g, ok := b.x.Op.(op.SoftmaxCrossEntropyGrad)
		if !ok {
			return nil, nil
		}
		o, grad = op.SoftmaxCrossEntropy{Axis: g.Axis, LabelSmoothing: g.LabelSmoothing, IgnoreIndex: g.IgnoreIndex, HasIgnore: g.HasIgnore, Reduction: g.Reduction}, true
	}
	t, target := b.inType(0), b.inType(1)
	module, tail, ok := floatVariant("crossentropy", t.DType)
	if !ok {
		return nil, b.noKernel(t)
	}
	outer, n, inner := around(t.Shape, o.Axis)
	lines := outer * inner
	origin, shape := b.x.Origin, target.Shape
	record, err := b.faultRecord(func(value, element int64) error {
		e := op.BadLabel(value, n, element, shape)
		e.Origin = origin
		return e
	})
	if err != nil {
		return nil, err
	}
	wide, mean := target.DType == ir.I64, o.Reduction == "mean"
	ignore := []any{wide, o.HasIgnore, o.IgnoreIndex}
	if grad {
		counts, err := b.partials(0, 8)
		if err != nil {
			return nil, err
		}
		if err := b.launch(module, "cross_entropy_count", [3]int{1, 1, 1}, threads, 0, append(append([]any{counts, b.in[1], lines, n}, ignore...), record)...); err != nil {
			return nil, err
		}
		args := append([]any{b.out[0], counts, b.in[0], b.in[1], b.in[2], lines, n, inner, o.LabelSmoothing}, ignore...)
		return b.k, b.launch(module, "cross_entropy_grad", linesGrid(lines), lineBlock(n), 0, append(append(args, mean, record), tail...)...)
	}
	blocks, each := stretches(lines, op.MaxStretches, 1)
	sums, err := b.partials(0, 16*int64(blocks))
	if err != nil {
		return nil, err
	}
	counts := from(sums, int64(blocks), 8)
	args := append([]any{sums, counts, b.in[0], b.in[1], lines, n, inner, each, o.LabelSmoothing}, ignore...)
	if err := b.launch(module, "cross_entropy", [3]int{blocks, 1, 1}, lineBlock(n), 0, append(append(args, record), tail...)...); err != nil {
		return nil, err
	}
	return b.k, b.launch(module, "cross_entropy_finish", [3]int{1, 1, 1}, 32, 0, append([]any{b.out[0], sums, counts, int64(blocks), mean}, tail...)...)
}
