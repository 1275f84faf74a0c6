package e2e

import (
	"context"
	"testing"

	"aitk/ir"
	"aitk/ir/plan"
	"aitk/passes"
	"aitk/runtime"
	"aitk/runtime/cpu"
)

// allocCounter counts the arenas asked for.
type allocCounter struct {
	runtime.Device
	arenas int
}

func (d *allocCounter) Alloc(space ir.Space, bytes int64) (runtime.Arena, error) {
	d.arenas++
	return d.Device.Alloc(space, bytes)
}

// A step allocates nothing, neither Go memory nor arenas, whether it recomputes, swaps or does both.
func TestStepsAllocateNothing(t *testing.T) {
	t.Run("mlp_digits", func(t *testing.T) { allocatesNothing(t, goldens(t)[1]) })
	t.Run("accumulate", func(t *testing.T) { allocatesNothing(t, goldens(t)[3]) })
	t.Run("cnn_digits", func(t *testing.T) { allocatesNothing(t, cnnDigits()) })
	t.Run("gpt_mini", func(t *testing.T) {
		allocatesNothing(t, run{dir: small(t, "gpt_mini"), file: "model.onnx", golden: "golden.json"})
	})
}

func allocatesNothing(t *testing.T, r run) {
	r.plain = true
	x := open(t, r)
	for _, m := range modes() {
		o := passes.MemoryOptions{HostBudgetBytes: -1, Recompute: m.recompute, Swap: m.swap}
		least := x.minimum(t, o).MinimumBytes
		unlimited := x.compile(t, passes.MemoryOptions{BudgetBytes: -1, HostBudgetBytes: -1}).Arena(ir.Device).Bytes
		o.BudgetBytes = least + (unlimited-least)/4
		p := x.compile(t, o)
		dev := &allocCounter{Device: cpu.Open(cpu.Options{})}
		exe, err := runtime.Load(p, dev, runtime.Options{Storage: x.memory(p)})
		check(t, err)
		ctx := context.Background()
		check(t, exe.Run(ctx, "init"))
		programs := []string{"step"}
		if update, _ := p.Program("update"); update != nil {
			programs = append(programs, "update")
			x.feed(t, exe, "update", update.Inputs, 0, 1)
		}
		step, _ := p.Program("step")
		raw := map[string][]byte{}
		for _, in := range step.Inputs {
			raw[in.Name] = make([]byte, in.Ref.Type.Bytes())
			x.content(t, in.Name, raw[in.Name], 0, 1)
		}
		loss := make([]byte, 4)
		arenas := dev.arenas
		var failed error
		n := testing.AllocsPerRun(10, func() {
			for _, in := range step.Inputs {
				if err := exe.SetInput("step", in.Name, raw[in.Name]); err != nil {
					failed = err
				}
			}
			for _, name := range programs {
				if err := exe.Run(ctx, name); err != nil {
					failed = err
				}
			}
			if err := exe.Result("step", "loss", loss); err != nil {
				failed = err
			}
		})
		check(t, failed)
		if n != 0 || dev.arenas != arenas {
			t.Errorf("%s: %v allocations a step, %d arenas", m.name, n, dev.arenas-arenas)
		}
		t.Logf("%s: recomputed %d nodes, moved %d bytes", m.name, p.Report.RecomputedNodes, exe.MovedBytes(plan.CopySwapOut)+exe.MovedBytes(plan.CopySwapIn))
		check(t, exe.Close())
	}
}
