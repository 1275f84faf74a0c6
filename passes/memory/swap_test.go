package memory

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// randomLanes draws lanes on which copies take about as long as ops.
func randomLanes(r *rand.Rand, p *Problem) {
	p.Lanes = &Lanes{D2HBytesPerSec: int64(2+r.IntN(60)) * 1e11, H2DBytesPerSec: int64(2+r.IntN(60)) * 1e11, LatencyPicos: int64(r.IntN(3)),
		DuplexPermille: int64(500 + 100*r.IntN(6)), HostBudgetBytes: -1}
	m := newModel(p)
	for v := range p.Values {
		if x := &p.Values[v]; x.Persistent && r.IntN(4) == 0 && m.homeFree(int32(v)) {
			x.HomeFixed, x.HostHome = true, r.IntN(2) == 0
		}
	}
}

// randomSwap adds, tightens or removes a swap at random and says what it did.
func randomSwap(r *rand.Rand, s *state) string {
	if len(s.w.out) > 0 && r.IntN(3) == 0 {
		a := s.w.out[r.IntN(len(s.w.out))]
		if a.wraps && s.m.p.Values[a.value].HomeFixed || r.IntN(2) == 0 {
			a.freeBy, a.backAt = int32(r.IntN(int(s.m.n)+1)), int32(r.IntN(int(s.m.n)+1))
			s.place()
			return fmt.Sprintf("limits of value %d", a.value)
		}
		s.bringBack(a)
		s.place()
		return fmt.Sprintf("value %d comes back", a.value)
	}
	for range 20 {
		v, p := int32(r.IntN(len(s.m.p.Values))), int32(r.IntN(int(s.m.n)))
		if a := s.awayAt(v, p); a != nil {
			if r.IntN(2) == 0 {
				a.freeBy, a.backAt = p, p+1
			}
			s.takeAway(a)
			s.place()
			return fmt.Sprintf("value %d goes away around stage %d", v, p)
		}
	}
	return ""
}

// TestStateWithSwapsAgreesWithSimulator: after every move, device and host peak are exactly the simulator's, and the state's clock is never ahead of it.
func TestStateWithSwapsAgreesWithSimulator(t *testing.T) {
	moved, waits := 0, 0
	for seed := range uint64(2500) {
		r := rand.New(rand.NewPCG(seed, 4))
		p := randomProblem(r, 1+r.IntN(14))
		randomLanes(r, p)
		if err := Validate(p); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		s := newState(newModel(p))
		what := "nothing"
		for i := range 25 {
			got, err := Simulate(p, s.solution())
			if err != nil {
				t.Fatalf("seed %d, move %d (%s): %v\nplan %+v\nproblem %+v", seed, i, what, err, s.solution(), p)
			}
			if got.PeakBytes != s.tree.peak() || got.HostPeakBytes != s.hostPeak() || got.StepPicos > s.stepPicos() || got.ComputePicos != s.picos {
				t.Fatalf("seed %d, move %d (%s): state believes in %d bytes, %d on the host, %d ps; simulated %d (stage %d), %d, %d\nplan %+v\nproblem %+v", seed, i, what,
					s.tree.peak(), s.hostPeak(), s.stepPicos(), got.PeakBytes, got.PeakStage, got.HostPeakBytes, got.StepPicos, s.solution(), p)
			}
			q := *p
			q.BudgetBytes = got.PeakBytes
			if b := Bounds(&q); b.PeakBytes > got.PeakBytes || b.OverheadPicos > got.StepPicos-s.m.sum {
				t.Fatalf("seed %d, move %d: bounds %+v, yet a plan has %d bytes, overhead %d\nplan %+v\nproblem %+v", seed, i, b, got.PeakBytes, got.StepPicos-s.m.sum, s.solution(), p)
			}
			if p.Lanes.DuplexPermille == 1000 && got.StepPicos != s.stepPicos() {
				waits++
			}
			switch r.IntN(4) {
			case 0:
				if a, j, ok := randomRerun(r, s, false); ok && !s.blocked(a, j) {
					s.add(a, j)
					what = fmt.Sprintf("op %d reruns in stage %d", j, a)
				}
			case 1:
				if a, j, ok := randomRerun(r, s, true); ok && !s.relied(a, j) {
					s.remove(a, j)
					what = fmt.Sprintf("op %d no longer reruns in stage %d", j, a)
				}
			default:
				what = randomSwap(r, s)
				moved++
			}
		}
		// Any plan can be taken up again.
		plan := s.snap()
		again := newState(s.m)
		again.restore(plan)
		if again.tree.peak() != s.tree.peak() || again.stepPicos() != s.stepPicos() || again.hostPeak() != s.hostPeak() {
			t.Fatalf("seed %d: restored plan differs", seed)
		}
	}
	t.Logf("%d swap moves, clock ahead of the simulator's in %d", moved, waits)
}

// TestSolveWithSwaps: from the minimum on there is always a plan, within the budgets, no better than its bounds; without lanes' help or not, a
// larger budget is never the slower one by much.
func TestSolveWithSwaps(t *testing.T) {
	for seed := range uint64(400) {
		r := rand.New(rand.NewPCG(seed, 5))
		p := randomProblem(r, 1+r.IntN(12))
		randomLanes(r, p)
		p.Recompute = r.IntN(3) > 0
		if r.IntN(3) == 0 {
			homes := int64(0)
			for v := range p.Values {
				if x := &p.Values[v]; x.HomeFixed && x.HostHome {
					homes += x.Bytes
				}
			}
			p.Lanes.HostBudgetBytes = homes + int64(r.IntN(60))
		}
		least, err := Minimum(p)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		most, err := Unlimited(p)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if b := Bounds(p); least.PeakBytes < b.PeakBytes {
			t.Fatalf("seed %d: minimum %d is below the bound %d", seed, least.PeakBytes, b.PeakBytes)
		}
		for k := range int64(4) {
			p.BudgetBytes = least.PeakBytes + (most.PeakBytes-least.PeakBytes)*k/3
			sol, err := Solve(p, Options{Moves: 1000})
			if err != nil {
				t.Fatalf("seed %d, budget %d, minimum %d: %v", seed, p.BudgetBytes, least.PeakBytes, err)
			}
			if h := p.Lanes.HostBudgetBytes; sol.PeakBytes > p.BudgetBytes || h >= 0 && sol.HostPeakBytes > h {
				t.Fatalf("seed %d: (min %d, max %d) %d of %d bytes, %d of %d on the host", seed, least.PeakBytes, most.PeakBytes, sol.PeakBytes, p.BudgetBytes, sol.HostPeakBytes, h)
			}
			if over := sol.StepPicos - newModel(p).sum; over < sol.Bound.OverheadPicos {
				t.Fatalf("seed %d: overhead %d is below the bound %d (%s)\n%+v\n%+v", seed, over, sol.Bound.OverheadPicos, sol.Bound.Name, p, sol)
			}
			if k == 3 && sol.StepPicos != most.StepPicos {
				t.Fatalf("seed %d: with all the bytes that it wants the step takes %d ps, unlimited %d", seed, sol.StepPicos, most.StepPicos)
			}
		}
	}
}
