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

// lowerMaxPool is the core op, unless somebody asks for indices or the operand holds integers: then the windows are laid out by a gather along the
// flattened image, which takes as much memory as all windows together.
func lowerMaxPool(c *call) []*operand {
	w := c.poolWindow()
	x := c.arg(0)
	columns := c.int("storage_order", 0) != 0
	if c.flag("ceil_mode", false) {
		w.pads = w.ceilPads(x.typ.Shape)
	}
	wantIndices := len(c.n.Output) > 1 && c.left[c.n.Output[1]] > 0
	if x.typ.DType.IsFloat() && !wantIndices {
		return one(c.emit(op.MaxPool{Kernel: w.kernel, Strides: w.strides, Dilations: w.dilations, Pads: w.pads}, x))
	}
	s := x.typ.Shape
	cells, out := c.windows(w, s)
	size := s[2:].Elems()
	flat := c.reshape(x, s[0], s[1], size)
	// One cell more stands for the padding.
	least := filled(ir.T(x.typ.DType), noElements("ReduceMax", x.typ.DType))
	flat = c.concat([]*operand{flat, c.expand(c.reshape(least, 1, 1, 1), s[0], s[1], 1)}, 2)
	n := int64(len(cells)) / max(1, out.Elems())
	laid := c.reshape(c.emit(op.Gather{Axis: 2}, flat, ints(cells)), s[0], s[1], out.Elems(), n)
	shape := append(ir.Shape{s[0], s[1]}, out...)
	y := c.reshape(c.emit(op.ReduceMax{Axes: []int64{3}}, laid), shape...)
	if !wantIndices {
		return one(y)
	}
	// The winner's place in its window, then in the image, then in the whole tensor.
	where := c.reshape(c.emit(op.ArgMax{Axis: 3}, laid), s[0], s[1], out.Elems(), 1)
	table := cells
	if columns {
		table = columnMajor(cells, s[2:])
	}
	names := c.expand(c.reshape(ints(table), 1, 1, out.Elems(), n), s[0], s[1], out.Elems(), n)
	at := c.reshape(c.emit(op.GatherElements{Axis: 3}, names, where), s[0], s[1], out.Elems())
	base := c.reshape(c.emit(op.Iota{DType: ir.I64, Shape: ir.Shape{s[0] * s[1]}, Step: float64(size)}), s[0], s[1], 1)
	return []*operand{y, c.reshape(c.emit(op.Add{}, at, base), shape...)}
}

// windows lists, for each window in row-major order, the cells of the flattened image that it covers; a cell in the padding is the one behind the last.
func (c *call) windows(w window, s ir.Shape) (cells []int64, out ir.Shape) {
	n := len(w.kernel)
	outside := s[2:].Elems()
	total := int64(1)
	for i := range n {
		span := s[i+2] + w.pads[i] + w.pads[i+n] - w.reach(i)
		if span < 0 {
			c.invalid("a window of %d cells does not fit axis %d of %v", w.reach(i), i+2, s)
		}
		out = append(out, span/w.strides[i]+1)
		total *= out[i] * w.kernel[i]
		if total > indexElems {
			c.unsupported("windows of %d cells in all", total)
		}
	}
	kernel := ir.Shape(w.kernel)
	kernels := kernel.Elems()
	result := make([]int64, 0, total)
	for o := range out.Elems() {
		for k := range kernels {
			at, rest, inner, stride, fits := int64(0), o, k, int64(1), true
			for i := n - 1; i >= 0; i-- {
				p := rest%out[i]*w.strides[i] - w.pads[i] + inner%kernel[i]*w.dilations[i]
				rest, inner = rest/out[i], inner/kernel[i]
				fits = fits && p >= 0 && p < s[i+2]
				at += p * stride
				stride *= s[i+2]
			}
			if !fits {
				at = outside
			}
			result = append(result, at)
		}
	}
	return result, out
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

// columnMajor renames cells of an image from row-major to column-major order.
func columnMajor(cells []int64, image ir.Shape) []int64 {
	out := make([]int64, len(cells))
	for i, at := range cells {
		name, stride := int64(0), image.Elems()
		if at >= stride {
			out[i] = at
			continue
		}
		for a := len(image) - 1; a >= 0; a-- {
			stride /= image[a]
			name += at % image[a] * stride
			at /= image[a]
		}
		out[i] = name
	}
	return out
}

// lowerMaxUnpool puts each element where the index of its window says, and zeros elsewhere.
func lowerMaxUnpool(c *call) []*operand {
	c.args(2, 3)
	x, index := c.arg(0), c.index(1)
	kernel, ok := c.ints("kernel_shape")
	s := x.typ.Shape
	n := len(kernel)
	if !ok || len(s) != n+2 || !index.typ.Shape.Equal(s) {
		c.invalid("kernel %v for %v and indices %v", kernel, x.typ, index.typ)
	}
	strides, pads := c.intsN("strides", n, 1), c.intsN("pads", 2*n, 0)
	out := s[:2].Clone()
	for i := range kernel {
		out = append(out, (s[i+2]-1)*strides[i]+kernel[i]-pads[i]-pads[i+n])
	}
	natural := out
	if c.has(2) {
		out = ir.Shape(slices.Clone(c.constInts(2, "output_shape")))
	}
	if err := out.Check(); err != nil || len(out) != len(s) {
		c.invalid("output shape %v", out)
	}
	if !out.Equal(natural) {
		index = c.reindex(index, natural, out)
	}
	flat := c.emit(op.Fill{DType: x.typ.DType, Shape: ir.Shape{out.Elems()}})
	y := c.emit(op.ScatterElements{}, flat, c.reshape(index, index.typ.Elems()), c.reshape(x, x.typ.Elems()))
	return one(c.reshape(y, out...))
}

// reindex turns places in a tensor of one shape into those of the same coordinates in another.
func (c *call) reindex(index *operand, from, to ir.Shape) *operand {
	var sum *operand
	inner, stride := int64(1), int64(1)
	for a := len(from) - 1; a >= 0; a-- {
		at := c.emit(op.Mod{}, c.emit(op.Div{}, index, scalar(index.typ.DType, float64(inner))), scalar(index.typ.DType, float64(max(from[a], 1))))
		at = c.scale(at, float64(stride))
		if sum == nil {
			sum = at
		} else {
			sum = c.emit(op.Add{}, sum, at)
		}
		inner, stride = inner*from[a], stride*to[a]
	}
	return sum
}
