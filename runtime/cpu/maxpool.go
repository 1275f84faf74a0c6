package cpu

import (
	"math"

	"aitk/ir"
	"aitk/ir/op"
	"aitk/runtime"
)

// maxPoolKernel serves MaxPool and MaxPoolGrad.
func maxPoolKernel(b *builder) (runtime.Kernel, error) {
	switch o := b.x.Op.(type) {
	case op.MaxPool:
		return maxPool(b, o)
	case op.MaxPoolGrad:
		return maxPoolGrad(b, o)
	}
	return nil, nil
}

func maxPool(b *builder, o op.MaxPool) (runtime.Kernel, error) {
	x, y, s, err := b.slideOperands(b.inType(0).Shape, b.outType(0).Shape, o.Kernel, o.Strides, o.Dilations, o.Pads)
	if err != nil {
		return nil, err
	}
	return b.windows(s, func(c *cursor, plane, r int) {
		best := math.Inf(-1)
		if at := s.winner(c, &x, plane*s.inputs, r); at >= 0 {
			best = x.at(at)
		}
		y.set(plane*s.positions+r, best)
	}), nil
}

// winner is the element of the plane starting at base that is the first maximum, or the first NaN, of the window at position r; -1 if
// the window covers nothing.
func (s *slide) winner(c *cursor, x *floats, base, r int) int {
	if !s.first(c, r) {
		return -1
	}
	best, found := 0.0, -1
	for {
		at, n := s.run(c)
		at += base
		for range n {
			if v := x.at(at); found < 0 || v > best || v != v && best == best {
				best, found = v, at
			}
			at += s.step
		}
		if !s.next(c) {
			return found
		}
	}
}

func maxPoolGrad(b *builder, o op.MaxPoolGrad) (runtime.Kernel, error) {
	x, dx, s, err := b.slideOperands(b.inType(0).Shape, b.inType(1).Shape, o.Kernel, o.Strides, o.Dilations, o.Pads)
	if err != nil {
		return nil, err
	}
	dy, err := b.floatIn(1)
	if err != nil {
		return nil, err
	}
	return b.spread(s, dx, func(c *cursor, sums []float64, plane, lo, r int) {
		base := plane * s.inputs
		if at := s.winner(c, &x, base, r) - base; at >= lo && at < lo+len(sums) {
			sums[at-lo] += dy.at(plane*s.positions + r)
		}
	}), nil
}

// slideOperands views operand 0 and output 0 and works out how the window slides over x [N,C,...] to y [N,C,...].
func (b *builder) slideOperands(x, y ir.Shape, kernel, strides, dilations, pads []int64) (in, out floats, s *slide, err error) {
	if in, err = b.floatIn(0); err != nil {
		return
	}
	if out, err = b.floatOut(0); err != nil {
		return
	}
	s, err = newSlide(ir.OpName(b.x.Op), x, y, kernel, strides, dilations, pads)
	return
}
