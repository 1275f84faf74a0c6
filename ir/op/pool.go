package op

import (
	"math"

	"aitk/ir"
)

// MaxPool is the largest value under a sliding window.
//
//	x [N, C, spatial...] -> [N, C, out...]
//
// out as for Conv. Cells outside x never win; a window that covers none of x gives -inf. A NaN under the window is the result.
// ceil_mode and auto_pad are resolved by the importer into Pads.
type MaxPool struct{ Kernel, Strides, Dilations, Pads []int64 }

func (o MaxPool) window() window { return window{o.Kernel, o.Strides, o.Dilations, o.Pads} }

// Infer gives [N, C, out...].
func (o MaxPool) Infer(in []ir.Type) ([]ir.Type, error) {
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

// maxTap finds the first maximum, or the first NaN, among the taps of a plane; -1 where there are none.
func maxTap(plane []float64, taps []tap) (at int64) {
	at = -1
	for _, t := range taps {
		x := plane[t.in]
		if at < 0 || x > plane[at] || math.IsNaN(x) && !math.IsNaN(plane[at]) {
			at = t.in
		}
	}
	return at
}

// Eval takes the maximum of each window.
func (o MaxPool) Eval(in, out []ir.Tensor) {
	x, y := in[0].Type.Shape, out[0].Type.Shape
	taps := o.window().taps(x[2:], y[2:])
	size := x[2:].Elems()
	for c := range x[:2].Elems() {
		plane := in[0].F[c*size : (c+1)*size]
		for p, ts := range taps {
			best := math.Inf(-1)
			if at := maxTap(plane, ts); at >= 0 {
				best = plane[at]
			}
			out[0].F[c*int64(len(taps))+int64(p)] = best
		}
	}
}

// Grad is MaxPoolGrad.
func (o MaxPool) Grad(b *ir.Builder, n *ir.Node, dOut []*ir.Value) []*ir.Value {
	return []*ir.Value{b.Add(MaxPoolGrad(o), n.In[0], dOut[0])}
}

// Cost is one comparison for each cell of each window.
func (o MaxPool) Cost(in, out []ir.Type) ir.Work { return windowWork(o.Kernel, in, out, out[0]) }

// windowWork is one operation for each cell of each window of the pooled tensor.
func windowWork(kernel []int64, in, out []ir.Type, pooled ir.Type) ir.Work {
	w := moved(in, out)
	w.FLOPs = pooled.Elems() * ir.Shape(kernel).Elems()
	return w
}

// poolCases are geometries that the pools are tried on: one to three spatial axes, windows that overlap and that leave gaps, dilation,
// pads that differ at the two ends, a window that covers no cell of the input.
func poolCases() []struct {
	w window
	x ir.Shape
} {
	return []struct {
		w window
		x ir.Shape
	}{
		{window{[]int64{2, 2}, []int64{2, 2}, []int64{1, 1}, []int64{0, 0, 0, 0}}, ir.Shape{2, 3, 4, 6}},
		{window{[]int64{3, 3}, []int64{2, 2}, []int64{1, 1}, []int64{1, 1, 1, 1}}, ir.Shape{1, 2, 5, 6}},
		{window{[]int64{2, 3}, []int64{3, 1}, []int64{1, 2}, []int64{0, 2, 1, 0}}, ir.Shape{1, 2, 6, 5}},
		{window{[]int64{3}, []int64{2}, []int64{1}, []int64{1, 2}}, ir.Shape{2, 2, 7}},
		{window{[]int64{2, 1, 2}, []int64{1, 1, 2}, []int64{1, 1, 1}, []int64{0, 0, 1, 1, 0, 0}}, ir.Shape{1, 1, 3, 2, 4}},
		{window{[]int64{1, 2}, []int64{1, 1}, []int64{1, 1}, []int64{0, 2, 0, 0}}, ir.Shape{1, 1, 2, 3}},
		{window{[]int64{2, 2}, []int64{2, 2}, []int64{1, 1}, []int64{0, 0, 0, 0}}, ir.Shape{0, 3, 4, 6}},
	}
}

// badPools are the ways in which a pool can be wrong about x [1,2,5,6], for the op that make builds from a window.
func badPools(make func(window) ir.Op) []ir.Sample {
	with := func(change func(*window)) ir.Op {
		w := window{[]int64{2, 2}, []int64{1, 1}, []int64{1, 1}, []int64{0, 0, 0, 0}}
		change(&w)
		return make(w)
	}
	x := ir.T(ir.F32, 1, 2, 5, 6)
	return []ir.Sample{
		bad(with(func(w *window) { w.kernel = []int64{2} }), "kernel must have 2 entries", x),
		bad(with(func(w *window) { w.kernel = []int64{0, 2} }), "kernel must lie between 1", x),
		bad(with(func(w *window) { w.pads = []int64{0, 0} }), "pads must have 4 entries", x),
		bad(with(func(w *window) { w.dilations = []int64{1, 6} }), "kernel reaches over 7 cells along spatial axis 1", x),
		bad(with(func(w *window) {}), "rank 3 or more", ir.T(ir.F32, 5, 6)),
		bad(with(func(w *window) {}), "want floats", ir.T(ir.I64, 1, 2, 5, 6)),
		bad(with(func(w *window) {}), "takes 1 operand (x)", x, x),
	}
}

// Samples are poolCases; where windows lie in the padding alone the result is -inf, at which finite differences make no sense.
func (MaxPool) Samples() []ir.Sample {
	var all []ir.Sample
	for i, c := range poolCases() {
		s := good(MaxPool{c.w.kernel, c.w.strides, c.w.dilations, c.w.pads}, sampleFloats(uint64(i), ir.F32, c.x...))
		if c.w.pads[1] == 2 && c.w.kernel[0] == 1 {
			s.NoDiff = []int{0}
		}
		all = append(all, s)
	}
	flat := ir.NewTensor(ir.T(ir.F32, 1, 1, 4, 4)) // every window is a tie
	all = append(all, ir.Sample{Op: MaxPool{[]int64{2, 2}, []int64{2, 2}, []int64{1, 1}, []int64{0, 0, 0, 0}}, In: []ir.Tensor{flat}, NoDiff: []int{0}})
	return append(all, badPools(func(w window) ir.Op { return MaxPool{w.kernel, w.strides, w.dilations, w.pads} })...)
}

// MaxPoolGrad gives the whole of each dy to the first maximum of its window in row-major order (of NaNs, the first).
//
//	x [N, C, spatial...], dy [N, C, out...] -> dx like x
//
// Cells that win several windows sum in row-major order of the windows.
type MaxPoolGrad struct{ Kernel, Strides, Dilations, Pads []int64 }

func (o MaxPoolGrad) window() window { return window{o.Kernel, o.Strides, o.Dilations, o.Pads} }

// Infer gives x's type.
func (o MaxPoolGrad) Infer(in []ir.Type) ([]ir.Type, error) {
	if err := wantOperands(in, "x", "dy"); err != nil {
		return nil, err
	}
	if err := wantFloats(in, 0, 1); err != nil {
		return nil, err
	}
	y, err := o.window().poolShape(in[0].Shape)
	if err != nil {
		return nil, err
	}
	if err := wantShape(in, 1, "dy", y); err != nil {
		return nil, err
	}
	return []ir.Type{in[0]}, nil
}

// NoGradReason says why gradients stop here.
func (MaxPoolGrad) NoGradReason() string { return noSecond }

// Eval gives each dy to the cell that won its window.
func (o MaxPoolGrad) Eval(in, out []ir.Tensor) {
	x, y := in[0].Type.Shape, in[1].Type.Shape
	taps := o.window().taps(x[2:], y[2:])
	size := x[2:].Elems()
	for c := range x[:2].Elems() {
		plane, dx := in[0].F[c*size:(c+1)*size], out[0].F[c*size:]
		for p, ts := range taps {
			if at := maxTap(plane, ts); at >= 0 {
				dx[at] += in[1].F[c*int64(len(taps))+int64(p)]
			}
		}
	}
}

// Cost is one comparison for each cell of each window.
func (o MaxPoolGrad) Cost(in, out []ir.Type) ir.Work { return windowWork(o.Kernel, in, out, in[1]) }

// Samples are poolCases, and ties, which go to the first cell.
func (MaxPoolGrad) Samples() []ir.Sample {
	var all []ir.Sample
	for i, c := range poolCases() {
		y, err := c.w.poolShape(c.x)
		if err != nil {
			panic(ir.Bugf("sample pool: %v", err))
		}
		all = append(all, good(MaxPoolGrad{c.w.kernel, c.w.strides, c.w.dilations, c.w.pads}, sampleFloats(uint64(i), ir.F32, c.x...), sampleFloats(uint64(100+i), ir.F32, y...)))
	}
	two := MaxPoolGrad{[]int64{2, 2}, []int64{2, 2}, []int64{1, 1}, []int64{0, 0, 0, 0}}
	return append(all,
		good(two, ir.NewTensor(ir.T(ir.F32, 1, 1, 4, 4)), sampleFloats(50, ir.F32, 1, 1, 2, 2)),
		good(two, sampleFloats(51, ir.BF16, 1, 2, 4, 4), sampleFloats(52, ir.BF16, 1, 2, 2, 2)),
		bad(two, "dy must have shape [1,1,2,2]", ir.T(ir.F32, 1, 1, 4, 4), ir.T(ir.F32, 1, 1, 4, 4)),
		bad(two, "takes 2 operands (x, dy)", ir.T(ir.F32, 1, 1, 4, 4)),
	)
}
