package memory

import (
	"math/rand/v2"
	"testing"
)

// TestMinimumAgainstAllPlans compares Minimum of problems with everything in them, but lanes, with the least peak of all sets of recomputes.
func TestMinimumAgainstAllPlans(t *testing.T) {
	better := 0
	for seed := range uint64(600) {
		r := rand.New(rand.NewPCG(seed, 83))
		p := randomProblem(r, 3+r.IntN(4))
		if err := Validate(p); err != nil {
			t.Fatal(err)
		}
		s := newState(newModel(p))
		var pairs []Recompute
		for stage := range s.m.n {
			for j := range stage {
				if s.canRerun(stage, j) {
					pairs = append(pairs, Recompute{Stage: stage, Op: j})
				}
			}
		}
		all := s.tree.peak()
		least := all
		var code uint64 // Gray code of the set: one recompute comes or goes at a time
		for i := uint64(1); i < 1<<len(pairs); i++ {
			gray := i ^ i>>1
			for k, c := range pairs {
				if (gray^code)>>k&1 == 0 {
					continue
				}
				if gray>>k&1 == 1 {
					s.add(c.Stage, c.Op)
				} else {
					s.remove(c.Stage, c.Op)
				}
			}
			code = gray
			least = min(least, s.tree.peak())
		}
		got, err := Minimum(p)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if got.PeakBytes != least {
			t.Errorf("seed %d: minimum of %d bytes, the least of %d plans has %d\n%+v", seed, got.PeakBytes, uint64(1)<<len(pairs), least, p)
		}
		m := newModel(p)
		best := leastPeak{plan: newState(m).snap(), peak: all}
		if p.Recompute && !m.exact(&best, 0, 0) || best.peak != least {
			t.Errorf("seed %d: exhaustion from nothing ends at %d bytes, the least is %d", seed, best.peak, least)
		}
		if least < all {
			better++
		}
	}
	if better < 50 {
		t.Errorf("recomputes help in %d problems", better)
	}
}
