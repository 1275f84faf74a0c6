package op

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"aitk/ir"
)

// tensorOf is a tensor of the given floats.
func tensorOf(shape ir.Shape, x ...float64) ir.Tensor {
	return ir.Tensor{Type: ir.Type{DType: ir.F64, Shape: shape}, F: x}
}

// count is 1, 2, 3 ... in a shape.
func count(shape ...int64) ir.Tensor {
	t := ir.NewTensor(ir.T(ir.F64, shape...))
	for i := range t.F {
		t.F[i] = float64(i + 1)
	}
	return t
}

// Values worked out by hand or by the ONNX reference evaluator; every one is small enough to follow on paper.
func TestValues(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	a, b := tensorOf(ir.Shape{2, 2}, 1, 2, 3, 4), tensorOf(ir.Shape{2, 2}, 5, 6, 7, 8)
	logits := tensorOf(ir.Shape{3, 3}, 1, 2, 3, 0, -1, 1, 2, 2, 0)
	labels := func(l ...int64) ir.Tensor { return sampleInts(ir.I64, ir.Shape{int64(len(l))}, l...) }
	mean := SoftmaxCrossEntropy{Axis: 1, Reduction: "mean"}
	ignore := SoftmaxCrossEntropy{Axis: 1, Reduction: "mean", HasIgnore: true, IgnoreIndex: -1}
	smooth := SoftmaxCrossEntropy{Axis: 0, Reduction: "mean", LabelSmoothing: 0.5}
	pads := []int64{0, 1, 1, 0}
	for _, c := range []struct {
		op   ir.Op
		in   []ir.Tensor
		want []float64 // all outputs, one after the other
	}{
		{MatMul{}, []ir.Tensor{a, b}, []float64{19, 22, 43, 50}},
		{MatMul{TransA: true}, []ir.Tensor{a, b}, []float64{26, 30, 38, 44}},
		{MatMul{TransB: true}, []ir.Tensor{a, b}, []float64{17, 23, 39, 53}},
		{MatMul{TransA: true, TransB: true}, []ir.Tensor{a, b}, []float64{23, 31, 34, 46}},
		{MatMul{}, []ir.Tensor{count(2, 1, 1), count(1, 3)}, []float64{1, 2, 3, 2, 4, 6}},
		{MatMul{}, []ir.Tensor{count(1, 2, 0), count(2, 0, 1)}, []float64{0, 0, 0, 0}},

		{Conv{[]int64{2, 1}, []int64{1, 1}, []int64{1, 0, 0, 2}, 1}, []ir.Tensor{count(1, 1, 4, 4), tensorOf(ir.Shape{1, 1, 2, 3}, 1, -1, 2, 0, 3, -2)}, []float64{0, 1, 12, 0, 21, 24, 35, 8}},
		{Conv{[]int64{1, 1}, []int64{1, 2}, []int64{0, 0, 0, 0}, 2}, []ir.Tensor{count(1, 2, 2, 3), tensorOf(ir.Shape{2, 1, 1, 2}, 1, 2, -1, 3)}, []float64{7, 16, 20, 26}},
		{ConvGradInput{[]int64{2}, []int64{1}, []int64{0, 0}, 1, ir.Shape{1, 1, 6}}, []ir.Tensor{tensorOf(ir.Shape{1, 1, 3}, 1, 2, 3), tensorOf(ir.Shape{1, 1, 2}, 1, 10)}, []float64{1, 2, 13, 20, 30, 0}},
		{ConvGradWeight{[]int64{2}, []int64{1}, []int64{0, 0}, 1, ir.Shape{1, 1, 3}}, []ir.Tensor{count(1, 1, 6), tensorOf(ir.Shape{1, 1, 2}, 1, 10)}, []float64{31, 42, 53}},

		{MaxPool{[]int64{2, 3}, []int64{2, 2}, []int64{1, 1}, pads}, []ir.Tensor{count(1, 1, 4, 4)}, []float64{6, 8, 14, 16}},
		{MaxPool{[]int64{2}, []int64{1}, []int64{1}, []int64{0, 0}}, []ir.Tensor{tensorOf(ir.Shape{1, 1, 5}, 1, nan, 2, -inf, -inf)}, []float64{nan, nan, 2, -inf}},
		{MaxPool{[]int64{1}, []int64{1}, []int64{1}, []int64{1, 0}}, []ir.Tensor{tensorOf(ir.Shape{1, 1, 2}, -5, -6)}, []float64{-inf, -5, -6}},
		{MaxPoolGrad{[]int64{2}, []int64{1}, []int64{1}, []int64{0, 0}}, []ir.Tensor{tensorOf(ir.Shape{1, 1, 4}, 3, 3, 1, 1), tensorOf(ir.Shape{1, 1, 3}, 1, 10, 100)}, []float64{1, 10, 100, 0}},
		{AvgPool{[]int64{2, 3}, []int64{2, 2}, []int64{1, 1}, pads, false}, []ir.Tensor{count(1, 1, 4, 4)}, []float64{3.5, 5, 11.5, 13}},
		{AvgPool{[]int64{2, 3}, []int64{2, 2}, []int64{1, 1}, pads, true}, []ir.Tensor{count(1, 1, 4, 4)}, []float64{7. / 3, 5, 23. / 3, 13}},
		{AvgPool{[]int64{1}, []int64{1}, []int64{1}, []int64{1, 0}, false}, []ir.Tensor{tensorOf(ir.Shape{1, 1, 2}, -5, -6)}, []float64{0, -5, -6}},
		{AvgPoolGrad{[]int64{2}, []int64{1}, []int64{1}, []int64{1, 0}, false, ir.Shape{1, 1, 3}}, []ir.Tensor{tensorOf(ir.Shape{1, 1, 3}, 1, 10, 100)}, []float64{6, 55, 50}},

		{Softmax{Axis: 0}, []ir.Tensor{tensorOf(ir.Shape{3}, 1000, 1000+math.Ln2, 1000+math.Log(3))}, []float64{1. / 6, 2. / 6, 3. / 6}},
		{Softmax{Axis: 0}, []ir.Tensor{tensorOf(ir.Shape{2, 2}, 0, 5, math.Ln2, 5)}, []float64{1. / 3, 0.5, 2. / 3, 0.5}},
		{Softmax{Axis: 0}, []ir.Tensor{tensorOf(ir.Shape{2}, 0, -inf)}, []float64{1, 0}},
		{Softmax{Axis: 0}, []ir.Tensor{tensorOf(ir.Shape{2}, -inf, -inf)}, []float64{nan, nan}},
		{LogSoftmax{Axis: 0}, []ir.Tensor{tensorOf(ir.Shape{3}, -1000, math.Ln2-1000, -inf)}, []float64{-math.Log(3), math.Log(2. / 3), -inf}},

		{LayerNorm{Axis: 1, Eps: 0.5}, []ir.Tensor{tensorOf(ir.Shape{2, 3}, 1, 2, 4, 0, 0, 3), count(3), tensorOf(ir.Shape{3}, 0.5, 0, -1)},
			[]float64{-0.4299811, -0.4649905, 2.4874293, -0.1324555, -1.2649111, 2.7947332}},
		{RMSNorm{Axis: 1, Eps: 1}, []ir.Tensor{tensorOf(ir.Shape{2, 2}, 1, 2.23606797749979, 0, 0), count(2)}, []float64{0.5, 2.23606797749979, 0, 0}},
		{BatchNorm{Eps: 0.5}, []ir.Tensor{tensorOf(ir.Shape{3, 2}, 1, 2, 3, 6, 5, 1), count(2), tensorOf(ir.Shape{2}, 0.5, -1)},
			[]float64{-0.6239029, -1.8798827, 0.5, 1.639648, 1.6239029, -2.7597654, 3, 3, 8. / 3, 14. / 3}},
		{BatchNormInference{Eps: 0}, []ir.Tensor{tensorOf(ir.Shape{1, 2, 2}, 1, 2, 3, 4), count(2), tensorOf(ir.Shape{2}, 10, 20), tensorOf(ir.Shape{2}, 1, 3), tensorOf(ir.Shape{2}, 4, 1)}, []float64{10, 10.5, 20, 22}},
		{MovingAverage{0.75}, []ir.Tensor{count(2), tensorOf(ir.Shape{2}, 5, 6)}, []float64{2, 3}},

		{mean, []ir.Tensor{logits, labels(2, 0, 1)}, []float64{0.8579452}},
		{SoftmaxCrossEntropy{Axis: 1, Reduction: "sum"}, []ir.Tensor{logits, labels(2, 0, 1)}, []float64{2.5738356}},
		{ignore, []ir.Tensor{logits, labels(2, -1, 1)}, []float64{0.5831148}},
		{ignore, []ir.Tensor{logits, labels(-1, -1, -1)}, []float64{nan}},
		{SoftmaxCrossEntropy{Axis: 1, Reduction: "sum", HasIgnore: true, IgnoreIndex: -1}, []ir.Tensor{logits, labels(-1, -1, -1)}, []float64{0}},
		{SoftmaxCrossEntropyGrad{Axis: 1, Reduction: "mean", HasIgnore: true, IgnoreIndex: -1}, []ir.Tensor{tensorOf(ir.Shape{1, 2}, 5, 6), labels(-1), tensorOf(ir.Shape{}, 1)}, []float64{0, 0}},
		{smooth, []ir.Tensor{tensorOf(ir.Shape{2}, 0, math.Log(3)), sampleInts(ir.I64, ir.Shape{}, 1)}, []float64{0.75*math.Log(4./3) + 0.25*math.Log(4)}},
		{SoftmaxCrossEntropyGrad{Axis: 1, Reduction: "mean"}, []ir.Tensor{tensorOf(ir.Shape{2, 2}, 0, math.Log(3), 7, 7), labels(1, 0), tensorOf(ir.Shape{}, 2)}, []float64{0.25, -0.25, -0.5, 0.5}},

		{SumSquares{}, []ir.Tensor{count(2, 2)}, []float64{30}},
		{SwapIn{}, []ir.Tensor{inSpace(count(2), ir.Pinned)}, []float64{1, 2}},
	} {
		t.Run(fmt.Sprintf("%T", c.op), func(t *testing.T) {
			var got []float64
			for _, y := range eval(t, c.op, c.in) {
				got = append(got, y.F...)
			}
			if len(got) != len(c.want) {
				t.Fatalf("%+v gives %v, want %v", c.op, got, c.want)
			}
			for i, w := range c.want {
				if g := got[i]; g != w && !(math.IsNaN(g) && math.IsNaN(w)) && !(math.Abs(g-w) < 2e-7) {
					t.Fatalf("%+v gives %v, want %v", c.op, got, c.want)
				}
			}
		})
	}
}

// eval infers and evaluates.
func eval(t *testing.T, o ir.Op, in []ir.Tensor) []ir.Tensor {
	t.Helper()
	var types []ir.Type
	for _, x := range in {
		types = append(types, x.Type)
	}
	outs, err := o.Infer(types)
	if err != nil {
		t.Fatalf("%+v: %v", o, err)
	}
	var out []ir.Tensor
	for _, o := range outs {
		out = append(out, ir.NewTensor(o))
	}
	o.(ir.Evaluator).Eval(in, out)
	return out
}

// Three steps from p = 1 with gradients 0.5, -0.25, 1 at rate 0.125, against the formulas of PyTorch's documentation computed apart.
func TestOptimizers(t *testing.T) {
	for _, c := range []struct {
		op    ir.Op
		wantP [3]float64
		wantS []float64 // state after the third step
	}{
		{SGD{}, [3]float64{0.9375, 0.96875, 0.84375}, nil},
		{SGD{WeightDecay: 0.5}, [3]float64{0.875, 0.8515625, 0.67333984375}, nil},
		{SGD{Momentum: 0.9}, [3]float64{0.9375, 0.9125, 0.765}, []float64{1.18}},
		{SGD{Momentum: 0.9, Dampening: 0.5, WeightDecay: 0.01}, [3]float64{0.93625, 0.89391484375, 0.7927545063476562}, []float64{0.8092826992187501}},
		{SGD{Momentum: 0.9, Nesterov: true, WeightDecay: 0.01}, [3]float64{0.878875, 0.8845251718749999, 0.6228733136542968}, []float64{1.2048551267187502}},
		{Adam{Beta1: 0.9, Beta2: 0.999, Eps: 1e-8}, [3]float64{0.8750000025, 0.841707873384808, 0.7594439245963623}, []float64{0.118, 0.00131193775}},
		{Adam{Beta1: 0.9, Beta2: 0.999, Eps: 1e-8, WeightDecay: 0.05}, [3]float64{0.8750000022727272, 0.8292552670309041, 0.7423286997538356}, []float64{0.13013377634538176, 0.00142903651333851}},
		{Adam{Beta1: 0.9, Beta2: 0.95, Eps: 1e-6, WeightDecay: 0.1, Decoupled: true}, [3]float64{0.8625002499995, 0.8181729013901252, 0.7268527442604348}, []float64{0.118, 0.06425}},
	} {
		p, state := tensorOf(ir.Shape{}, 1), make([]ir.Tensor, len(c.wantS))
		for i := range state {
			state[i] = tensorOf(ir.Shape{}, 0)
		}
		step := func(i int, g, ok float64) []ir.Tensor {
			in := append([]ir.Tensor{p, tensorOf(ir.Shape{}, g)}, state...)
			return eval(t, c.op, append(in, sampleScalar(ir.F32, 0.125), sampleScalar(ir.I64, float64(i)), sampleScalar(ir.Bool, ok)))
		}
		for i, g := range []float64{0.5, -0.25, 1} {
			for k, y := range step(i, math.NaN(), 0) { // a fallen flag changes nothing, whatever the gradient
				if old := append([]ir.Tensor{p}, state...)[k]; y.F[0] != old.F[0] {
					t.Errorf("%+v: output %d is %v where the flag has fallen, want %v", c.op, k, y.F[0], old.F[0])
				}
			}
			out := step(i, g, 1)
			p, state = out[0], out[1:]
			if math.Abs(p.F[0]-c.wantP[i]) > 1e-14 {
				t.Errorf("%+v: p is %v after step %d, want %v", c.op, p.F[0], i, c.wantP[i])
			}
		}
		for k, w := range c.wantS {
			if math.Abs(state[k].F[0]-w) > 1e-14 {
				t.Errorf("%+v: state %d is %v, want %v", c.op, k, state[k].F[0], w)
			}
		}
	}
}

func TestBadLabels(t *testing.T) {
	logits := sampleFloats(1, ir.F32, 3, 4, 2)
	o := SoftmaxCrossEntropy{Axis: 1, Reduction: "mean", HasIgnore: true, IgnoreIndex: -100}
	for _, c := range []struct {
		labels []int64
		want   string // empty: fine
	}{
		{[]int64{0, 1, 2, 3, 0, 1}, ""},
		{[]int64{0, 1, -100, 3, 0, -100}, ""},
		{[]int64{0, 1, 2, 4, 9, 1}, "sample 1 (target element 3) has label 4, but the logits have 4 classes"},
		{[]int64{0, 1, 2, 3, -1, 1}, "sample 2 (target element 4) has label -1, but the logits have 4 classes"},
	} {
		in := []ir.Tensor{logits, sampleInts(ir.I64, ir.Shape{3, 2}, c.labels...), sampleScalar(ir.F32, 1)}
		grad := SoftmaxCrossEntropyGrad{Axis: 1, Reduction: "mean", HasIgnore: true, IgnoreIndex: -100}
		for _, err := range []error{CheckData(o, in[:2]), CheckData(grad, in)} {
			switch e, ok := errors.AsType[*ir.Error](err); {
			case c.want == "" && err != nil:
				t.Errorf("labels %v: %v", c.labels, err)
			case c.want != "" && (!ok || e.Kind != ir.Failed || !strings.Contains(err.Error(), c.want)):
				t.Errorf("labels %v: got error %v, want %q", c.labels, err, c.want)
			}
		}
	}
}

// The exact figures that plans are made from.
func TestWork(t *testing.T) {
	f := func(shape ...int64) ir.Type { return ir.T(ir.F32, shape...) }
	conv := Conv{[]int64{2, 2}, []int64{1, 1}, []int64{1, 1, 1, 1}, 2}
	for _, c := range []struct {
		op   ir.Op
		in   []ir.Type
		want ir.Work
	}{
		{MatMul{TransB: true}, []ir.Type{f(2, 3, 4), f(5, 4)}, ir.Work{FLOPs: 2 * 2 * 3 * 5 * 4, ReadBytes: 4 * (24 + 20), WrittenBytes: 4 * 30}},
		{conv, []ir.Type{f(2, 4, 5, 5), f(6, 2, 3, 3)}, ir.Work{FLOPs: 2 * (2 * 6 * 3 * 3) * (2 * 9), ReadBytes: 4 * (200 + 108), WrittenBytes: 4 * 108}},
		{conv.gradInput(ir.Shape{2, 4, 5, 5}), []ir.Type{f(6, 2, 3, 3), f(2, 6, 3, 3)}, ir.Work{FLOPs: 2 * (2 * 6 * 3 * 3) * (2 * 9), ReadBytes: 4 * (108 + 108), WrittenBytes: 4 * 200}},
		{conv.gradWeight(ir.Shape{6, 2, 3, 3}), []ir.Type{f(2, 4, 5, 5), f(2, 6, 3, 3)}, ir.Work{FLOPs: 2 * (2 * 6 * 3 * 3) * (2 * 9), ReadBytes: 4 * (200 + 108), WrittenBytes: 4 * 108}},
		{LayerNormGrad{Axis: 1}, []ir.Type{f(37, 3), f(3), f(37, 3)}, ir.Work{FLOPs: 14 * 111, ReadBytes: 4 * (111 + 3 + 111), WrittenBytes: 4 * (111 + 3 + 3), ScratchBytes: 13 * 2 * 3 * 8, PartialBytes: 37 * 16}},
		{RMSNormGrad{Axis: 1}, []ir.Type{f(2, 3), f(3), f(2, 3)}, ir.Work{FLOPs: 12 * 6, ReadBytes: 4 * 15, WrittenBytes: 4 * 9, ScratchBytes: 2 * 3 * 8, PartialBytes: 2 * 16}},
		{SwapWait{}, []ir.Type{f(3), {DType: ir.F32, Shape: ir.Shape{3}, Space: ir.Pinned}}, ir.Work{}},
	} {
		out, err := c.op.Infer(c.in)
		if err != nil {
			t.Fatal(err)
		}
		if got := ir.WorkOf(c.op, c.in, out); got != c.want {
			t.Errorf("%+v costs %+v, want %+v", c.op, got, c.want)
		}
	}
	for rows := range int64(100) {
		n, each := NormBlocks(rows), int64(0)
		if rows > 0 {
			each = NormBlockRows(rows)
		}
		if n*each < rows || rows > 0 && (n-1)*each >= rows {
			t.Errorf("%d rows in %d blocks of %d", rows, n, each)
		}
	}
}
