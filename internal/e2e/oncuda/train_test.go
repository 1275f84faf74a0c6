//go:build cuda && linux

package oncuda

import (
	"math"
	"testing"

	"aitk/ir"
	"aitk/passes"
	"aitk/runtime/cuda"
	"aitk/runtime/ref"
)

// trainings are the golden trainings of every kind of op that models have.
func trainings() []training {
	var list []training
	for _, model := range []string{"mlp_digits", "cnn_mnist", "gpt_mini", "llama_mini", "resnet18_mini", "vit_mini", "bert_mini", "unet_seg"} {
		list = append(list, training{model: model, golden: "golden.json", exact: model != "resnet18_mini"})
	}
	flux := training{model: "flux_mini", golden: "golden_lora.json", exact: true}
	packed := flux
	packed.exact, packed.set = false, []passes.Setting{{Key: "quantize", Value: "*:int8"}}
	return append(list, flux, packed)
}

// TestTraining compares losses and parameters with the interpreter, which computes in float64, and losses with the golden's.
func TestTraining(t *testing.T) {
	for _, r := range trainings() {
		t.Run(r.String(), func(t *testing.T) {
			ctl := fake(t)
			m := open(t, r)
			steps := stepsOf(len(m.g.LossesF64))
			p := m.compile(t, -1)
			got := m.train(t, p, steps, cuda.Options{}, true, ctl)
			g := m.ctx.Program("step")
			params := map[string]ir.Tensor{}
			for _, q := range g.Params {
				x, err := ir.DecodeTensor(q.Type, m.params[q.Name])
				check(t, err)
				params[q.Name] = x
			}
			oracle := ref.New(params)
			for i := range steps {
				inputs := map[string]ir.Tensor{}
				for _, v := range g.Inputs {
					x, err := ir.DecodeTensor(v.Type, m.input(t, v.Name, v.Type, i))
					check(t, err)
					inputs[v.Name] = x
				}
				results, err := oracle.Run(g, inputs)
				check(t, err)
				want, slack := results["loss"].F[0], 3*m.g.Deviation.Losses.MaxAbs // what steps in f32 leave after some of them
				if d := math.Abs(got.losses[i] - want); d > max(slack, 2e-6*math.Abs(want)) {
					t.Errorf("step %d: loss %v, the interpreter says %v", i, got.losses[i], want)
				}
				if want := m.g.LossesF64[i]; r.exact && math.Abs(got.losses[i]-want) > max(slack, 2e-6*math.Abs(want)) {
					t.Errorf("step %d: loss %v, the golden says %v", i, got.losses[i], want)
				}
			}
			for name, want := range oracle.Params() {
				raw, ok := got.final[name]
				if !ok || !want.Type.DType.IsFloat() {
					continue
				}
				x, err := ir.DecodeTensor(want.Type, raw)
				check(t, err)
				compare(t, name, x, want, m.g.Optimizer.LR*float64(steps))
			}
		})
	}
}

// compare holds the deviation of a parameter to its magnitude and, since Adam makes a whole step of the least gradient and of its rounding errors, to a
// hundredth of the steps that were taken.
func compare(t testing.TB, name string, got, want ir.Tensor, steps float64) {
	t.Helper()
	var most, worst float64
	for i, w := range want.F {
		most = max(most, math.Abs(w))
		worst = max(worst, math.Abs(got.F[i]-w))
	}
	if !(worst <= 2e-6*most+steps/100) {
		t.Errorf("%s is off by %.3g where the largest is %.3g", name, worst, most)
	}
}
