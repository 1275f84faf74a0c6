package cpu

import (
	"aitk/ir/op"
	"aitk/runtime"
)

// avgPoolKernel serves AvgPool and AvgPoolGrad.
func avgPoolKernel(b *builder) (runtime.Kernel, error) {
	switch o := b.x.Op.(type) {
	case op.AvgPool:
		return avgPool(b, o)
	case op.AvgPoolGrad:
		return avgPoolGrad(b, o)
	}
	return nil, nil
}

func avgPool(b *builder, o op.AvgPool) (runtime.Kernel, error) {
	x, y, s, err := b.slideOperands(b.inType(0).Shape, b.outType(0).Shape, o.Kernel, o.Strides, o.Dilations, o.Pads)
	if err != nil {
		return nil, err
	}
	return b.windows(s, func(c *cursor, plane, r int) {
		mean := 0.0
		if s.first(c, r) {
			for {
				at, n := s.run(c)
				at += plane * s.inputs
				for range n {
					mean += x.at(at)
					at += s.step
				}
				if !s.next(c) {
					break
				}
			}
			mean /= s.divisor(c, o.CountPad)
		}
		y.set(plane*s.positions+r, mean)
	}), nil
}

// divisor is what the sum of a window is divided by.
func (s *slide) divisor(c *cursor, countPad bool) float64 {
	n := 1
	for i := range s.axes {
		if countPad {
			n *= s.kernel[i]
		} else {
			n *= c.hi[i] - c.lo[i]
		}
	}
	return float64(n)
}

func avgPoolGrad(b *builder, o op.AvgPoolGrad) (runtime.Kernel, error) {
	dy, dx, s, err := b.slideOperands(o.Shape, b.inType(0).Shape, o.Kernel, o.Strides, o.Dilations, o.Pads)
	if err != nil {
		return nil, err
	}
	return b.spread(s, dx, func(c *cursor, sums []float64, plane, lo, r int) {
		if !s.first(c, r) {
			return
		}
		share := dy.at(plane*s.positions+r) / s.divisor(c, o.CountPad)
		for {
			at, n := s.run(c)
			at -= lo
			for range n {
				if uint(at) < uint(len(sums)) {
					sums[at] += share
				}
				at += s.step
			}
			if !s.next(c) {
				return
			}
		}
	}), nil
}
