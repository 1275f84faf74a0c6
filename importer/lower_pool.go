package importer

import (
	"slices"

	"aitk/ir"
	"aitk/ir/op"
)

// ceilPads turns ceil_mode into end pads: the window that hangs over the end gets cells to stand on. A window that would begin beyond
// the operand and its begin pad is dropped, as in the newest text of the standard and in PyTorch.
func (w window) ceilPads(x ir.Shape) []int64 {
	n := len(w.kernel)
	pads := slices.Clone(w.pads)
	for i := range w.kernel {
		in, begin := x[i+2], w.pads[i]
		span := in + begin + w.pads[i+n] - w.reach(i)
		if span < 0 {
			continue // refused by the op
		}
		out := (span+w.strides[i]-1)/w.strides[i] + 1
		if (out-1)*w.strides[i] >= in+begin {
			out--
		}
		pads[i+n] = max(0, (out-1)*w.strides[i]+w.reach(i)-in-begin)
	}
	return pads
}

func (c *call) poolWindow() window {
	c.args(1, 1)
	kernel, ok := c.ints("kernel_shape")
	if !ok {
		c.invalid("kernel_shape is missing")
	}
	return c.window(c.arg(0).typ.Shape, kernel)
}

func lowerMaxPool(c *call) []*operand {
	w := c.poolWindow()
	if c.int("storage_order", 0) != 0 {
		c.unsupported("storage_order=1")
	}
	if c.flag("ceil_mode", false) {
		w.pads = w.ceilPads(c.arg(0).typ.Shape)
	}
	x := c.arg(0)
	if d := x.typ.DType; !d.IsFloat() {
		c.unsupported("pooling of %v", d)
	}
	return one(c.emit(op.MaxPool{Kernel: w.kernel, Strides: w.strides, Dilations: w.dilations, Pads: w.pads}, x))
}

// lowerAveragePool divides by the cells of the window that lie in the operand, with count_include_pad also by those in its pads, but
// never by those that ceil_mode adds: then the pads become a Pad, which counts.
func lowerAveragePool(c *call) []*operand {
	w := c.poolWindow()
	x := c.arg(0)
	count := c.flag("count_include_pad", false)
	if c.flag("ceil_mode", false) {
		n := len(w.kernel)
		pads := w.ceilPads(x.typ.Shape)
		if count && !slices.Equal(pads, w.pads) {
			before, after := make([]int64, n+2), make([]int64, n+2)
			copy(before[2:], w.pads[:n])
			copy(after[2:], w.pads[n:])
			for i := range n {
				after[i+2] = min(after[i+2], pads[i+n])
				pads[i], pads[i+n] = 0, pads[i+n]-after[i+2]
			}
			x = c.padConstant(x, before, after, 0)
			count = false
		}
		w.pads = pads
	}
	return one(c.emit(op.AvgPool{Kernel: w.kernel, Strides: w.strides, Dilations: w.dilations, Pads: w.pads, CountPad: count}, x))
}

// globalPool reduces all spatial axes.
func globalPool(build func(axes []int64) ir.Op) lowerFunc {
	return func(c *call) []*operand {
		c.args(1, 1)
		x := c.arg(0)
		if len(x.typ.Shape) < 3 {
			c.invalid("%v has no spatial axis", x.typ)
		}
		return one(c.emit(build(axesFrom(2, len(x.typ.Shape))), x))
	}
}

// axesFrom lists axes first..rank-1.
func axesFrom(first, rank int) []int64 {
	var axes []int64
	for a := first; a < rank; a++ {
		axes = append(axes, int64(a))
	}
	return axes
}
