package memory

import (
	"math/rand/v2"
	"reflect"
	"testing"
)

// TestSweepNeverRises: in one sweep of 41 points no budget takes longer than a smaller one, whatever the order in which budgets are given, the points are what Simulate
// says, and an infeasible point is one below the minimum.
func TestSweepNeverRises(t *testing.T) {
	for name, p := range networks() {
		most, err := Unlimited(p)
		if err != nil {
			t.Fatal(err)
		}
		least, err := Minimum(p)
		if err != nil {
			t.Fatal(err)
		}
		var budgets []int64
		for k := range int64(41) {
			budgets = append(budgets, least.PeakBytes-1+(most.PeakBytes-least.PeakBytes+2)*k/40)
		}
		budgets = append(budgets, -1)
		rand.New(rand.NewPCG(1, 2)).Shuffle(len(budgets), func(i, j int) { budgets[i], budgets[j] = budgets[j], budgets[i] })
		points, err := Sweep(p, budgets, Options{Moves: 1500})
		if err != nil {
			t.Fatal(err)
		}
		for i, a := range points {
			if a.BudgetBytes != budgets[i] || (a.Solution == nil) != (a.BudgetBytes >= 0 && a.BudgetBytes < least.PeakBytes) || (a.Solution == nil) == (a.Infeasible == nil) {
				t.Fatalf("%s: point %d has budget %d of %d, plan %v; the minimum is %d", name, i, a.BudgetBytes, budgets[i], a.Solution != nil, least.PeakBytes)
			}
			if a.Solution == nil {
				continue
			}
			if r, err := Simulate(p, a.Solution); err != nil || r.StepPicos != a.Solution.StepPicos || uint64(r.PeakBytes) > uint64(a.BudgetBytes) {
				t.Fatalf("%s, budget %d: %+v, %v; simulated %+v", name, a.BudgetBytes, a.Solution, err, r)
			}
			for _, b := range points {
				if b.Solution != nil && uint64(b.BudgetBytes) < uint64(a.BudgetBytes) && b.Solution.StepPicos < a.Solution.StepPicos {
					t.Errorf("%s: budget %d takes %d ps, %d takes %d", name, a.BudgetBytes, a.Solution.StepPicos, b.BudgetBytes, b.Solution.StepPicos)
				}
			}
		}
	}
}

// TestStopAndProgress: a search that is stopped at once has a plan; the plans told of get better and the last is the result; without Stop nothing depends on Improved.
func TestStopAndProgress(t *testing.T) {
	p := transformer(3)
	most, err := Unlimited(p)
	if err != nil {
		t.Fatal(err)
	}
	p.BudgetBytes = most.PeakBytes / 2
	quick, err := Solve(p, Options{Stop: func() bool { return true }, Moves: 1 << 60})
	if err != nil {
		t.Fatal(err)
	}
	var told []Progress
	full, err := Solve(p, Options{Moves: 20000, Improved: func(g Progress) { told = append(told, g) }})
	if err != nil {
		t.Fatal(err)
	}
	for i := range told {
		if i > 0 && (told[i].StepPicos >= told[i-1].StepPicos || told[i].Moves < told[i-1].Moves) || told[i].PeakBytes > p.BudgetBytes {
			t.Errorf("told of %+v after %+v", told[i], told[max(0, i-1)])
		}
	}
	if len(told) == 0 || told[len(told)-1].StepPicos != full.StepPicos || quick.StepPicos < full.StepPicos {
		t.Errorf("told of %+v; the plan takes %d ps, that of a stopped search %d", told, full.StepPicos, quick.StepPicos)
	}
	again, err := Solve(p, Options{Moves: 20000})
	if err != nil || !reflect.DeepEqual(full, again) {
		t.Errorf("the plan differs where nobody is told of it (%v)", err)
	}
}

// TestReorder: a random legal order gives a valid problem in which the same ops do the same; an illegal one is refused.
func TestReorder(t *testing.T) {
	for seed := range uint64(500) {
		r := rand.New(rand.NewPCG(seed, 21))
		p := randomProblem(r, 1+r.IntN(12))
		before := precedence(p)
		n := len(p.Ops)
		order, placed := []int32{}, make([]bool, n)
		for len(order) < n {
			j := int32(r.IntN(n))
			ready := !placed[j]
			for _, k := range before[j] {
				ready = ready && placed[k]
			}
			if ready {
				placed[j] = true
				order = append(order, j)
			}
		}
		q, err := Reorder(p, order)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if err := Validate(q); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		u, err := Unlimited(q)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if bound := degreeAnyOrder(p); u.PeakBytes < bound {
			t.Fatalf("seed %d: peak %d below the bound %d of any order", seed, u.PeakBytes, bound)
		}
		for j := range before {
			if len(before[j]) > 0 {
				bad := append([]int32{int32(j)}, order...)
				for i := 1; i < len(bad); i++ {
					if bad[i] == int32(j) {
						bad = append(bad[:i], bad[i+1:]...)
						break
					}
				}
				if _, err := Reorder(p, bad); err == nil {
					t.Fatalf("seed %d: op %d goes first although %v must come before", seed, j, before[j])
				}
				break
			}
		}
	}
}

// TestExplain: the sum over prices of an explained plan is consistent with it, and every value has a reason that fits what the plan does.
func TestExplain(t *testing.T) {
	for name, p := range networks() {
		most, err := Unlimited(p)
		if err != nil {
			t.Fatal(err)
		}
		p.BudgetBytes = most.PeakBytes * 6 / 10
		sol, err := Solve(p, Options{Moves: 2000})
		if err != nil {
			t.Fatal(err)
		}
		e, err := Explain(p, sol)
		if err != nil {
			t.Fatal(err)
		}
		again := 0
		for v, f := range e.Fates {
			again += len(f.Recomputed)
			away := len(f.Swapped) > 0 || f.OnHost
			want := map[Reason]bool{RecomputedFor: len(f.Recomputed) > 0 && !away, SwappedFor: len(f.Recomputed) == 0 && away, BothFor: len(f.Recomputed) > 0 && away}
			if does, ok := want[f.Reason]; ok && !does || !ok && (len(f.Recomputed) > 0 || away) {
				t.Errorf("%s: value %d: %s, yet recomputed in %v, swapped %v", name, v, f.Reason, f.Recomputed, f.Swapped)
			}
		}
		if len(sol.Recomputes) > 0 && again == 0 || e.BindingPrice > e.TotalPrice {
			t.Errorf("%s: binding price %d, total %d, %d recomputed", name, e.BindingPrice, e.TotalPrice, again)
		}
		if name == "transformer" && e.BindingPrice <= 0 {
			t.Errorf("%s: the budget binds and has no price", name)
		}
		p.BudgetBytes = -1
		u, _ := Unlimited(p)
		if e, err := Explain(p, u); err != nil || e.TotalPrice != 0 || e.BindingPrice != 0 {
			t.Errorf("%s: without a limit %v, total price %v", name, err, e)
		}
	}
}
