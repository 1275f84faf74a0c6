package memory

import (
	"testing"
	"time"
)

func lanesOf(gb int64) *Lanes {
	return &Lanes{D2HBytesPerSec: gb * 1e9, H2DBytesPerSec: gb * 1e9, LatencyPicos: 10e6, DuplexPermille: 1000, HostBudgetBytes: -1}
}

func TestSwapTmp(t *testing.T) {
	for _, fused := range []bool{false, true} {
		for _, n := range []int{12, 48} {
			for _, gb := range []int64{0, 12, 50} {
				p := training(n, fused)
				if gb > 0 {
					p.Lanes = lanesOf(gb)
				}
				u, err := Unlimited(p)
				if err != nil {
					t.Fatal(err)
				}
				for _, f := range []int64{9, 7, 5, 3, 2} {
					p.BudgetBytes = u.PeakBytes * f / 10
					t0 := time.Now()
					sol, err := Solve(p, Options{})
					if err != nil {
						t.Logf("gpt%d %d GB/s .%d %.100v %v", n, gb, f, err, time.Since(t0))
						continue
					}
					r, _ := Simulate(p, sol)
					t.Logf("gpt%d fused %v n=%d %d GB/s .%d  overhead %.3f bound %.3f recompute %.3f stall %.3f swaps %d homes %d %v", n, fused, len(p.Ops), gb, f, 100*float64(sol.StepPicos)/float64(u.StepPicos)-100,
						100*float64(sol.Bound.OverheadPicos)/float64(u.StepPicos), 100*float64(r.RecomputePicos)/float64(u.StepPicos), 100*float64(r.StallPicos)/float64(u.StepPicos), len(sol.Swaps), len(sol.HostHome), time.Since(t0))
				}
			}
		}
	}
}
