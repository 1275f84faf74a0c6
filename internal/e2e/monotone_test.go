package e2e

import (
	"testing"

	"aitk/passes"
)

// gpt_mini at batch 64: 60 % of the unlimited arena costs at most 12 % of predicted time, and over 41 budgets, planned apart, more budget never costs
// more than 0.2 % of the step.
func TestMonotoneLaw(t *testing.T) {
	x := open(t, run{dir: small(t, "gpt_mini"), file: "model.onnx", golden: "golden.json", dims: map[string]int64{"batch": 64}, plain: true})
	const points = 41
	slower := 0.0
	best := int64(0) // fastest step among smaller budgets
	for i := range points {
		percent := 60 + 40*float64(i)/(points-1)
		p := x.compile(t, passes.MemoryOptions{BudgetPercent: percent, HostBudgetBytes: -1, Recompute: true})
		r := &p.Report
		if i%4 == 0 {
			t.Logf("%.0f %%: overhead %.3f %%, bound %.3f %%", percent, 100*r.Overhead(), float64(r.OverheadBoundPPM)/1e4)
		}
		if i == 0 && r.Overhead() > 0.12 {
			t.Errorf("at 60 %% the predicted overhead is %.2f %%", 100*r.Overhead())
		}
		if best > 0 {
			slower = max(slower, float64(r.StepPicos)/float64(best)-1)
		}
		if best == 0 || r.StepPicos < best {
			best = r.StepPicos
		}
	}
	t.Logf("a larger budget was at most %.3f %% slower", 100*slower)
	if slower > 0.002 {
		t.Errorf("a larger budget is %.3f %% slower than a smaller one", 100*slower)
	}
}
