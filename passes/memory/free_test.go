package memory

import (
	"errors"
	"math/rand/v2"
	"reflect"
	"testing"
)

// TestSolveFree: on random problems the order is legal, the plan is what the simulator says, keeps to the budget, is no slower than that of the given order
// at an eighth of the effort, and is there whenever that order has one; two runs agree.
func TestSolveFree(t *testing.T) {
	faster, cases := 0, 0
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 41))
		p := randomProblem(r, 3+r.IntN(12))
		if seed%4 == 0 {
			p.Lanes = lanesOf(50)
		}
		most, err := Unlimited(p)
		if err != nil {
			t.Fatal(err)
		}
		p.BudgetBytes = most.PeakBytes * int64(6+r.IntN(4)) / 10
		fixed, err := Solve(p, Options{Moves: 2001})
		f, err2 := SolveFree(p, Options{Moves: 16000})
		var no *InfeasibleError
		if err2 != nil {
			if err == nil || !errors.As(err2, &no) {
				t.Fatalf("seed %d: %v, in the given order %v", seed, err2, err)
			}
			continue
		}
		cases++
		q, err := Reorder(p, f.Order)
		if err != nil || !reflect.DeepEqual(q, f.Problem) {
			t.Fatalf("seed %d: order %v: %v", seed, f.Order, err)
		}
		got, err := Simulate(q, f.Solution)
		if err != nil || got.PeakBytes > p.BudgetBytes || got.StepPicos != f.Solution.StepPicos || f.Solution.Bound.PeakBytes > got.PeakBytes {
			t.Fatalf("seed %d: %+v within %d: %v; bound %+v", seed, got, p.BudgetBytes, err, f.Solution.Bound)
		}
		if fixed != nil && got.StepPicos > fixed.StepPicos {
			t.Errorf("seed %d: %d ps, in the given order %d", seed, got.StepPicos, fixed.StepPicos)
		}
		if fixed == nil || got.StepPicos < fixed.StepPicos {
			faster++
		}
		if again, err := SolveFree(p, Options{Moves: 16000}); err != nil || !reflect.DeepEqual(again, f) {
			t.Fatalf("seed %d: two plans differ (%v)", seed, err)
		}
	}
	t.Logf("%d of %d plans are faster in an order of their own", faster, cases)
	if faster < cases/20 {
		t.Errorf("only %d of %d plans are faster in an order of their own", faster, cases)
	}
}
