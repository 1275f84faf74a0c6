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
		for _, r := range append(outside(t), batchNormTraining(t)) {
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
