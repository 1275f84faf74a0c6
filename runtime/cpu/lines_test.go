package cpu

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"aitk/ir"
	"aitk/ir/op"
	"aitk/ir/plan"
	"aitk/runtime"
)

// lineOps are the ops whose kernels work along lines, over channels, or element by element with a flag: each is tried on its own samples and
// on largeCases.
func lineOps() []ir.Op {
	return []ir.Op{
		op.Softmax{}, op.SoftmaxGrad{}, op.LogSoftmax{}, op.LogSoftmaxGrad{}, op.LayerNorm{}, op.LayerNormGrad{}, op.RMSNorm{}, op.RMSNormGrad{},
		op.BatchNorm{}, op.BatchNormGrad{}, op.BatchNormInference{}, op.BatchNormInferenceGrad{}, op.MovingAverage{},
		op.SoftmaxCrossEntropy{}, op.SoftmaxCrossEntropyGrad{}, op.Dropout{}, op.SGD{}, op.Adam{}, op.SumSquares{}, op.AllFinite{},
	}
}

// numbers is a tensor of numbers in [0.5, 1.5): good as weights, variances and second moments alike.
func numbers(seed uint64, d ir.DType, shape ...int64) ir.Tensor {
	t := ir.NewTensor(ir.T(d, shape...))
	key := op.StepKey(int64(seed), 0, 0)
	for i := range t.F {
		t.F[i] = 0.5 + float64(op.StreamBits(key, 0, uint64(i/4))[i%4])/(1<<32)
	}
	for i := range t.I {
		t.I[i] = int64(op.StreamBits(key, 0, uint64(i/4))[i%4] % 3)
	}
	t.Round()
	return t
}

// largeCases have lines longer than a worker holds, more rows than blocks, more than one tile, and tiles that are not full.
func largeCases() []ir.Sample {
	const long = lineChunk + 77
	f := func(seed uint64, shape ...int64) ir.Tensor { return numbers(seed, ir.F32, shape...) }
	scalar := func(d ir.DType, x float64) ir.Tensor {
		t := ir.NewTensor(ir.T(d))
		if d.IsFloat() {
			t.F[0] = x
		} else {
			t.I[0] = int64(x)
		}
		return t
	}
	mean := op.SoftmaxCrossEntropy{Axis: 1, Reduction: "mean", LabelSmoothing: 0.1, HasIgnore: true, IgnoreIndex: 1}
	grad := op.SoftmaxCrossEntropyGrad{Axis: 1, Reduction: "mean", LabelSmoothing: 0.1, HasIgnore: true, IgnoreIndex: 1}
	at := []ir.Tensor{scalar(ir.F32, 0.01), scalar(ir.I64, 3), scalar(ir.Bool, 1)}
	const n = 3*rangeElems + 5
	return []ir.Sample{
		{Op: op.Softmax{Axis: 1}, In: []ir.Tensor{f(1, 3, long)}},
		{Op: op.Softmax{Axis: 1}, In: []ir.Tensor{f(2, 2, long, 2)}},
		{Op: op.Softmax{Axis: 1}, In: []ir.Tensor{f(3, 500, 70)}},
		{Op: op.LogSoftmax{Axis: 1}, In: []ir.Tensor{f(4, 3, long)}},
		{Op: op.LogSoftmax{Axis: 1}, In: []ir.Tensor{f(5, 7, 70, 80)}},
		{Op: op.SoftmaxGrad{Axis: 1}, In: []ir.Tensor{f(6, 3, long), f(7, 3, long)}},
		{Op: op.SoftmaxGrad{Axis: 0}, In: []ir.Tensor{f(6, 70, 300), f(7, 70, 300)}},
		{Op: op.LogSoftmaxGrad{Axis: 1}, In: []ir.Tensor{f(8, 3, long), f(9, 3, long)}},
		{Op: op.LayerNorm{Axis: 1, Eps: 1e-5}, In: []ir.Tensor{f(10, 3, long), f(11, long), f(12, long)}},
		{Op: op.LayerNorm{Axis: 1, Eps: 1e-5}, In: []ir.Tensor{f(13, 333, 77), f(14, 77), f(15, 77)}},
		{Op: op.LayerNormGrad{Axis: 1, Eps: 1e-5}, In: []ir.Tensor{f(16, 20, long), f(17, long), f(18, 20, long)}},
		{Op: op.LayerNormGrad{Axis: 1, Eps: 1e-5}, In: []ir.Tensor{f(19, 333, 77), f(20, 77), f(21, 333, 77)}},
		{Op: op.RMSNorm{Axis: 1, Eps: 1e-5}, In: []ir.Tensor{f(22, 3, long), f(23, long)}},
		{Op: op.RMSNormGrad{Axis: 1, Eps: 1e-5}, In: []ir.Tensor{f(24, 20, long), f(25, long), f(26, 20, long)}},
		{Op: op.RMSNormGrad{Axis: 1, Eps: 1e-5}, In: []ir.Tensor{f(27, 333, 77), f(28, 77), f(29, 333, 77)}},
		{Op: op.BatchNorm{Eps: 1e-5}, In: []ir.Tensor{f(30, 5, 7, 30, 30), f(31, 7), f(32, 7)}},
		{Op: op.BatchNorm{Eps: 1e-5}, In: []ir.Tensor{f(33, 1300, 7), f(34, 7), f(35, 7)}},
		{Op: op.BatchNormGrad{Eps: 1e-5}, In: []ir.Tensor{f(36, 5, 7, 30, 30), f(37, 7), f(38, 7), f(39, 7), f(40, 5, 7, 30, 30)}},
		{Op: op.BatchNormInferenceGrad{Eps: 1e-5}, In: []ir.Tensor{f(41, 1300, 7), f(42, 7), f(43, 7), f(44, 7), f(45, 1300, 7)}},
		{Op: op.BatchNormInference{Eps: 1e-5}, In: []ir.Tensor{f(46, 5, 7, 30, 30), f(47, 7), f(48, 7), f(49, 7), f(50, 7)}},
		{Op: op.MovingAverage{Momentum: 0.9}, In: []ir.Tensor{f(51, n), f(52, n)}},
		{Op: mean, In: []ir.Tensor{f(53, 5, long), numbers(54, ir.I64, 5)}},
		{Op: mean, In: []ir.Tensor{f(55, 333, 40), numbers(56, ir.I32, 333)}},
		{Op: mean, In: []ir.Tensor{f(57, 5, 4, 20, 10), numbers(58, ir.I64, 5, 20, 10)}},
		{Op: grad, In: []ir.Tensor{f(59, 5, long), numbers(60, ir.I64, 5), scalar(ir.F32, 0.5)}},
		{Op: grad, In: []ir.Tensor{f(61, 2, long, 2), numbers(62, ir.I64, 2, 2), scalar(ir.F32, 0.5)}},
		{Op: grad, In: []ir.Tensor{f(63, 900, 40), numbers(64, ir.I32, 900), scalar(ir.F32, 0.5)}},
		{Op: op.Dropout{Ratio: 0.3, StreamID: 9}, In: []ir.Tensor{f(65, n), scalar(ir.I64, 1), scalar(ir.I64, 2), scalar(ir.I64, 3)}},
		{Op: op.SGD{Momentum: 0.9, Nesterov: true, WeightDecay: 0.1}, In: append([]ir.Tensor{f(66, n), f(67, n), f(68, n)}, at...)},
		{Op: op.Adam{Beta1: 0.9, Beta2: 0.99, Eps: 1e-8, WeightDecay: 0.1}, In: append([]ir.Tensor{f(69, n), f(70, n), f(71, n), f(72, n)}, at...)},
		{Op: op.SumSquares{}, In: []ir.Tensor{f(73, 70*rangeElems+3)}},
		{Op: op.AllFinite{}, In: []ir.Tensor{scalar(ir.Bool, 1), f(74, n)}},
	}
}

// samplesOf are the good samples of an op, each with the data that its types promise.
func samplesOf(t *testing.T, o ir.Op) []ir.Sample {
	var all []ir.Sample
	for _, s := range o.(ir.Sampler).Samples() {
		if s.Err == "" && op.CheckData(s.Op, s.In) == nil {
			all = append(all, s)
		}
	}
	if len(all) == 0 {
		t.Fatalf("%s has no good samples", ir.OpName(o))
	}
	return all
}

// placed is an op resolved with its operands, scratch as planned, and at most one output lying over an operand.
type placed struct {
	single
	content []ir.Tensor
}

func place(t testing.TB, dev *Device, s ir.Sample, over *ir.AliasPair) *placed {
	t.Helper()
	var types []ir.Type
	for _, x := range s.In {
		types = append(types, x.Type)
	}
	outs, err := s.Op.Infer(types)
	if err != nil {
		t.Fatal(err)
	}
	p := &placed{content: s.In}
	p.x = &plan.Exec{Op: s.Op, Scratch: plan.NoBuffer}
	total := int64(0)
	stretch := func(bytes int64) runtime.Slice {
		at := runtime.Slice{Offset: total, Bytes: bytes}
		total += (bytes + 63) / 64 * 64
		return at
	}
	for _, u := range types {
		p.x.In = append(p.x.In, plan.Ref{Type: u})
		p.in = append(p.in, stretch(u.Bytes()))
	}
	for i, u := range outs {
		p.x.Out = append(p.x.Out, plan.Ref{Type: u})
		if over != nil && over.Out == i {
			p.out = append(p.out, p.in[over.In])
		} else {
			p.out = append(p.out, stretch(u.Bytes()))
		}
	}
	scratch := stretch(ir.WorkOf(s.Op, types, outs).ScratchBytes)
	arena, err := dev.Alloc(ir.Device, max(total, 64))
	if err != nil {
		t.Fatal(err)
	}
	for i := range p.in {
		p.in[i].Arena = arena
	}
	for i := range p.out {
		p.out[i].Arena = arena
	}
	scratch.Arena = arena
	if p.kernel, err = dev.Kernel(p.x, p.in, p.out, scratch); err != nil {
		t.Fatal(err)
	}
	host := arena.Host()
	for i := range host {
		host[i] = 0xff // poison: outputs and scratch hold NaN
	}
	p.fill(t)
	return p
}

// fill writes the operands.
func (p *placed) fill(t testing.TB) {
	for i, x := range p.content {
		if err := p.in[i].Arena.Upload(p.in[i].Offset, x.Encode()); err != nil {
			t.Fatal(err)
		}
	}
}

// results are the bytes of all outputs.
func (p *placed) results() []byte {
	var all []byte
	for _, at := range p.out {
		all = append(all, at.Arena.Host()[at.Offset:at.Offset+at.Bytes]...)
	}
	return all
}

// TestLineKernels: each kernel agrees with Eval; one worker or three, beside or over an operand, first run or second, the bits are the same.
func TestLineKernels(t *testing.T) {
	cases := largeCases()
	for _, o := range lineOps() {
		cases = append(cases, samplesOf(t, o)...)
	}
	devs := []*Device{openTest(t, Options{Threads: 1, HeapArenas: true}), openTest(t, Options{Threads: 3, HeapArenas: true})}
	for i, c := range cases {
		t.Run(fmt.Sprintf("%s_%d", ir.OpName(c.Op), i), func(t *testing.T) {
			first := place(t, devs[0], c, nil)
			if err := first.kernel.Run(); err != nil {
				t.Fatal(err)
			}
			var want []ir.Tensor
			for k := range first.x.Out {
				want = append(want, ir.NewTensor(first.x.Out[k].Type))
			}
			c.Op.(ir.Evaluator).Eval(c.In, want)
			for k := range want {
				want[k].Round()
				compare(t, k, first.result(t, k), want[k])
			}
			variants := []*ir.AliasPair{nil}
			for _, a := range ir.AliasesOf(c.Op) {
				variants = append(variants, &a)
			}
			for _, over := range variants {
				p := place(t, devs[1], c, over)
				for run := range 2 {
					p.fill(t)
					if err := p.kernel.Run(); err != nil {
						t.Fatal(err)
					}
					if !bytes.Equal(p.results(), first.results()) {
						t.Fatalf("run %d with output placed %v: other bits than alone on one worker", run, over)
					}
				}
			}
		})
	}
}

// compare allows rounding: sums in another order, and one step of the narrow dtypes.
func compare(t *testing.T, out int, got, want ir.Tensor) {
	t.Helper()
	tolerance := map[ir.DType]float64{ir.F64: 1e-12, ir.F32: 3e-7, ir.F16: 1.0 / 1024, ir.BF16: 1.0 / 128}[want.Type.DType]
	for i, w := range want.F {
		g := got.F[i]
		if g != w && !(math.IsNaN(g) && math.IsNaN(w)) && !(math.Abs(g-w) <= tolerance*(math.Abs(w)+1e-3)) {
			t.Fatalf("output %d, element %d is %v, want %v", out, i, g, w)
		}
	}
	for i, w := range want.I {
		if got.I[i] != w {
			t.Fatalf("output %d, element %d is %v, want %v", out, i, got.I[i], w)
		}
	}
}

// TestLineKernelsAllocate: a run allocates nothing.
func TestLineKernelsAllocate(t *testing.T) {
	dev := openTest(t, Options{Threads: 1})
	for _, o := range lineOps() {
		p := place(t, dev, samplesOf(t, o)[0], nil)
		if n := testing.AllocsPerRun(5, func() {
			if err := p.kernel.Run(); err != nil {
				t.Fatal(err)
			}
		}); n != 0 {
			t.Errorf("%s: %v allocations a run", ir.OpName(o), n)
		}
	}
}

func TestBadLabels(t *testing.T) {
	dev := openTest(t, Options{Threads: 2})
	for _, label := range []int64{4, -1, math.MaxInt64, math.MinInt64} {
		target := numbers(1, ir.I64, 40)
		target.I[7], target.I[31] = label, label
		logits, dloss := numbers(2, ir.F32, 40, 4), numbers(3, ir.F32)
		for _, s := range []ir.Sample{
			{Op: op.SoftmaxCrossEntropy{Axis: 1, Reduction: "mean"}, In: []ir.Tensor{logits, target}},
			{Op: op.SoftmaxCrossEntropyGrad{Axis: 1, Reduction: "sum"}, In: []ir.Tensor{logits, target, dloss}},
		} {
			want := fmt.Sprintf("sample 7 has label %d, but the logits have 4 classes", label)
			err := place(t, dev, s, nil).kernel.Run()
			if e, ok := errors.AsType[*ir.Error](err); !ok || e.Kind != ir.Failed || !strings.Contains(e.Error(), want) {
				t.Errorf("%s: got error %v, want %q", ir.OpName(s.Op), err, want)
			}
		}
	}
}

// TestScratchMissing: a plan that gives too little scratch is refused when the kernel is made.
func TestScratchMissing(t *testing.T) {
	dev := openTest(t, Options{Threads: 1})
	s := place(t, dev, ir.Sample{Op: op.LayerNormGrad{Axis: 1}, In: []ir.Tensor{numbers(1, ir.F32, 3, 4), numbers(2, ir.F32, 4), numbers(3, ir.F32, 3, 4)}}, nil)
	if _, err := dev.Kernel(s.x, s.in, s.out, runtime.Slice{}); err == nil || !strings.Contains(err.Error(), "LayerNormGrad needs 192 bytes of scratch, the plan gives 0") {
		t.Errorf("got error %v", err)
	}
}

func BenchmarkLines(b *testing.B) {
	dev := openTest(b, Options{Threads: 1})
	f := func(seed uint64, shape ...int64) ir.Tensor { return numbers(seed, ir.F32, shape...) }
	const n = 1 << 20
	at := []ir.Tensor{numbers(1, ir.F32), numbers(1, ir.I64), {Type: ir.T(ir.Bool), I: []int64{1}}}
	for _, s := range []ir.Sample{
		{Op: op.Softmax{Axis: 1}, In: []ir.Tensor{f(1, n/64, 64)}},
		{Op: op.SoftmaxGrad{Axis: 1}, In: []ir.Tensor{f(1, n/64, 64), f(2, n/64, 64)}},
		{Op: op.LayerNorm{Axis: 1, Eps: 1e-5}, In: []ir.Tensor{f(1, n/256, 256), f(2, 256), f(3, 256)}},
		{Op: op.LayerNormGrad{Axis: 1, Eps: 1e-5}, In: []ir.Tensor{f(1, n/256, 256), f(2, 256), f(3, n/256, 256)}},
		{Op: op.BatchNorm{Eps: 1e-5}, In: []ir.Tensor{f(1, 16, 64, 32, 32), f(2, 64), f(3, 64)}},
		{Op: op.BatchNormGrad{Eps: 1e-5}, In: []ir.Tensor{f(1, 16, 64, 32, 32), f(2, 64), f(3, 64), f(4, 64), f(5, 16, 64, 32, 32)}},
		{Op: op.SoftmaxCrossEntropy{Axis: 1, Reduction: "mean"}, In: []ir.Tensor{f(1, n/64, 64), numbers(2, ir.I64, n/64)}},
		{Op: op.Dropout{Ratio: 0.1, StreamID: 1}, In: []ir.Tensor{f(1, n), at[1], at[1], at[1]}},
		{Op: op.SGD{Momentum: 0.9}, In: append([]ir.Tensor{f(1, n), f(2, n), f(3, n)}, at...)},
		{Op: op.Adam{Beta1: 0.9, Beta2: 0.99, Eps: 1e-8, WeightDecay: 0.1, Decoupled: true}, In: append([]ir.Tensor{f(1, n), f(2, n), f(3, n), f(4, n)}, at...)},
		{Op: op.SumSquares{}, In: []ir.Tensor{f(1, n)}},
		{Op: op.AllFinite{}, In: []ir.Tensor{at[2], f(1, n)}},
	} {
		b.Run(ir.OpName(s.Op), func(b *testing.B) {
			p := place(b, dev, s, nil)
			for b.Loop() {
				if err := p.kernel.Run(); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/elem")
		})
	}
}
