package networks

import (
	"fmt"
	"slices"
	"testing"

	"aitk/passes/memory"
)

// TestSweep: over budgets from the smallest peak to that of the plan without recompute and swap, no plan takes longer than one with a smaller budget, and the
// last recomputes and copies nothing. With the tag long these are 41 budgets of eight networks, without copies and with, else a few of two.
func TestSweep(t *testing.T) {
	names, points, moves := []string{"resnet18", "gpt2"}, 9, int64(2000)
	if thorough {
		names, points, moves = []string{"resnet18", "resnet50", "gpt2", "gpt2-xl", "llama-7b", "moe", "unet", "flux"}, 41, 0
	}
	for _, n := range All() {
		if !slices.Contains(names, n.Name) {
			continue
		}
		for _, rate := range []int64{0, 25} {
			t.Run(fmt.Sprintf("%s %d GB per s", n.Name, rate), func(t *testing.T) {
				t.Parallel()
				p := n.Make(Options{State: Excluded})
				if p.Recompute = true; rate > 0 {
					p.Lanes = Lanes(rate, 800, -1)
				}
				sweep(t, p, points, memory.Options{Moves: moves})
			})
		}
	}
}

func sweep(t *testing.T, p *memory.Problem, points int, o memory.Options) {
	least, err := memory.Minimum(p)
	if err != nil {
		t.Fatal(err)
	}
	all, err := memory.Simulate(p, &memory.Solution{})
	if err != nil {
		t.Fatal(err)
	}
	budgets := make([]int64, points)
	for k := range budgets {
		budgets[k] = least.PeakBytes + (all.PeakBytes-least.PeakBytes)/int64(points-1)*int64(k)
	}
	budgets[points-1] = all.PeakBytes
	list, err := memory.Sweep(p, budgets, o)
	if err != nil {
		t.Fatal(err)
	}
	for k, x := range list {
		if x.Solution == nil {
			t.Fatalf("no plan for %d bytes, though the smallest peak is %d: %v", x.BudgetBytes, least.PeakBytes, x.Infeasible)
		}
		r, err := memory.Simulate(p, x.Solution)
		switch {
		case err != nil:
			t.Fatal(err)
		case r.PeakBytes > budgets[k] || r.StepPicos != x.Solution.StepPicos:
			t.Errorf("budget %d: peak %d, %d ps, said to be %d ps", budgets[k], r.PeakBytes, r.StepPicos, x.Solution.StepPicos)
		case k > 0 && r.StepPicos > list[k-1].Solution.StepPicos:
			t.Errorf("budget %d takes %d ps, budget %d takes %d", budgets[k], r.StepPicos, budgets[k-1], list[k-1].Solution.StepPicos)
		case x.Solution.Bound.OverheadPicos > r.StepPicos-all.StepPicos:
			t.Errorf("budget %d: overhead %d ps, bound %d", budgets[k], r.StepPicos-all.StepPicos, x.Solution.Bound.OverheadPicos)
		}
	}
	if s := list[points-1].Solution; len(s.Recomputes)+len(s.Swaps) > 0 {
		t.Errorf("the whole peak as budget gives %d recomputes and %d swaps", len(s.Recomputes), len(s.Swaps))
	}
	t.Logf("%d ops, overhead from %.2f %% at %.1f %% of the peak", len(p.Ops), 100*float64(list[0].Solution.StepPicos)/float64(all.StepPicos)-100, 100*float64(least.PeakBytes)/float64(all.PeakBytes))
}
