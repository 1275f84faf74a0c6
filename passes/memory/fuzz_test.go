package memory

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// FuzzIncrementalPeak: state and sequence agree with the simulator after every one of many random changes of a random problem.
func FuzzIncrementalPeak(f *testing.F) {
	f.Add(uint64(1), uint8(8))
	f.Add(uint64(2), uint8(13))
	f.Fuzz(func(t *testing.T, seed uint64, size uint8) {
		n := 1 + int(size)%24
		walkSequence(t, seed, n, 30)
		r := rand.New(rand.NewPCG(seed, 71))
		p := randomProblem(r, n)
		s := newState(newModel(p))
		for i := range 30 {
			if a, j, ok := randomRerun(r, s, r.IntN(3) == 0); ok {
				if s.reruns(a, j) {
					s.remove(a, j)
				} else {
					s.add(a, j)
				}
				agree(t, p, s, fmt.Sprintf("seed %d, move %d (op %d in stage %d)", seed, i, j, a))
			}
		}
	})
}

// FuzzSolve: no plan beats the optimum, none breaks the budget, no bound is above the optimum.
func FuzzSolve(f *testing.F) {
	f.Add(uint64(3), uint8(7), uint8(100))
	f.Fuzz(func(t *testing.T, seed uint64, size, tight uint8) {
		p := plainProblem(rand.New(rand.NewPCG(seed, 51)), 3+int(size)%10)
		m := newModel(p)
		floor := degreeAnyOrder(p)
		p.BudgetBytes = floor + (newState(m).tree.peak()-floor)*int64(tight)/255
		want := leastTime(p, p.BudgetBytes)
		sol, err := Solve(p, Options{Moves: 3000})
		if err != nil {
			return
		}
		if want == never || sol.StepPicos < want || sol.PeakBytes > p.BudgetBytes || sol.Bound.OverheadPicos > want-m.sum {
			t.Errorf("plan of %d ps, %d bytes within %d, bound %+v; the optimum is %d ps\n%+v", sol.StepPicos, sol.PeakBytes, p.BudgetBytes, sol.Bound, want, p)
		}
	})
}
