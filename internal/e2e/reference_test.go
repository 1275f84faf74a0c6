package e2e

import (
	"math"
	"testing"

	"aitk/ir"
	"aitk/runtime/ref"
)

// The reference interpreter, in float64, finds PyTorch's float64 losses of all steps to 1e-9. Literals that the exporter rounded to float32 (gpt_mini's
// and llama_mini's scales) cost less than that.
func TestReference(t *testing.T) {
	for _, r := range goldens(t) {
		t.Run(r.String(), func(t *testing.T) { reference(t, r) })
	}
	t.Run("collection", func(t *testing.T) {
		if testing.Short() {
			t.Skip("takes 20 seconds")
		}
		for _, r := range firstRoad(t) {
			t.Run(r.String(), func(t *testing.T) {
				t.Parallel() // the interpreter has one thread
				reference(t, r)
			})
		}
	})
}

func reference(t *testing.T, r run) {
	r.plain = true
	x := open(t, r)
	step, update := x.ctx.Program("step"), x.ctx.Program("update")
	acc := max(int(x.g.Accumulate), 1)
	machine := ref.New(x.tensors(t))
	worst := 0.0
	for i, want := range x.g.LossesF64 {
		in := x.inputs(t, i, acc)
		in["$lr"] = ir.Tensor{Type: ir.T(ir.F32), F: []float64{x.rate(i / acc)}} // not rounded
		out, err := machine.Run(step, in)
		check(t, err)
		if update != nil && (i+1)%acc == 0 {
			_, err := machine.Run(update, in)
			check(t, err)
		}
		got := float64(acc) * out["loss"].F[0]
		d := math.Abs(got - want)
		worst = max(worst, d)
		if !(d <= 1e-9) {
			t.Errorf("step %d: loss %.17g, golden %.17g, %.3g apart", i, got, want, d)
		}
	}
	t.Logf("losses: within %.3g of float64, float32's deviation is %.3g", worst, x.g.Deviation.Losses.MaxAbs)
}

// firstRoad lists the goldens whose graphs hold no float32 tables of the exporter's, which would stand between the interpreter and 1e-9.
func firstRoad(t testing.TB) []run {
	at := func(model, file, golden, batchNorm string) run {
		return run{dir: small(t, model), file: file, golden: golden, batchNorm: batchNorm}
	}
	return []run{
		at("mlp_mnist", "model.onnx", "golden.json", ""),
		at("mlp_mnist", "model.onnx", "golden_adamw.json", ""),
		at("cnn_mnist", "model.onnx", "golden.json", ""),
		at("gpt_mini", "model.onnx", "golden.json", ""),
		at("gpt_mini", "model.onnx", "golden_decay_groups.json", ""),
		at("llama_mini", "model.onnx", "golden.json", ""),
		at("bert_mini", "model.onnx", "golden.json", ""),
		at("vit_mini", "model.onnx", "golden.json", ""),
		at("resnet18_mini", "model.onnx", "golden_frozen_bn.json", "frozen"),
		at("resnet18_mini", "model_ts.onnx", "golden.json", "train"),
	}
}
