package e2e

import (
	"fmt"
	"testing"

	"aitk/ir/plan"
	"aitk/passes"
)

// gpt_mini at batch 64: 60 % of the unlimited arena costs at most 12 % of predicted time, and over 41 budgets, planned apart, more budget never costs
// more than 0.2 % of the step.
func TestMonotoneLaw(t *testing.T) {
	const points, groups = 41, 4
	r := run{dir: small(t, "gpt_mini"), file: "model.onnx", golden: "golden.json", dims: map[string]int64{"batch": 64}, plain: true}
	percent := func(i int) float64 { return 60 + 40*float64(i)/(points-1) }
	var reports [points]plan.Report
	t.Run("plans", func(t *testing.T) {
		for k := range groups {
			t.Run(fmt.Sprint(k), func(t *testing.T) {
				t.Parallel() // the planner has one thread
				x := open(t, r)
				for i := k; i < points; i += groups {
					reports[i] = x.compile(t, passes.MemoryOptions{BudgetPercent: percent(i), HostBudgetBytes: -1, Recompute: true}).Report
				}
			})
		}
	})
	if t.Failed() {
		return
	}
	if o := reports[0].Overhead(); o > 0.12 {
		t.Errorf("at 60 %% the predicted overhead is %.2f %%", 100*o)
	}
	slower := 0.0
	best := reports[0].StepPicos // fastest step among smaller budgets
	for i := range reports {
		r := &reports[i]
		if i%4 == 0 {
			t.Logf("%.0f %%: overhead %.3f %%, bound %.3f %%", percent(i), 100*r.Overhead(), float64(r.OverheadBoundPPM)/1e4)
		}
		slower = max(slower, float64(r.StepPicos)/float64(best)-1)
		best = min(best, r.StepPicos)
	}
	t.Logf("a larger budget was at most %.3f %% slower", 100*slower)
	if slower > 0.002 {
		t.Errorf("a larger budget is %.3f %% slower than a smaller one", 100*slower)
	}
}
