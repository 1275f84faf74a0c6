package op

import (
	"fmt"

	"aitk/ir"
)

// Conv is the cross-correlation that deep learning calls convolution, over one or more spatial axes.
//
//	x [N, C, spatial...], w [O, C/Group, kernel...] -> [N, O, out...]
//
// out = (in + begin + end - Dilation*(kernel-1) - 1)/Stride + 1, rounded down; cells outside x count as zero. Strides and Dilations
// have one entry a spatial axis, Pads all begins, then all ends; Group is at least 1 and divides C and O. There is no bias operand:
// the importer adds it. Products are summed over (channel, kernel position) in row-major order, in float32 or wider, and rounded once.
type Conv struct {
	Strides, Dilations, Pads []int64
	Group                    int64
}

// shape is the output shape, or what is wrong.
func (o Conv) shape(x, w ir.Shape) (ir.Shape, error) {
	if len(x) < 3 || len(w) != len(x) {
		return nil, fmt.Errorf("needs x [N,C,spatial...] and w [O,C/group,kernel...] of one rank of 3 or more, got shapes %v and %v", x, w)
	}
	if o.Group < 1 {
		return nil, fmt.Errorf("group must be at least 1, got %d", o.Group)
	}
	if x[1]%o.Group != 0 || w[0]%o.Group != 0 {
		return nil, fmt.Errorf("group %d does not divide %d input and %d output channels", o.Group, x[1], w[0])
	}
	if w[1] != x[1]/o.Group {
		return nil, fmt.Errorf("w must have %d input channels (%d in %d groups), got %d", x[1]/o.Group, x[1], o.Group, w[1])
	}
	spatial, err := o.window(w).out(x[2:])
	if err != nil {
		return nil, err
	}
	out := append(ir.Shape{x[0], w[0]}, spatial...)
	return out, out.Check()
}

func (o Conv) window(w ir.Shape) window { return window{w[2:], o.Strides, o.Dilations, o.Pads} }

// Infer gives [N, O, out...].
func (o Conv) Infer(in []ir.Type) ([]ir.Type, error) {
	if err := wantOperands(in, "x", "w"); err != nil {
		return nil, err
	}
	if err := wantFloats(in, 0, 1); err != nil {
		return nil, err
	}
	out, err := o.shape(in[0].Shape, in[1].Shape)
	if err != nil {
		return nil, err
	}
	return []ir.Type{{DType: in[0].DType, Shape: out}}, nil
}

// convLoop visits every product of a convolution of x and w to y in row-major order of (y, channel, kernel position), with the offsets of
// the three elements. Forward and both gradients are this one loop.
func (o Conv) convLoop(x, w, y ir.Shape, visit func(x, w, y int64)) {
	taps := o.window(w).taps(x[2:], y[2:])
	spatial, cells, positions := x[2:].Elems(), w[2:].Elems(), int64(len(taps))
	channels, outs := w[1], w[0]/o.Group
	for n := range y[0] {
		for oc := range y[1] {
			first := oc / outs * channels
			for p, ts := range taps {
				for c := range channels {
					for _, t := range ts {
						visit((n*x[1]+first+c)*spatial+t.in, (oc*channels+c)*cells+t.kernel, (n*y[1]+oc)*positions+int64(p))
					}
				}
			}
		}
	}
}

// Eval adds up the products.
func (o Conv) Eval(in, out []ir.Tensor) {
	x, w, y := in[0].F, in[1].F, out[0].F
	o.convLoop(in[0].Type.Shape, in[1].Type.Shape, out[0].Type.Shape, func(xi, wi, yi int64) { y[yi] += x[xi] * w[wi] })
}

// Grad is ConvGradInput and ConvGradWeight.
func (o Conv) Grad(b *ir.Builder, n *ir.Node, dOut []*ir.Value) []*ir.Value {
	x, w, dy := n.In[0], n.In[1], dOut[0]
	return []*ir.Value{
		b.Add(o.gradInput(x.Type.Shape), w, dy),
		b.Add(o.gradWeight(w.Type.Shape), x, dy),
	}
}

func (o Conv) gradInput(x ir.Shape) ConvGradInput {
	return ConvGradInput{o.Strides, o.Dilations, o.Pads, o.Group, x.Clone()}
}

func (o Conv) gradWeight(w ir.Shape) ConvGradWeight {
	return ConvGradWeight{o.Strides, o.Dilations, o.Pads, o.Group, w.Clone()}
}

// flops counts two operations for each product, those with padding included; the gradients have as many products.
func (o Conv) flops(w, y ir.Shape) int64 { return 2 * y.Elems() * w[1:].Elems() }

// Cost is 2·(C/Group)·kernel operations for each element of the result.
func (o Conv) Cost(in, out []ir.Type) ir.Work {
	work := moved(in, out)
	work.FLOPs = o.flops(in[1].Shape, out[0].Shape)
	return work
}

// convCases are geometries that Conv and its gradients are tried on: one to three spatial axes, groups, depthwise, dilation, pads that
// differ at the two ends, strides that do not divide, kernels of one cell.
func convCases() []struct {
	conv Conv
	x, w ir.Shape
} {
	return []struct {
		conv Conv
		x, w ir.Shape
	}{
		{Conv{[]int64{1, 1}, []int64{1, 1}, []int64{1, 1, 1, 1}, 1}, ir.Shape{2, 3, 5, 4}, ir.Shape{4, 3, 3, 3}},
		{Conv{[]int64{2, 3}, []int64{1, 1}, []int64{0, 0, 0, 0}, 1}, ir.Shape{1, 2, 6, 7}, ir.Shape{3, 2, 3, 2}},
		{Conv{[]int64{2, 2}, []int64{1, 1}, []int64{1, 0, 2, 3}, 2}, ir.Shape{1, 4, 5, 5}, ir.Shape{6, 2, 3, 3}},
		{Conv{[]int64{1, 1}, []int64{2, 1}, []int64{2, 1, 2, 1}, 3}, ir.Shape{2, 3, 5, 4}, ir.Shape{3, 1, 3, 3}},
		{Conv{[]int64{1, 1}, []int64{1, 1}, []int64{0, 0, 0, 0}, 1}, ir.Shape{2, 3, 3, 3}, ir.Shape{5, 3, 1, 1}},
		{Conv{[]int64{3, 3}, []int64{1, 1}, []int64{0, 0, 0, 0}, 1}, ir.Shape{2, 1, 7, 8}, ir.Shape{2, 1, 2, 2}},
		{Conv{[]int64{2}, []int64{3}, []int64{1, 4}, 1}, ir.Shape{2, 2, 9}, ir.Shape{3, 2, 3}},
		{Conv{[]int64{1, 2, 1}, []int64{1, 1, 2}, []int64{0, 1, 2, 1, 0, 1}, 2}, ir.Shape{1, 2, 3, 4, 4}, ir.Shape{2, 1, 2, 3, 2}},
		{Conv{[]int64{1, 1}, []int64{1, 1}, []int64{0, 0, 0, 0}, 1}, ir.Shape{0, 2, 3, 3}, ir.Shape{2, 2, 2, 2}},
	}
}

// Samples are convCases, half-width floats, and the ways to be wrong.
func (Conv) Samples() []ir.Sample {
	var all []ir.Sample
	for i, c := range convCases() {
		all = append(all, good(c.conv, sampleFloats(uint64(i), ir.F32, c.x...), sampleFloats(uint64(100+i), ir.F32, c.w...)))
	}
	plain := Conv{[]int64{1, 1}, []int64{1, 1}, []int64{0, 0, 0, 0}, 1}
	with := func(change func(*Conv)) Conv {
		c := plain
		change(&c)
		return c
	}
	x, w := ir.T(ir.F32, 1, 4, 5, 5), ir.T(ir.F32, 6, 4, 3, 3)
	return append(all,
		good(plain, sampleFloats(50, ir.F64, 1, 2, 4, 4), sampleFloats(51, ir.F64, 2, 2, 3, 3)),
		good(plain, sampleFloats(52, ir.BF16, 1, 2, 4, 4), sampleFloats(53, ir.BF16, 2, 2, 3, 3)),
		bad(with(func(c *Conv) { c.Group = 0 }), "group must be at least 1", x, w),
		bad(with(func(c *Conv) { c.Group = 3 }), "group 3 does not divide 4 input and 6 output channels", x, w),
		bad(with(func(c *Conv) { c.Group = 2 }), "w must have 2 input channels", x, w),
		bad(with(func(c *Conv) { c.Strides = []int64{1} }), "strides must have 2 entries", x, w),
		bad(with(func(c *Conv) { c.Strides = []int64{1, 0} }), "strides must lie between 1", x, w),
		bad(with(func(c *Conv) { c.Dilations = []int64{1, 1 << 40} }), "dilations must lie between 1", x, w),
		bad(with(func(c *Conv) { c.Pads = []int64{0, -1, 0, 0} }), "pads must lie between 0", x, w),
		bad(with(func(c *Conv) { c.Dilations = []int64{3, 1} }), "kernel reaches over 7 cells along spatial axis 0, the padded input has 5", x, w),
		bad(plain, "one rank of 3 or more", x, ir.T(ir.F32, 6, 4, 3)),
		bad(plain, "want floats", ir.T(ir.I8, 1, 4, 5, 5), ir.T(ir.I8, 6, 4, 3, 3)),
		bad(plain, "takes 2 operands (x, w)", x),
	)
}
