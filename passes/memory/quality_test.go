package memory

import (
	"fmt"
	"reflect"
	"testing"
)

// lanesOf are lanes of some GB/s each way, without a limit on host bytes.
func lanesOf(gb int64) *Lanes {
	return &Lanes{D2HBytesPerSec: gb * 1e9, H2DBytesPerSec: gb * 1e9, LatencyPicos: 10e6, DuplexPermille: 1000, HostBudgetBytes: -1}
}

// TestMoccasinOverheads compares with the best overheads known, at an eighth of the default effort and with much to spare; the benchmark below
// prints what the default effort gives.
func TestMoccasinOverheads(t *testing.T) {
	for _, g := range moccasins {
		if g.n > 500 {
			continue
		}
		p := readMoccasin(t, g.file)
		for i, f := range []int64{9, 8, 7} {
			if g.best[i] < 0 {
				continue
			}
			p.BudgetBytes = (g.peak*f + 9) / 10
			sol, err := Solve(p, Options{Moves: 15000})
			if err != nil {
				t.Errorf("%s, budget .%d: %v", g.file, f, err)
				continue
			}
			got := (sol.StepPicos - g.sum) * 100000 / g.sum
			t.Logf("%s, budget .%d: overhead %d, best known %d thousandths of a percent", g.file, f, got, g.best[i])
			if got > g.best[i]*2+50 {
				t.Errorf("%s, budget .%d: overhead %d, best known %d thousandths of a percent", g.file, f, got, g.best[i])
			}
		}
	}
}

// BenchmarkMoccasin reports overheads in percent, beside the best known, and certified bounds.
func BenchmarkMoccasin(b *testing.B) {
	for _, g := range moccasins {
		for i, f := range []int64{9, 8, 7} {
			b.Run(fmt.Sprintf("%s/.%d", g.file, f), func(b *testing.B) {
				p := readMoccasin(b, g.file)
				p.BudgetBytes = (g.peak*f + 9) / 10
				for b.Loop() {
					sol, err := Solve(p, Options{})
					if err != nil {
						b.Skip(err)
					}
					b.ReportMetric(100*float64(sol.StepPicos-g.sum)/float64(g.sum), "overhead%")
					b.ReportMetric(float64(g.best[i])/1000, "known%")
					b.ReportMetric(100*float64(sol.Bound.OverheadPicos)/float64(g.sum), "bound%")
				}
			})
		}
	}
}

// BenchmarkTransformer plans steps of up to 36,000 ops.
func BenchmarkTransformer(b *testing.B) {
	for _, blocks := range []int{12, 48, 200, 1200} {
		for _, f := range []int64{7, 5, 3} {
			b.Run(fmt.Sprintf("%d/.%d", blocks, f), func(b *testing.B) {
				p := transformer(blocks)
				u, _ := Unlimited(p)
				p.BudgetBytes = u.PeakBytes * f / 10
				for b.Loop() {
					sol, err := Solve(p, Options{})
					if err != nil {
						b.Fatal(err)
					}
					b.ReportMetric(100*float64(sol.StepPicos-u.StepPicos)/float64(u.StepPicos), "overhead%")
					b.ReportMetric(100*float64(sol.Bound.OverheadPicos)/float64(u.StepPicos), "bound%")
				}
			})
		}
	}
}

// BenchmarkTraining plans steps with weights and optimizer state, by swaps, too.
func BenchmarkTraining(b *testing.B) {
	for _, gb := range []int64{0, 12, 25, 50} {
		for _, f := range []int64{7, 5, 3} {
			b.Run(fmt.Sprintf("%dGBs/.%d", gb, f), func(b *testing.B) {
				p := training(12, true)
				if gb > 0 {
					p.Lanes = lanesOf(gb)
				}
				u, _ := Unlimited(p)
				p.BudgetBytes = u.PeakBytes * f / 10
				for b.Loop() {
					sol, err := Solve(p, Options{})
					if err != nil {
						b.Fatal(err)
					}
					b.ReportMetric(100*float64(sol.StepPicos-u.StepPicos)/float64(u.StepPicos), "overhead%")
					b.ReportMetric(100*float64(sol.Bound.OverheadPicos)/float64(u.StepPicos), "bound%")
				}
			})
		}
	}
}

// networks are steps small enough to be planned many times in a test.
func networks() map[string]*Problem {
	swapping, both := training(2, true), training(2, true)
	swapping.Lanes, both.Lanes = lanesOf(50), lanesOf(12)
	swapping.Recompute = false
	return map[string]*Problem{"transformer": transformer(3), "training": training(3, false), "both": both, "swapping": swapping, "chain": chain(40)}
}

// TestMonotone: of separate solves over many budgets, none with more bytes is slower than one with fewer by more than 0.2 % of the unlimited step (1 %
// where lanes make the search harder); where every byte fits nothing is recomputed or swapped.
func TestMonotone(t *testing.T) {
	for _, c := range []struct {
		name              string
		problem           *Problem
		budgets, permille int64
	}{{"transformer", transformer(2), 41, 2}, {"both", networks()["both"], 8, 10}} {
		p := c.problem
		most, err := Unlimited(p)
		if err != nil {
			t.Fatal(err)
		}
		least, err := Minimum(p)
		if err != nil {
			t.Fatal(err)
		}
		fastest := int64(1) << 62 // of the tighter budgets
		for k := range c.budgets {
			p.BudgetBytes = least.PeakBytes + (most.PeakBytes-least.PeakBytes)*k/(c.budgets-1)
			sol, err := Solve(p, Options{})
			if err != nil {
				t.Fatalf("%s, budget %d: %v", c.name, p.BudgetBytes, err)
			}
			if sol.StepPicos > fastest+most.StepPicos*c.permille/1000 {
				t.Errorf("%s: budget %d takes %d ps, a smaller one %d (unlimited %d)", c.name, p.BudgetBytes, sol.StepPicos, fastest, most.StepPicos)
			}
			fastest = min(fastest, sol.StepPicos)
			if k == c.budgets-1 && len(sol.Recomputes)+len(sol.Swaps) > 0 {
				t.Errorf("%s: with all the bytes that it wants it recomputes %d, swaps %d", c.name, len(sol.Recomputes), len(sol.Swaps))
			}
		}
	}
}

func TestSameProblemSamePlan(t *testing.T) {
	for name, p := range networks() {
		most, err := Unlimited(p)
		if err != nil {
			t.Fatal(err)
		}
		p.BudgetBytes = most.PeakBytes * 6 / 10
		first, err := Solve(p, Options{Moves: 3000})
		if err != nil {
			t.Fatal(err)
		}
		second, err := Solve(p, Options{Moves: 3000})
		if err != nil || !reflect.DeepEqual(first, second) {
			t.Errorf("%s: two plans differ", name)
		}
	}
}
