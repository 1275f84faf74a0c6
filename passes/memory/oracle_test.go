package memory

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"
)

// plainProblem draws a problem of ops with one output each and nothing else, which exhaustion can solve up to a dozen ops.
func plainProblem(r *rand.Rand, n int) *Problem {
	p := &Problem{BudgetBytes: -1, Recompute: true}
	for j := range int32(n) {
		o := Op{Picos: int64(r.IntN(10)), Out: []int32{j}, LastRerun: int32(n)}
		for range r.IntN(4) {
			back := 1 + r.IntN(n)
			if r.IntN(3) > 0 {
				back = 1 + r.IntN(4)
			}
			if u := j - int32(back); u >= 0 && !contains(o.In, u) {
				o.In = append(o.In, u)
			}
		}
		if r.IntN(12) == 0 {
			o.LastRerun = int32(r.IntN(n + 1))
		}
		p.Ops = append(p.Ops, o)
		p.Values = append(p.Values, Value{Bytes: int64(1 + r.IntN(30)), Def: j, Becomes: -1})
	}
	return p
}

const never = int64(math.MaxInt64)

// leastTime solves a plainProblem in its order by dynamic programming over (stage, last rerun of the stage, values present): a value may be dropped at any time, an op
// may run again in the order of ops of its stage while what it reads is present. never: there is no plan.
func leastTime(p *Problem, budget int64) int64 {
	n := len(p.Ops)
	bytes := make([]int64, 1<<n)
	for set := 1; set < 1<<n; set++ {
		low := 0
		for set>>low&1 == 0 {
			low++
		}
		bytes[set] = bytes[set&(set-1)] + p.Values[low].Bytes
	}
	in := make([]int, n)
	for j := range p.Ops {
		for _, u := range p.Ops[j].In {
			in[j] |= 1 << u
		}
	}
	fresh := func() []int64 {
		d := make([]int64, 1<<n)
		for i := range d {
			d[i] = never
		}
		return d
	}
	now := fresh()
	now[0] = 0
	for t := range n {
		next := fresh()
		stage := make([][]int64, t+1) // by last rerun + 1
		stage[0] = now
		for k := 1; k <= t; k++ {
			stage[k] = fresh()
		}
		for k := range stage {
			for set := 1<<t - 1; set >= 0; set-- {
				cost := stage[k][set]
				if cost == never {
					continue
				}
				for v := range t {
					if less := set &^ (1 << v); less != set {
						stage[k][less] = min(stage[k][less], cost)
					}
				}
				for j := k; j < t; j++ {
					if with := set | 1<<j; with != set && in[j]&^set == 0 && bytes[with] <= budget && p.Ops[j].LastRerun >= int32(t) {
						stage[j+1][with] = min(stage[j+1][with], cost+p.Ops[j].Picos)
					}
				}
				if with := set | 1<<t; in[t]&^set == 0 && bytes[with] <= budget {
					next[with] = min(next[with], cost+p.Ops[t].Picos)
				}
			}
		}
		now = next
	}
	best := never
	for _, c := range now {
		best = min(best, c)
	}
	return best
}

// againstOracle compares Solve, its bounds and Minimum with the optimum on random problems of up to a dozen ops.
func againstOracle(t *testing.T, first, cases uint64, moves int64) {
	optimal, feasible, closed := 0, 0, 0
	var bound, overhead int64
	for seed := first; seed < first+cases; seed++ {
		r := rand.New(rand.NewPCG(seed, 51))
		p := plainProblem(r, 3+r.IntN(10))
		m := newModel(p)
		most := newState(m).tree.peak()
		floor := degreeAnyOrder(p)
		p.BudgetBytes = floor + int64(r.IntN(int(most-floor)+1))
		want := leastTime(p, p.BudgetBytes)
		sol, err := Solve(p, Options{Moves: moves})
		var no *InfeasibleError
		switch {
		case err != nil && !errors.As(err, &no):
			t.Fatalf("seed %d: %v", seed, err)
		case want == never && err == nil:
			t.Fatalf("seed %d: a plan of %d bytes within %d, exhaustion finds none", seed, sol.PeakBytes, p.BudgetBytes)
		case want == never:
			if leastTime(p, no.MinimumBytes) == never {
				t.Fatalf("seed %d: minimum %d, exhaustion finds no plan", seed, no.MinimumBytes)
			}
			continue
		case err != nil:
			t.Errorf("seed %d: no plan within %d, exhaustion finds one of %d ps (%v)\n%+v", seed, p.BudgetBytes, want, err, p)
			continue
		}
		feasible++
		if sol.StepPicos < want || sol.PeakBytes > p.BudgetBytes {
			t.Fatalf("seed %d: plan of %d ps, %d bytes within %d; the optimum is %d ps", seed, sol.StepPicos, sol.PeakBytes, p.BudgetBytes, want)
		}
		if sol.StepPicos == want {
			optimal++
		}
		if sol.Bound.OverheadPicos > want-m.sum || sol.Bound.PeakBytes > p.BudgetBytes {
			t.Fatalf("seed %d, budget %d: bound %+v, yet the optimum has overhead %d\n%+v", seed, p.BudgetBytes, sol.Bound, want-m.sum, p)
		}
		if sol.Bound.OverheadPicos == want-m.sum {
			closed++
		}
		bound += sol.Bound.OverheadPicos
		overhead += want - m.sum
	}
	t.Logf("optimum in %d of %d feasible cases; bounds hold %d %% of the overhead and equal the optimum in %d", optimal, feasible, 100*bound/max(1, overhead), closed)
	if optimal*100 < feasible*99 {
		t.Errorf("optimum in %d of %d cases", optimal, feasible)
	}
}

func TestSolveAgainstOracle(t *testing.T) { againstOracle(t, 0, 150, 10000) }
