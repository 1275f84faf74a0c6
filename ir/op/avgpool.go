package op

import "aitk/ir"

// AvgPool is the mean under a sliding window.
//
//	x [N, C, spatial...] -> [N, C, out...]
//
// out as for Conv. The divisor is the number of cells of the window inside x or, with CountPad, the kernel's size (cells outside x
// count as zeros). A window that covers none of x gives 0. Cells are summed in row-major order.
type AvgPool struct {
	Kernel, Strides, Dilations, Pads []int64
	CountPad                         bool
}

func (o AvgPool) window() window { return window{o.Kernel, o.Strides, o.Dilations, o.Pads} }

// Infer gives [N, C, out...].
func (o AvgPool) Infer(in []ir.Type) ([]ir.Type, error) {
	if err := wantOperands(in, "x"); err != nil {
		return nil, err
	}
	if err := wantFloats(in, 0); err != nil {
		return nil, err
	}
	out, err := o.window().poolShape(in[0].Shape)
	if err != nil {
		return nil, err
	}
	return []ir.Type{{DType: in[0].DType, Shape: out}}, nil
}

// divisor is what the sum of a window is divided by.
func (o AvgPool) divisor(taps []tap) float64 {
	if o.CountPad {
		return float64(ir.Shape(o.Kernel).Elems())
	}
	return float64(max(len(taps), 1)) // no cell: the sum is 0
}

// Eval takes the mean of each window.
func (o AvgPool) Eval(in, out []ir.Tensor) {
	x, y := in[0].Type.Shape, out[0].Type.Shape
	taps := o.window().taps(x[2:], y[2:])
	size := x[2:].Elems()
	for c := range x[:2].Elems() {
		for p, ts := range taps {
			var sum float64
			for _, t := range ts {
				sum += in[0].F[c*size+t.in]
			}
			out[0].F[c*int64(len(taps))+int64(p)] = sum / o.divisor(ts)
		}
	}
}

// Grad is AvgPoolGrad.
func (o AvgPool) Grad(b *ir.Builder, n *ir.Node, dOut []*ir.Value) []*ir.Value {
	return []*ir.Value{b.Add(AvgPoolGrad{o.Kernel, o.Strides, o.Dilations, o.Pads, o.CountPad, n.In[0].Type.Shape.Clone()}, dOut[0])}
}

// Cost is one addition for each cell of each window.
func (o AvgPool) Cost(in, out []ir.Type) ir.Work { return windowWork(o.Kernel, in, out, out[0]) }

// Samples are poolCases, with either divisor.
func (AvgPool) Samples() []ir.Sample {
	var all []ir.Sample
	for i, c := range poolCases() {
		for _, pad := range []bool{false, true} {
			all = append(all, good(AvgPool{c.w.kernel, c.w.strides, c.w.dilations, c.w.pads, pad}, sampleFloats(uint64(i), ir.F32, c.x...)))
		}
	}
	return append(all, badPools(func(w window) ir.Op { return AvgPool{w.kernel, w.strides, w.dilations, w.pads, false} })...)
}

// AvgPoolGrad is the gradient of AvgPool, which is linear: it spreads each dy evenly over the cells that it is the mean of.
//
//	dy [N, C, out...] -> Shape [N, C, spatial...]
//
// Cells under several windows sum in row-major order of the windows.
type AvgPoolGrad struct {
	Kernel, Strides, Dilations, Pads []int64
	CountPad                         bool
	Shape                            ir.Shape
}

func (o AvgPoolGrad) window() window { return window{o.Kernel, o.Strides, o.Dilations, o.Pads} }

// Infer gives Shape.
func (o AvgPoolGrad) Infer(in []ir.Type) ([]ir.Type, error) {
	if err := wantOperands(in, "dy"); err != nil {
		return nil, err
	}
	if err := wantFloats(in, 0); err != nil {
		return nil, err
	}
	if err := o.Shape.Check(); err != nil {
		return nil, err
	}
	y, err := o.window().poolShape(o.Shape)
	if err != nil {
		return nil, err
	}
	if err := wantShape(in, 0, "dy", y); err != nil {
		return nil, err
	}
	return []ir.Type{{DType: in[0].DType, Shape: o.Shape.Clone()}}, nil
}

func (o AvgPoolGrad) pool() AvgPool {
	return AvgPool{o.Kernel, o.Strides, o.Dilations, o.Pads, o.CountPad}
}

// Eval spreads each dy over its window.
func (o AvgPoolGrad) Eval(in, out []ir.Tensor) {
	y := in[0].Type.Shape
	taps := o.window().taps(o.Shape[2:], y[2:])
	size := o.Shape[2:].Elems()
	for c := range y[:2].Elems() {
		for p, ts := range taps {
			share := in[0].F[c*int64(len(taps))+int64(p)] / o.pool().divisor(ts)
			for _, t := range ts {
				out[0].F[c*size+t.in] += share
			}
		}
	}
}

// Grad: the op is linear and its adjoint is the pool.
func (o AvgPoolGrad) Grad(b *ir.Builder, n *ir.Node, dOut []*ir.Value) []*ir.Value {
	return []*ir.Value{b.Add(o.pool(), dOut[0])}
}

// Cost is one addition for each cell of each window.
func (o AvgPoolGrad) Cost(in, out []ir.Type) ir.Work { return windowWork(o.Kernel, in, out, in[0]) }

// Samples are poolCases, with either divisor.
func (AvgPoolGrad) Samples() []ir.Sample {
	var all []ir.Sample
	for i, c := range poolCases() {
		y, err := c.w.poolShape(c.x)
		if err != nil {
			panic(ir.Bugf("sample pool: %v", err))
		}
		for _, pad := range []bool{false, true} {
			all = append(all, good(AvgPoolGrad{c.w.kernel, c.w.strides, c.w.dilations, c.w.pads, pad, c.x}, sampleFloats(uint64(i), ir.F32, y...)))
		}
	}
	two := func(shape ...int64) AvgPoolGrad {
		return AvgPoolGrad{[]int64{2, 2}, []int64{2, 2}, []int64{1, 1}, []int64{0, 0, 0, 0}, false, shape}
	}
	return append(all,
		bad(two(1, 1, 4, 4), "dy must have shape [1,1,2,2]", ir.T(ir.F32, 1, 1, 4, 4)),
		bad(two(1, 1, -4, 4), "negative or too large", ir.T(ir.F32, 1, 1, 2, 2)),
		bad(two(4, 4), "rank 3 or more", ir.T(ir.F32, 2, 2)),
		bad(two(1, 1, 4, 4), "takes 1 operand (dy)"),
	)
}
