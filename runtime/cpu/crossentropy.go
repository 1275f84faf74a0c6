package cpu

import (
	"math"

	"aitk/ir"
	"aitk/ir/op"
	"aitk/runtime"
)

// crossEntropyKernel serves SoftmaxCrossEntropy and its gradient.
func crossEntropyKernel(b *builder) (runtime.Kernel, error) {
	switch o := b.x.Op.(type) {
	case op.SoftmaxCrossEntropy:
		c, err := newCrossEntropy(b, o)
		if err != nil {
			return nil, err
		}
		return c.loss(b)
	case op.SoftmaxCrossEntropyGrad:
		c, err := newCrossEntropy(b, op.SoftmaxCrossEntropy{Axis: o.Axis, LabelSmoothing: o.LabelSmoothing, IgnoreIndex: o.IgnoreIndex, HasIgnore: o.HasIgnore, Reduction: o.Reduction})
		if err != nil {
			return nil, err
		}
		return c.grad(b)
	}
	return nil, nil
}

// crossEntropy is what loss and gradient share.
type crossEntropy struct {
	op.SoftmaxCrossEntropy
	logits floats
	target ints
	shape  ir.Shape // of target
	l      lines    // a line for each label
}

func newCrossEntropy(b *builder, o op.SoftmaxCrossEntropy) (*crossEntropy, error) {
	logits, err := b.floatIn(0)
	if err != nil {
		return nil, err
	}
	target, err := b.intIn(1)
	if err != nil {
		return nil, err
	}
	return &crossEntropy{o, logits, target, b.inType(1).Shape, linesAlong(b.inType(0).Shape, o.Axis)}, nil
}

// label is the label of a line and whether it counts; a label outside the classes is an error.
func (c *crossEntropy) label(line int) (label int, counts bool, err error) {
	v := c.target.at(line)
	if c.HasIgnore && v == c.IgnoreIndex {
		return 0, false, nil
	}
	if v < 0 || v >= int64(c.l.n) {
		return 0, false, op.BadLabel(v, int64(c.l.n), int64(line), c.shape)
	}
	return int(v), true, nil
}

// loss sums stretches of labels side by side, then the stretches in order.
func (c *crossEntropy) loss(b *builder) (runtime.Kernel, error) {
	out, err := b.floatOut(0)
	if err != nil {
		return nil, err
	}
	tiles, each := stretches(c.l.count, 1)
	sums, counts := make([]float64, tiles), make([]int64, tiles)
	s := c.LabelSmoothing
	parts := b.tiles(tiles, func(w *worker, tile int) error {
		sums[tile], counts[tile] = 0, 0
		for line := tile * each; line < min((tile+1)*each, c.l.count); line++ {
			label, ok, err := c.label(line)
			if err != nil {
				return err
			}
			if !ok {
				continue
			}
			first := c.l.first(line)
			largest, sum := c.l.expSum(w, &c.logits, first)
			norm := largest + math.Log(sum)
			sums[tile] += (1 - s) * (norm - c.logits.at(first+label*c.l.inner))
			if s != 0 {
				sums[tile] += s * (norm - c.mean(w, first))
			}
			counts[tile]++
		}
		return nil
	})
	total := b.serial(func(*worker) error {
		var sum float64
		var kept int64
		for i, v := range sums {
			sum += v
			kept += counts[i]
		}
		if c.Reduction == "mean" {
			sum /= float64(kept)
		}
		out.set(0, sum)
		return nil
	})
	return b.sequence(parts, total), nil
}

// mean of the logits of a line.
func (c *crossEntropy) mean(w *worker, first int) float64 {
	var sum float64
	for lo := 0; lo < c.l.n; lo += lineChunk {
		buf := w.panelA[:min(lineChunk, c.l.n-lo)]
		c.logits.loadStep(buf, first+lo*c.l.inner, c.l.inner)
		for _, v := range buf {
			sum += v
		}
	}
	return sum / float64(c.l.n)
}

// grad counts the labels that are kept, then takes line by line.
func (c *crossEntropy) grad(b *builder) (runtime.Kernel, error) {
	dloss, err := b.floatIn(2)
	if err != nil {
		return nil, err
	}
	dx, err := b.floatOut(0)
	if err != nil {
		return nil, err
	}
	var scale float64
	count := b.serial(func(*worker) error {
		kept := 0
		for line := range c.l.count {
			_, ok, err := c.label(line)
			if err != nil {
				return err // before anything is written: dx may lie over the logits
			}
			if ok {
				kept++
			}
		}
		scale = dloss.at(0)
		if c.Reduction == "mean" {
			scale /= float64(kept)
		}
		return nil
	})
	s, share := c.LabelSmoothing, c.LabelSmoothing/float64(c.l.n)
	write := c.l.over(b, func(w *worker, line int) error {
		label, ok, err := c.label(line)
		if err != nil {
			return err
		}
		first := c.l.first(line)
		var largest, sum float64
		if ok {
			largest, sum = c.l.expSum(w, &c.logits, first)
		}
		for lo := 0; lo < c.l.n; lo += lineChunk {
			buf := w.panelA[:min(lineChunk, c.l.n-lo)]
			at := first + lo*c.l.inner
			switch {
			case !ok:
				clear(buf)
			case c.l.n > lineChunk:
				c.logits.loadStep(buf, at, c.l.inner)
				for k, v := range buf {
					buf[k] = math.Exp(v - largest)
				}
			}
			if ok {
				for k, e := range buf {
					buf[k] = scale * (e/sum - share)
				}
				if label >= lo && label < lo+len(buf) {
					buf[label-lo] -= scale * (1 - s)
				}
			}
			dx.storeStep(at, c.l.inner, buf)
		}
		return nil
	})
	return b.sequence(count, write), nil
}
