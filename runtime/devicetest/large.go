package devicetest

import (
	"math/rand/v2"
	"slices"
	"testing"

	"aitk/ir"
	"aitk/ir/op"
)

// largeCases are shapes beyond what one tile, block or warp of any device holds, with extents that divide nothing.
func largeCases() []struct {
	op ir.Op
	in []ir.Type
} {
	f := func(shape ...int64) ir.Type { return ir.T(ir.F32, shape...) }
	i := func(shape ...int64) ir.Type { return ir.T(ir.I64, shape...) }
	wide := op.Conv{Strides: []int64{2, 1}, Dilations: []int64{1, 2}, Pads: []int64{1, 2, 0, 3}, Group: 2}
	return []struct {
		op ir.Op
		in []ir.Type
	}{
		{op.Exp{}, []ir.Type{f(70001)}},
		{op.Add{}, []ir.Type{f(301, 1, 67), f(29, 1)}},
		{op.Mul{}, []ir.Type{f(40001), f(40001)}},
		{op.Transpose{Perm: []int64{2, 0, 1}}, []ir.Type{f(37, 41, 43)}},
		{op.Concat{Axis: 1}, []ir.Type{f(101, 70, 3), f(101, 1, 3), f(101, 133, 3)}},
		{op.ReduceSum{Axes: []int64{0, 2}}, []ir.Type{f(67, 5, 331)}},
		{op.ReduceSum{Axes: []int64{0}}, []ir.Type{f(70001)}},
		{op.ReduceMean{Axes: []int64{1}, KeepDims: true}, []ir.Type{f(3, 2049, 17)}},
		{op.ReduceMax{Axes: []int64{1}}, []ir.Type{f(513, 131)}},
		{op.ArgMax{Axis: 1}, []ir.Type{f(257, 130)}},
		{op.TopK{Axis: 1, K: 7}, []ir.Type{f(5, 2049)}},
		{op.TopK{Axis: 0, K: 300, Smallest: true}, []ir.Type{f(700, 3)}},
		{op.CumSum{Axis: 1}, []ir.Type{f(33, 1025)}},
		{op.Gather{}, []ir.Type{f(100, 600), i(301)}},
		{op.ScatterAdd{Size: 50}, []ir.Type{i(900), f(900, 70)}},
		{op.MatMul{}, []ir.Type{f(3, 131, 257), f(257, 139)}},
		{op.MatMul{TransA: true, TransB: true}, []ir.Type{f(515, 130), f(67, 515)}},
		{op.MatMul{TransB: true}, []ir.Type{f(4, 2, 65, 32), f(4, 2, 77, 32)}},
		{op.MatMul{}, []ir.Type{f(1, 700), f(700, 900)}},
		{op.MatMul{}, []ir.Type{f(136, 72), f(72, 200)}}, // extents of tensor cores
		{op.MatMul{TransA: true}, []ir.Type{f(72, 136), f(72, 200)}},
		{op.MatMul{TransB: true}, []ir.Type{f(2, 1, 136, 72), f(3, 200, 72)}},
		{op.MatMul{TransA: true, TransB: true}, []ir.Type{f(72, 136), f(200, 72)}},
		{op.MatMul{}, []ir.Type{f(900, 700), f(700, 1)}},
		{wide, []ir.Type{f(3, 10, 33, 21), f(14, 5, 3, 5)}},
		{op.ConvGradInput{Strides: wide.Strides, Dilations: wide.Dilations, Pads: wide.Pads, Group: 2, Shape: ir.Shape{3, 10, 33, 21}}, []ir.Type{f(14, 5, 3, 5), f(3, 14, 16, 18)}},
		{op.ConvGradWeight{Strides: wide.Strides, Dilations: wide.Dilations, Pads: wide.Pads, Group: 2, Shape: ir.Shape{14, 5, 3, 5}}, []ir.Type{f(3, 10, 33, 21), f(3, 14, 16, 18)}},
		{op.Conv{Strides: []int64{1, 1}, Dilations: []int64{1, 1}, Pads: []int64{1, 1, 1, 1}, Group: 1}, []ir.Type{f(2, 40, 13, 17), f(136, 40, 3, 3)}},
		{op.ConvGradInput{Strides: []int64{1, 1}, Dilations: []int64{1, 1}, Pads: []int64{1, 1, 1, 1}, Group: 1, Shape: ir.Shape{2, 40, 13, 17}}, []ir.Type{f(136, 40, 3, 3), f(2, 136, 13, 17)}},
		{op.ConvGradWeight{Strides: []int64{1, 1}, Dilations: []int64{1, 1}, Pads: []int64{1, 1, 1, 1}, Group: 1, Shape: ir.Shape{136, 40, 3, 3}}, []ir.Type{f(2, 40, 13, 17), f(2, 136, 13, 17)}},
		{op.ConvGradWeight{Strides: []int64{2, 2}, Dilations: []int64{1, 1}, Pads: []int64{1, 1, 1, 1}, Group: 1, Shape: ir.Shape{33, 35, 3, 3}}, []ir.Type{f(8, 35, 40, 40), f(8, 33, 20, 20)}},
		{op.Attention{Scale: 0.25}, []ir.Type{f(2, 4, 70, 32), f(2, 2, 131, 32), f(2, 2, 131, 40), f(2, 1, 70, 131)}},
		{op.Attention{Scale: 0.1}, []ir.Type{f(1, 2, 131, 128), f(1, 2, 67, 128), f(1, 2, 67, 128)}},
		{op.AttentionGrad{Scale: 0.25}, []ir.Type{f(2, 4, 70, 32), f(2, 2, 131, 32), f(2, 2, 131, 40), f(2, 4, 70, 40), f(2, 4, 70), f(2, 4, 70, 40), f(2, 1, 70, 131)}},
		{op.AttentionGrad{Scale: 0.1}, []ir.Type{f(1, 2, 131, 128), f(1, 2, 67, 128), f(1, 2, 67, 120), f(1, 2, 131, 120), f(1, 2, 131), f(1, 2, 131, 120)}},
		{op.MaxPool{Kernel: []int64{3, 3}, Strides: []int64{2, 2}, Dilations: []int64{1, 1}, Pads: []int64{1, 1, 1, 1}}, []ir.Type{f(2, 3, 151, 149)}},
		{op.MaxPoolGrad{Kernel: []int64{3, 3}, Strides: []int64{2, 2}, Dilations: []int64{1, 1}, Pads: []int64{1, 1, 1, 1}}, []ir.Type{f(2, 3, 151, 149), f(2, 3, 76, 75)}},
		{op.AvgPoolGrad{Kernel: []int64{3, 2}, Strides: []int64{1, 2}, Dilations: []int64{1, 1}, Pads: []int64{1, 0, 0, 1}, Shape: ir.Shape{2, 2, 151, 149}}, []ir.Type{f(2, 2, 150, 75)}},
		{op.Softmax{Axis: 1}, []ir.Type{f(65, 5003)}},
		{op.SoftmaxGrad{Axis: 0}, []ir.Type{f(600, 70), f(600, 70)}},
		{op.LogSoftmax{Axis: 2}, []ir.Type{f(7, 11, 1031)}},
		{op.LayerNorm{Axis: 1, Eps: 1e-5}, []ir.Type{f(301, 769), f(769), f(769)}},
		{op.LayerNormGrad{Axis: 1, Eps: 1e-5}, []ir.Type{f(301, 769), f(769), f(301, 769)}},
		{op.RMSNormGrad{Axis: 1, Eps: 1e-5}, []ir.Type{f(301, 769), f(769), f(301, 769)}},
		{op.BatchNorm{Eps: 1e-5}, []ir.Type{f(17, 5, 37, 31), f(5), f(5)}},
		{op.BatchNormGrad{Eps: 1e-5}, []ir.Type{f(17, 5, 37, 31), f(5), f(5), f(5), f(17, 5, 37, 31)}},
		{op.SoftmaxCrossEntropy{Axis: 1, Reduction: "mean"}, []ir.Type{f(515, 100), i(515)}},
		{op.SoftmaxCrossEntropyGrad{Axis: 1, Reduction: "mean"}, []ir.Type{f(515, 100), i(515), f()}},
		{op.Adam{Beta1: 0.9, Beta2: 0.999, Eps: 1e-8, WeightDecay: 0.1, Decoupled: true}, []ir.Type{f(40001), f(40001), f(40001), f(40001), f(), i(), ir.T(ir.Bool)}},
		{op.SumSquares{}, []ir.Type{f(70001)}},
		{op.Dropout{Ratio: 0.3, StreamID: 7}, []ir.Type{f(50001), i(), i(), i()}},
	}
}

// isProduct tells whether an op multiplies matrices.
func isProduct(o ir.Op) bool {
	switch o.(type) {
	case op.MatMul, op.Conv, op.ConvGradInput, op.ConvGradWeight, op.Attention, op.AttentionGrad, op.AttentionMaskGrad:
		return true
	}
	return false
}

// large runs them all, with positive operands: cancellation would hide errors.
func (s *suite) large(t *testing.T) {
	for _, c := range largeCases() {
		if s.products && !isProduct(c.op) {
			continue
		}
		t.Run(ir.FormatOp(c.op), func(t *testing.T) {
			r := rand.New(rand.NewPCG(1, 2))
			var in []ir.Tensor
			for _, u := range c.in {
				x := ir.NewTensor(u)
				least := 0.1
				if _, ok := c.op.(op.AttentionGrad); ok { // slopes of scores add up to nothing along a row: they cancel if keys have one sign
					least = -0.5
				}
				for k := range x.F {
					x.F[k] = least + r.Float64()
				}
				for k := range x.I {
					x.I[k] = 1
					if len(u.Shape) > 0 {
						x.I[k] = r.Int64N(50) // an index, or a label
					}
				}
				x.Round()
				in = append(in, x)
			}
			if g, ok := c.op.(op.AttentionGrad); ok { // its y and lse are those of its operands
				y, err := eval(op.Attention{Scale: g.Scale, Guard: g.Guard}, slices.Concat(in[:3], in[6:]))
				if err != nil {
					t.Fatal(err)
				}
				in[3], in[4] = y[0], y[1]
				in[3].Round()
				in[4].Round()
			}
			var all []testCase
			if !s.products {
				all = variants(t, "large", c.op, in)
			}
			if isProduct(c.op) { // narrow floats may have kernels of their own
				for _, d := range s.opt.DTypes {
					if narrow, ok := retype(c.op, in, d); ok {
						all = append(all, variants(t, d.String(), c.op, narrow)...)
					}
				}
			}
			err := s.try(t, all)
			if ir.KindOf(err) == ir.Unsupported {
				t.Skipf("reported by the ops themselves: %v", err)
			}
			if err != nil {
				t.Fatal(err)
			}
		})
	}
}

// data gives ops an index or a label that is out of range: an error of the run, not a crash and not a number.
func (s *suite) data(t *testing.T) {
	for _, o := range op.All() {
		sampler, ok := o.(ir.Sampler)
		if !ok || !computes(o) {
			continue
		}
		for i, sample := range sampler.Samples() {
			if bad, ok := spoil(sample); ok {
				t.Run(ir.OpName(o), func(t *testing.T) { s.refuses(t, i, sample.Op, bad) })
			}
		}
	}
}

// spoil makes one integer operand's last element so large that the op must refuse it.
func spoil(sample ir.Sample) ([]ir.Tensor, bool) {
	for i, x := range sample.In {
		if len(x.I) == 0 {
			continue
		}
		bad := append([]ir.Tensor{}, sample.In...)
		bad[i] = ir.Tensor{Type: x.Type, I: append([]int64{}, x.I...)}
		bad[i].I[len(x.I)-1] = 1 << 30
		bad[i].Round()
		if op.CheckData(sample.Op, bad) != nil && op.CheckData(sample.Op, sample.In) == nil {
			return bad, true
		}
	}
	return nil, false
}
