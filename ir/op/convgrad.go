package op

import (
	"fmt"

	"aitk/ir"
)

// ConvGradInput is the gradient of Conv to x, and the transposed convolution.
//
//	w [O, C/Group, kernel...], dy [N, O, out...] -> Shape [N, C, spatial...]
//
// The attributes are those of the Conv that maps Shape and w to dy's shape. Each cell sums its products over (output channel of its
// group, kernel position) in row-major order.
type ConvGradInput struct {
	Strides, Dilations, Pads []int64
	Group                    int64
	Shape                    ir.Shape
}

func (o ConvGradInput) conv() Conv { return Conv{o.Strides, o.Dilations, o.Pads, o.Group} }

// Infer gives Shape.
func (o ConvGradInput) Infer(in []ir.Type) ([]ir.Type, error) {
	if err := wantOperands(in, "w", "dy"); err != nil {
		return nil, err
	}
	return inferConvGrad(o.conv(), in, o.Shape, in[0].Shape, o.Shape)
}

// Eval gives each dy to the cells of x that it came from, as much as w says.
func (o ConvGradInput) Eval(in, out []ir.Tensor) {
	w, dy, x := in[0].F, in[1].F, out[0].F
	o.conv().convLoop(o.Shape, in[0].Type.Shape, in[1].Type.Shape, func(xi, wi, yi int64) { x[xi] += w[wi] * dy[yi] })
}

// Grad: the op is linear in both operands, and its adjoints are the convolution and the weight gradient.
func (o ConvGradInput) Grad(b *ir.Builder, n *ir.Node, dOut []*ir.Value) []*ir.Value {
	w, dy, g := n.In[0], n.In[1], dOut[0]
	return []*ir.Value{b.Add(o.conv().gradWeight(w.Type.Shape), g, dy), b.Add(o.conv(), g, w)}
}

// Cost counts the products of the convolution.
func (o ConvGradInput) Cost(in, out []ir.Type) ir.Work {
	work := moved(in, out)
	work.FLOPs = o.conv().flops(in[0].Shape, in[1].Shape)
	return work
}

// Samples are convCases and the ways to be wrong.
func (ConvGradInput) Samples() []ir.Sample {
	var all []ir.Sample
	for i, c := range convCases() {
		all = append(all, good(c.conv.gradInput(c.x), sampleFloats(uint64(i), ir.F32, c.w...), convSampleDY(uint64(100+i), ir.F32, c.conv, c.x, c.w)))
	}
	c := convCases()[1]
	g := c.conv.gradInput(c.x)
	w, dy := ir.T(ir.F32, c.w...), ir.T(ir.F32, 1, 3, 2, 2)
	return append(all,
		good(g, sampleFloats(50, ir.BF16, c.w...), convSampleDY(51, ir.BF16, c.conv, c.x, c.w)),
		bad(g, "dy must have shape [1,3,2,2]", w, ir.T(ir.F32, 1, 3, 2, 3)),
		bad(g, "the convolution whose gradient this is", ir.T(ir.F32, 3, 3, 3, 2), dy),
		bad(c.conv.gradInput(ir.Shape{1, 2, -6, 7}), "negative or too large", w, dy),
		bad(g, "takes 2 operands (w, dy)", w),
	)
}

// ConvGradWeight is the gradient of Conv to w.
//
//	x [N, C, spatial...], dy [N, O, out...] -> Shape [O, C/Group, kernel...]
//
// The attributes are those of the Conv that maps x and Shape to dy's shape. Each element sums its products over (sample, output
// position) in row-major order.
type ConvGradWeight struct {
	Strides, Dilations, Pads []int64
	Group                    int64
	Shape                    ir.Shape
}

func (o ConvGradWeight) conv() Conv { return Conv{o.Strides, o.Dilations, o.Pads, o.Group} }

// Infer gives Shape.
func (o ConvGradWeight) Infer(in []ir.Type) ([]ir.Type, error) {
	if err := wantOperands(in, "x", "dy"); err != nil {
		return nil, err
	}
	return inferConvGrad(o.conv(), in, in[0].Shape, o.Shape, o.Shape)
}

// Eval gives each product of x and dy to the element of w that brought them together.
func (o ConvGradWeight) Eval(in, out []ir.Tensor) {
	x, dy, w := in[0].F, in[1].F, out[0].F
	o.conv().convLoop(in[0].Type.Shape, o.Shape, in[1].Type.Shape, func(xi, wi, yi int64) { w[wi] += x[xi] * dy[yi] })
}

// Grad: the op is linear in both operands, and its adjoints are the input gradient and the convolution.
func (o ConvGradWeight) Grad(b *ir.Builder, n *ir.Node, dOut []*ir.Value) []*ir.Value {
	x, dy, g := n.In[0], n.In[1], dOut[0]
	return []*ir.Value{b.Add(o.conv().gradInput(x.Type.Shape), g, dy), b.Add(o.conv(), x, g)}
}

// Stretches is into how many pieces a device of thousands of threads may cut the sums, whose partial sums it then adds in order. A weight of few elements
// has long sums (one product for each output position of the batch), and would leave most of such a device idle. It depends on shapes
// alone, as the order of every sum does: about 512 tiles of 64 by 64, with 512 products or more in each.
func (o ConvGradWeight) Stretches(dy ir.Shape) int64 {
	const side, tiles, least = 64, 512, 512
	if len(o.Shape) < 2 || o.Group < 1 || o.Shape.Elems() == 0 || len(dy) < 2 {
		return 1
	}
	up := func(n int64) int64 { return (n + side - 1) / side }
	own := up(o.Shape[0]/o.Group) * up(o.Shape[1:].Elems()) * o.Group
	return max(1, min(tiles/own, dy[0]*dy[2:].Elems()/least))
}

// Cost counts the products of the convolution, and room for the partial sums of stretches in f32 (f64 for f64).
func (o ConvGradWeight) Cost(in, out []ir.Type) ir.Work {
	work := moved(in, out)
	work.FLOPs = o.conv().flops(out[0].Shape, in[1].Shape)
	if n := o.Stretches(in[1].Shape); n > 1 {
		width := int64(4)
		if out[0].DType == ir.F64 {
			width = 8
		}
		work.PartialBytes = n * out[0].Shape.Elems() * width
	}
	return work
}

// Samples are convCases and the ways to be wrong.
func (ConvGradWeight) Samples() []ir.Sample {
	var all []ir.Sample
	for i, c := range convCases() {
		all = append(all, good(c.conv.gradWeight(c.w), sampleFloats(uint64(i), ir.F32, c.x...), convSampleDY(uint64(100+i), ir.F32, c.conv, c.x, c.w)))
	}
	c := convCases()[1]
	g := c.conv.gradWeight(c.w)
	x := ir.T(ir.F32, c.x...)
	return append(all,
		good(g, sampleFloats(50, ir.BF16, c.x...), convSampleDY(51, ir.BF16, c.conv, c.x, c.w)),
		bad(g, "dy must have shape [1,3,2,2]", x, ir.T(ir.F32, 2, 3, 2, 2)),
		bad(c.conv.gradWeight(ir.Shape{3, 2, 9, 2}), "the convolution whose gradient this is", x, ir.T(ir.F32, 1, 3, 2, 2)),
		bad(g, "takes 2 operands (x, dy)", x),
	)
}

// convSampleDY is a sample of what c makes of x and w.
func convSampleDY(seed uint64, d ir.DType, c Conv, x, w ir.Shape) ir.Tensor {
	y, err := c.shape(x, w)
	if err != nil {
		panic(ir.Bugf("sample convolution: %v", err))
	}
	return sampleFloats(seed, d, y...)
}

// noSecond is why gradient ops have no gradient of their own.
const noSecond = "second derivatives are not supported"

// inferConvGrad checks that c maps x and w to dy, operand 1, and gives a tensor of shape out.
func inferConvGrad(c Conv, in []ir.Type, x, w, out ir.Shape) ([]ir.Type, error) {
	if err := wantFloats(in, 0, 1); err != nil {
		return nil, err
	}
	if err := out.Check(); err != nil {
		return nil, err
	}
	y, err := c.shape(x, w)
	if err != nil {
		return nil, fmt.Errorf("the convolution whose gradient this is: %w", err)
	}
	if err := wantShape(in, 1, "dy", y); err != nil {
		return nil, err
	}
	return []ir.Type{{DType: in[0].DType, Shape: out}}, nil
}
