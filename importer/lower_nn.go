package importer

import (
	"slices"

	"aitk/ir"
	"aitk/ir/op"
)

// lowerMatMul gives vectors the axis that numpy gives them: a row on the left, a column on the right.
func lowerMatMul(c *call) []*operand {
	c.args(2, 2)
	return one(c.matmul(c.arg(0), c.arg(1)))
}

func (c *call) matmul(a, b *operand) *operand {
	ra, rb := len(a.typ.Shape), len(b.typ.Shape)
	if ra == 0 || rb == 0 {
		c.invalid("operands %v and %v: a scalar is no matrix", a.typ, b.typ)
	}
	if ra == 1 {
		a = c.reshape(a, 1, a.typ.Shape[0])
	}
	if rb == 1 {
		b = c.reshape(b, b.typ.Shape[0], 1)
	}
	y := c.emit(op.MatMul{}, a, b)
	s := slices.Clone(y.typ.Shape)
	if rb == 1 {
		s = s[:len(s)-1]
	}
	if ra == 1 {
		row := len(y.typ.Shape) - 2
		s = slices.Delete(s, row, row+1)
	}
	return c.reshape(y, s...)
}

// lowerGemm is alpha*A*B + beta*C; A and B may be transposed, C broadcasts to the result.
func lowerGemm(c *call) []*operand {
	c.args(2, 3)
	a, b := c.arg(0), c.arg(1)
	if len(a.typ.Shape) != 2 || len(b.typ.Shape) != 2 {
		c.invalid("operands %v and %v are not both of rank 2", a.typ, b.typ)
	}
	alpha, beta := c.float("alpha", 1), c.float("beta", 1)
	y := c.emit(op.MatMul{TransA: c.flag("transA", false), TransB: c.flag("transB", false)}, a, b)
	y = c.scale(y, alpha)
	if !c.has(2) || beta == 0 || isZero(c.arg(2)) {
		return one(y)
	}
	z := c.emit(op.Add{}, y, c.scale(c.arg(2), beta))
	if !z.typ.Shape.Equal(y.typ.Shape) {
		c.invalid("C %v does not broadcast to %v", c.arg(2).typ, y.typ)
	}
	return one(z)
}

// isZero tells whether all elements are known to be 0: exporters add a bias of zeros where the module has none.
func isZero(x *operand) bool {
	v, ok := splat(x.known)
	return ok && v == 0
}

// window is what convolutions and pools have in common, for n spatial axes.
type window struct {
	kernel, strides, dilations, pads []int64
}

// window reads the attributes and resolves auto_pad; pads are all begins, then all ends.
func (c *call) window(x ir.Shape, kernel []int64) window {
	n := len(kernel)
	if len(x) != n+2 || n == 0 {
		c.invalid("kernel %v for shape %v", kernel, x)
	}
	w := window{kernel: kernel}
	w.strides, w.dilations = c.intsN("strides", n, 1), c.intsN("dilations", n, 1)
	w.pads = slices.Clone(c.intsN("pads", 2*n, 0))
	for i := range kernel {
		if kernel[i] < 1 || w.strides[i] < 1 || w.dilations[i] < 1 || max(kernel[i], w.strides[i], w.dilations[i]) > 1<<31 {
			c.invalid("kernel %v, strides %v, dilations %v", kernel, w.strides, w.dilations)
		}
	}
	switch auto := c.string("auto_pad", "NOTSET"); auto {
	case "NOTSET", "":
	case "VALID":
		clear(w.pads)
	case "SAME_UPPER", "SAME_LOWER":
		for i := range kernel {
			in := x[i+2]
			out := (in + w.strides[i] - 1) / w.strides[i]
			total := max(0, (out-1)*w.strides[i]+w.reach(i)-in)
			less, more := total/2, total-total/2
			if auto == "SAME_LOWER" {
				less, more = more, less
			}
			w.pads[i], w.pads[i+n] = less, more
		}
	default:
		c.invalid("auto_pad=%q", auto)
	}
	return w
}

// reach is how many cells of axis i the kernel spans.
func (w window) reach(i int) int64 { return (w.kernel[i]-1)*w.dilations[i] + 1 }

func (c *call) kernelShape(w *operand) []int64 {
	s := w.typ.Shape
	if len(s) < 3 {
		c.invalid("kernel %v has no spatial axis", w.typ)
	}
	if k, ok := c.ints("kernel_shape"); ok && !s[2:].Equal(k) {
		c.invalid("kernel_shape %v for a kernel %v", k, w.typ)
	}
	return s[2:]
}

func lowerConv(c *call) []*operand {
	c.args(2, 3)
	return one(c.channelBias(c.conv(c.arg(0), c.arg(1)), 2))
}

func (c *call) conv(x, w *operand) *operand {
	win := c.window(x.typ.Shape, c.kernelShape(w))
	return c.emit(op.Conv{Strides: win.strides, Dilations: win.dilations, Pads: win.pads, Group: c.int("group", 1)}, x, w)
}

// channelBias adds operand k, one number a channel, unless it is absent or known to be zero.
func (c *call) channelBias(y *operand, k int) *operand {
	if !c.has(k) || isZero(c.arg(k)) {
		return y
	}
	return c.emit(op.Add{}, y, c.perChannel(c.arg(k), y.typ.Shape))
}

// perChannel gives a vector of C elements the shape [C,1,...] that broadcasts over [N,C,...].
func (c *call) perChannel(v *operand, x ir.Shape) *operand {
	if len(x) < 2 || len(v.typ.Shape) != 1 || v.typ.Shape[0] != x[1] {
		c.invalid("%v for the channels of %v", v.typ, x)
	}
	s := make([]int64, len(x)-1)
	for i := range s {
		s[i] = 1
	}
	s[0] = x[1]
	return c.reshape(v, s...)
}

// lowerConvTranspose is the adjoint of a convolution, which the graph has as the gradient of one. out = (in-1)*stride + reach +
// output_padding - pads; output_shape fixes out and leaves the pads to be found.
func lowerConvTranspose(c *call) []*operand {
	c.args(2, 3)
	x, w := c.arg(0), c.arg(1)
	kernel := c.kernelShape(w)
	auto := c.string("auto_pad", "NOTSET")
	group := c.int("group", 1)
	n := len(kernel)
	if len(x.typ.Shape) != n+2 || group < 1 || group > 1<<31 {
		c.invalid("kernel %v for %v in %d groups", w.typ, x.typ, group)
	}
	extra := c.intsN("output_padding", n, 0)
	outShape, fixed := c.ints("output_shape")
	win := window{kernel: kernel, strides: c.intsN("strides", n, 1), dilations: c.intsN("dilations", n, 1), pads: slices.Clone(c.intsN("pads", 2*n, 0))}
	if fixed && len(outShape) == n+2 { // files of 2018 have batch and channels in it
		outShape = outShape[2:]
	}
	if fixed && len(outShape) != n {
		c.invalid("output_shape %v for %d spatial axes", outShape, n)
	}
	out := ir.Shape{x.typ.Shape[0], w.typ.Shape[1] * group}
	for i := range kernel {
		in := x.typ.Shape[i+2]
		if max(win.strides[i], win.dilations[i], kernel[i], in, extra[i]) > 1<<31 || min(win.strides[i], win.dilations[i], kernel[i], extra[i]+1) < 1 {
			c.invalid("kernel %v, strides %v, dilations %v", kernel, win.strides, win.dilations)
		}
		full := (in-1)*win.strides[i] + win.reach(i) + extra[i]
		switch {
		case fixed || auto == "SAME_UPPER" || auto == "SAME_LOWER":
			want := in * win.strides[i]
			if fixed {
				want = outShape[i]
			}
			total := max(0, full-want)
			less, more := total/2, total-total/2
			if auto == "SAME_LOWER" {
				less, more = more, less
			}
			win.pads[i], win.pads[i+n] = less, more
			full = max(full, want)
		case auto == "VALID":
			win.pads[i], win.pads[i+n] = 0, 0
		case auto != "NOTSET" && auto != "":
			c.invalid("auto_pad=%q", auto)
		}
		out = append(out, full-win.pads[i]-win.pads[i+n])
	}
	y := c.emit(op.ConvGradInput{Strides: win.strides, Dilations: win.dilations, Pads: win.pads, Group: group, Shape: out}, w, x)
	return one(c.channelBias(y, 2))
}

// lowerDropout is the identity unless the file asks for training: from opset 12 on with training_mode true and a ratio above 0.
// The mask is a fact about the identity only.
func lowerDropout(c *call) []*operand {
	x := c.arg(0)
	ratio, training := 0.5, false
	if c.ver < 12 {
		c.args(1, 1)
		ratio = c.float("ratio", 0.5)
	} else {
		c.args(1, 3)
		if c.has(1) {
			ratio = c.constFloat(1, "ratio")
		}
		training = c.has(2) && c.constFloat(2, "training_mode") != 0
	}
	c.ignore("seed") // the run has one seed for all
	if !training || ratio == 0 || c.opt.Eval {
		y := *x
		if len(c.n.Output) > 1 && c.n.Output[1] != "" {
			return []*operand{&y, c.fill(ir.Type{DType: ir.Bool, Shape: x.typ.Shape}, 1)}
		}
		return one(&y)
	}
	c.dropouts++
	drop := func(x *operand) *operand {
		return c.emit(op.Dropout{Ratio: ratio, StreamID: c.dropouts}, x, c.reservedInput("$seed"), c.reservedInput("$step"), c.reservedInput("$micro"))
	}
	y := drop(x)
	if len(c.n.Output) < 2 || c.left[c.n.Output[1]] == 0 {
		return one(y)
	}
	// What the mask keeps is what the same dropout leaves of ones.
	kept := c.emit(op.Less{}, scalar(x.typ.DType, 0), drop(c.emit(op.Fill{DType: x.typ.DType, Shape: x.typ.Shape, Value: 1})))
	return []*operand{y, kept}
}

// reservedInput is an input that the training loop feeds by itself.
func (c *call) reservedInput(name string) *operand {
	if c.reserved[name] == nil {
		c.reserved[name] = c.b.G.NewValue(name, ir.T(ir.I64))
	}
	return &operand{typ: ir.T(ir.I64), value: c.reserved[name]}
}
