package e2e

import (
	"context"
	"testing"

	"aitk/ir"
	"aitk/passes"
	"aitk/passes/cost"
	"aitk/runtime"
	"aitk/runtime/null"
)

// Plans for a card whose memory the host cannot address are sound too (Compile proves them), keep the budget, and run to the end on the device
// that only counts.
func TestPlansForACard(t *testing.T) {
	prof, err := cost.GPU("rtx-4090")
	check(t, err)
	x := open(t, goldens(t)[1])
	for _, m := range modes() {
		for _, percent := range []float64{100, 95} {
			p, err := passes.Compile(x.ctx, passes.MemoryOptions{Profile: prof, BudgetPercent: percent, HostBudgetBytes: -1, Recompute: m.recompute, Swap: m.swap})
			if err != nil {
				t.Logf("%s at %v %%: %v", m.name, percent, err)
				continue
			}
			if a := p.Arena(ir.Device); a.BudgetBytes >= 0 && a.Bytes > a.BudgetBytes {
				t.Errorf("%s at %v %%: arena %d over budget %d", m.name, percent, a.Bytes, a.BudgetBytes)
			}
			exe, err := runtime.Load(p, null.Open(), runtime.Options{Storage: x.memory(p), AnyDevice: true})
			check(t, err)
			for _, program := range []string{"init", "step", "step", "eval", "save"} {
				check(t, exe.Run(context.Background(), program))
			}
			if got, want := exe.HighWaterBytes(ir.Device), p.Arena(ir.Device).Bytes; got != want {
				t.Errorf("%s at %v %%: highest address %d, arena %d", m.name, percent, got, want)
			}
			check(t, exe.Close())
		}
	}
}
