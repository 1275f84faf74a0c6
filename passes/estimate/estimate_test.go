package estimate_test

import (
	"bytes"
	"strings"
	"testing"

	"aitk/ir"
	"aitk/ir/op"
	"aitk/ir/plan"
	"aitk/passes"
	"aitk/passes/estimate"
)

const text = `graph @net
%0 = input "x" : f32[8,64]
%1 = param "fc1.weight" trainable weight : f32[48,64] init=absent
%2 = param "fc1.bias" trainable weight : f32[48] init=absent
%3 = param "fc2.weight" trainable weight : bf16[32,48] init=absent
%4 = param "table" buffer : f32[8,48] init=absent
%5 = MatMul{transB=true} %0 %1
%6 = Add %5 %2
%7 = Add %6 %4
%8 = Cast{to=bf16} %7
%9 = MatMul{transB=true} %8 %3
result "y" %9`

// Every figure is small enough to be worked out by hand.
func TestReport(t *testing.T) {
	g, err := ir.Parse(text, op.Vocabulary())
	if err != nil {
		t.Fatal(err)
	}
	var r estimate.Report
	if r.Alternatives, err = estimate.Alternatives(g); err != nil {
		t.Fatal(err)
	}
	ctx := &passes.Context{}
	for _, s := range []passes.Setting{{Key: "loss", Value: "mse"}, {Key: "lora", Value: "fc1:rank=2"}, {Key: "quantize", Value: "*:nf4,block=32"}} {
		if err := ctx.Options.Set(s.Key, s.Value); err != nil {
			t.Fatal(err)
		}
	}
	if err := passes.Run(ctx, g, passes.Pipeline(), passes.Order()); err != nil {
		t.Fatal(err)
	}
	r.Count(ctx.Program("step"))
	r.AtBatch(8, ctx)
	// fc1: 48*64/2 codes and 48*2 scales; fc2: 32*48/2 codes and 32*2 scales.
	const packed, bias = 48*64/2 + 48*2*4 + 32*48/2 + 32*2*4, 48 * 4
	if len(r.Weights) != 2 || r.Weights[0] != (estimate.Row{Name: "nf4/32", Tensors: 2, Bytes: packed}) || r.Weights[1] != (estimate.Row{Name: "f32", Tensors: 1, Bytes: bias}) || r.WeightBytes != packed+bias {
		t.Errorf("weights %+v, %d", r.Weights, r.WeightBytes)
	}
	const adapters = (2*64 + 48*2) * 4
	if r.AdapterBytes != adapters || r.GradientBytes != adapters || r.OptimizerBytes != 2*adapters {
		t.Errorf("adapters %d, gradients %d, optimizer %d; want %d", r.AdapterBytes, r.GradientBytes, r.OptimizerBytes, adapters)
	}
	if plain, int8 := r.Alternatives[0], r.Alternatives[1]; plain.Bytes != 48*64*4+bias+32*48*2 || int8.Bytes != 48*64+48*4+bias+32*48+32*4 || int8.Tensors != 2 {
		t.Errorf("alternatives %+v", r.Alternatives)
	}
	if b := r.Batches[0]; b.ActivationBytes <= 0 || b.PeakBytes <= r.WeightBytes+b.ActivationBytes {
		t.Errorf("batches %+v", r.Batches)
	}
	if err := r.Judge(&plan.Report{UnlimitedArenaBytes: 20 << 30, MinimumBudgetBytes: 11 << 30}, false); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := r.Write(&out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"nf4/32", "2,944", "rtx-3060   12.0 GiB           if  recomputed: --budget 11.3 GiB", "rtx-4090   24.0 GiB          yes", "20.0 GiB, smallest by recomputing 11.0 GiB"} {
		if !strings.Contains(strings.Join(strings.Fields(out.String()), " "), strings.Join(strings.Fields(want), " ")) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
}
