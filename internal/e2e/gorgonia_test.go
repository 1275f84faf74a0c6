package e2e

import (
	"math"
	"testing"

	"aitk/ir"
	"aitk/passes"
	"aitk/runtime/cpu"
	"aitk/runtime/gorgonia"
	"aitk/runtime/ref"
)

// Gorgonia, which shares no arithmetic with us, finds the same gradients of an MLP and a CNN on real batches: in float64 those that the reference interpreter
// makes of our backward half, and in float32 those of the CPU device.
func TestGorgoniaAgrees(t *testing.T) {
	for _, r := range []run{goldens(t)[0], cnnDigits()} {
		t.Run(r.String(), func(t *testing.T) {
			x := open(t, r)
			step := x.ctx.Program("step")
			inputs := x.inputs(t, 0, 1)
			params := x.tensors(t)
			// The forward graph holds the loss alone: Gorgonia sees nothing of ours that comes after it.
			theirs, err := gorgonia.Differentiate(x.ctx.Program("eval"), "loss", inputs, params)
			check(t, err)
			ours, _, err := ref.Run(step, inputs, params)
			check(t, err)
			device := x.train(t, x.compile(t, passes.MemoryOptions{BudgetBytes: -1, HostBudgetBytes: -1}), 1, cpu.Options{})

			if d := math.Abs(ours["loss"].F[0] - theirs.Loss); !(d <= 1e-12*math.Abs(theirs.Loss)) {
				t.Errorf("loss %.17g, in Gorgonia %.17g", ours["loss"].F[0], theirs.Loss)
			}
			if d := math.Abs(device.losses[0] - theirs.Loss); !(d <= 1e-6*math.Abs(theirs.Loss)) {
				t.Errorf("the device's loss is %.9g, in Gorgonia %.9g", device.losses[0], theirs.Loss)
			}
			seen, worst64, worst32 := 0, 0.0, 0.0
			for _, p := range step.Params {
				if !p.Trainable {
					continue
				}
				want, ok := theirs.Grads[p.Name]
				if !ok {
					t.Errorf("Gorgonia has no gradient of %s", p.Name)
					continue
				}
				seen++
				wide := relative(ours["grad/"+p.Name].F, want.F)
				narrow := relative(floats(t, p.Type, device.grads[p.Name]), want.F)
				if !(wide <= 1e-12) || !(narrow <= 1e-6) {
					t.Errorf("gradient of %s: ours is off by %.3g (relative L2), the device's by %.3g", p.Name, wide, narrow)
				}
				worst64, worst32 = max(worst64, wide), max(worst32, narrow)
			}
			if seen == 0 || seen != len(theirs.Grads) {
				t.Errorf("compared %d gradients of Gorgonia's %d", seen, len(theirs.Grads))
			}
			t.Logf("%d gradients: ours off by %.2g at most (relative L2), the device's by %.2g", seen, worst64, worst32)
		})
	}
}

// relative is the distance of two vectors in terms of the second.
func relative(got, want []float64) float64 {
	if len(got) != len(want) {
		return math.NaN()
	}
	d, n := 0.0, 0.0
	for i, w := range want {
		d += (got[i] - w) * (got[i] - w)
		n += w * w
	}
	return math.Sqrt(d / n)
}

// inputs are all inputs of microbatch i, the reserved ones among them. acc is the number of microbatches of one step.
func (x *trainer) inputs(t testing.TB, i, acc int) map[string]ir.Tensor {
	all := map[string]ir.Tensor{}
	for _, g := range x.ctx.Programs {
		for _, v := range g.Inputs {
			raw := make([]byte, v.Type.Bytes())
			x.content(t, v.Name, raw, i, acc)
			var err error
			all[v.Name], err = ir.DecodeTensor(v.Type, raw)
			check(t, err)
		}
	}
	return all
}

// tensors are the first contents of all parameters of all programs.
func (x *trainer) tensors(t testing.TB) map[string]ir.Tensor {
	all := map[string]ir.Tensor{}
	for _, g := range x.ctx.Programs {
		for _, p := range g.Params {
			var err error
			switch raw := x.params[p.Name]; {
			case raw != nil:
				all[p.Name], err = ir.DecodeTensor(p.Type, raw)
			case p.Init.Kind == ir.InitZero:
				all[p.Name] = ir.NewTensor(p.Type)
			default:
				t.Fatalf("no content of parameter %q, a %v", p.Name, p.Role)
			}
			check(t, err)
		}
	}
	return all
}
