package memory

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

// frontier finds by exhaustion, for recompute only, the least time at every peak: pairs of peak and time, none better in both.
func frontier(p *Problem) (best map[int64]int64) {
	s := newState(newModel(p))
	var all []Recompute
	for t := range s.m.n {
		for j := range t {
			if s.canRerun(t, j) {
				all = append(all, Recompute{t, j})
			}
		}
	}
	best = map[int64]int64{s.tree.peak(): s.picos}
	for i := uint(1); i < 1<<len(all); i++ { // Gray code: one rerun changes at a time
		k := 0
		for i>>k&1 == 0 {
			k++
		}
		if r := all[k]; s.reruns(r.Stage, r.Op) {
			s.remove(r.Stage, r.Op)
		} else {
			s.add(r.Stage, r.Op)
		}
		if c, ok := best[s.tree.peak()]; !ok || s.picos < c {
			best[s.tree.peak()] = s.picos
		}
	}
	return best
}

func cheapest(best map[int64]int64, budget int64) (picos int64, ok bool) {
	for peak, c := range best {
		if peak <= budget && (!ok || c < picos) {
			picos, ok = c, true
		}
	}
	return picos, ok
}

// TestBoundsAndSolveAgainstExhaustion checks on tiny problems that no plan beats a bound, that the minimiser's minimum and the solver's plans are never better than
// possible, and that they are mostly as good.
func TestBoundsAndSolveAgainstExhaustion(t *testing.T) {
	minima, cases, optimal := 0, 0, 0
	var bound, overhead int64
	const problems = 330
	for seed := range uint64(problems) {
		r := rand.New(rand.NewPCG(seed, 3))
		n := 3 + r.IntN(3)
		if seed%11 == 0 {
			n = 6
		}
		p := randomProblem(r, n)
		best := frontier(p)
		least := int64(1) << 62
		for peak := range best {
			least = min(least, peak)
		}
		if b := Bounds(p); b.PeakBytes > least {
			t.Fatalf("seed %d: bound of the peak is %d, a plan has %d: %+v", seed, b.PeakBytes, least, p)
		}
		small, err := Minimum(p)
		if err != nil {
			t.Fatal(err)
		}
		if small.PeakBytes < least {
			t.Fatalf("seed %d: minimum %d, exhaustion finds %d", seed, small.PeakBytes, least)
		}
		if small.PeakBytes == least {
			minima++
		}
		most := newState(newModel(p)).tree.peak()
		for k := int64(0); k < 4; k++ {
			q := *p
			q.BudgetBytes = small.PeakBytes + (most-small.PeakBytes)*k/4
			sol, err := Solve(&q, Options{Moves: 2000})
			if err != nil {
				t.Fatalf("seed %d: minimum is %d, budget %d: %v", seed, small.PeakBytes, q.BudgetBytes, err)
			}
			want, _ := cheapest(best, q.BudgetBytes)
			sum := newModel(p).sum
			if sol.StepPicos < want || sol.PeakBytes > q.BudgetBytes {
				t.Fatalf("seed %d: plan of %d bytes, %d ps within %d; exhaustion finds %d ps", seed, sol.PeakBytes, sol.StepPicos, q.BudgetBytes, want)
			}
			if sol.Bound.OverheadPicos > want-sum {
				t.Fatalf("seed %d, budget %d: bound %d (%s), yet a plan has overhead %d: %+v", seed, q.BudgetBytes, sol.Bound.OverheadPicos, sol.Bound.Name, want-sum, p)
			}
			bound += sol.Bound.OverheadPicos
			overhead += want - sum
			cases++
			if sol.StepPicos == want {
				optimal++
			}
		}
		q := *p
		q.BudgetBytes = small.PeakBytes - 1
		_, err = Solve(&q, Options{Moves: 100})
		var no *InfeasibleError
		if !errors.As(err, &no) || no.MinimumBytes != small.PeakBytes || q.BudgetBytes >= 0 && len(no.Alive) == 0 {
			if small.PeakBytes > 0 {
				t.Fatalf("seed %d: below the minimum %d: %v", seed, small.PeakBytes, err)
			}
		}
	}
	t.Logf("minimum found in %d of %d, optimum in %d of %d; bounds hold %d %% of the overhead", minima, problems, optimal, cases, 100*bound/max(1, overhead))
	if minima < problems*95/100 || optimal < cases*97/100 || bound < overhead/5 {
		t.Errorf("minimum found in %d of %d, optimum in %d of %d; bounds hold %d of %d ps", minima, problems, optimal, cases, bound, overhead)
	}
}

// linearCover is the value of the linear covering problem of a cover by a dense simplex on its dual, in floating point: the most of demand times prices less what gaps
// are worth beyond their time. It shares nothing with the flow.
func linearCover(c *cover) float64 {
	rows, columns := len(c.demand), len(c.columns)
	vars := rows + columns // a price per row, the worth of a column beyond its time
	scale := 0.0
	for _, d := range c.demand {
		scale = max(scale, float64(d))
	}
	table := make([][]float64, columns+1) // the last is the objective; the last entry of each is the right-hand side
	for i := range table {
		table[i] = make([]float64, vars+columns+1)
	}
	basis := make([]int, columns)
	for i, col := range c.columns {
		for r := col.from; r < col.to; r++ {
			table[i][r] = float64(col.bytes) / scale
		}
		table[i][rows+i], table[i][vars+i], table[i][vars+columns] = -1, 1, float64(col.picos)
		basis[i] = vars + i
		table[columns][rows+i] = -1
	}
	for r, d := range c.demand {
		table[columns][r] = float64(d) / scale
	}
	for {
		in := -1
		for k := range vars + columns { // the first that helps: no cycles
			if table[columns][k] > 1e-9 {
				in = k
				break
			}
		}
		if in < 0 {
			return -table[columns][vars+columns]
		}
		out, least := -1, 0.0
		for i := range columns {
			if table[i][in] > 1e-9 {
				if q := table[i][vars+columns] / table[i][in]; out < 0 || q < least-1e-12 || q <= least && basis[i] < basis[out] {
					out, least = i, q
				}
			}
		}
		if out < 0 {
			return math.Inf(1)
		}
		basis[out] = in
		by := table[out][in]
		for k := range table[out] {
			table[out][k] /= by
		}
		for i := range table {
			if f := table[i][in]; i != out && f != 0 {
				for k := range table[i] {
					table[i][k] -= f * table[out][k]
				}
			}
		}
	}
}

// TestFlowIsTheLinearCover: the flow bound is the value of the linear covering problem found by a simplex, on random problems and on small public graphs, and the
// interval cover is no less.
func TestFlowIsTheLinearCover(t *testing.T) {
	compared := 0
	check := func(name string, p *Problem) {
		m := newModel(p)
		gaps := m.baseGaps()
		c := m.newCover(gaps, p.BudgetBytes, bySum, false)
		if len(c.rows) == 0 || m.degree(gaps) > p.BudgetBytes {
			return
		}
		want := linearCover(c)
		got := m.flowBound(gaps, p.BudgetBytes, bySum).OverheadPicos
		if float64(got) < want*(1-1e-6)-1e-6 || float64(got) > want*(1+1e-6)+1.001 {
			t.Errorf("%s: the flow gives %d, the linear covering problem is worth %g", name, got, want)
		}
		if whole := m.overhead(gaps, p.BudgetBytes, 0, 20000); whole.OverheadPicos < got {
			t.Errorf("%s: the cover gives %d, the flow %d", name, whole.OverheadPicos, got)
		}
		compared++
	}
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 61))
		p := plainProblem(r, 4+r.IntN(16))
		if seed%2 == 0 {
			p = randomProblem(r, 4+r.IntN(16))
		}
		most := newState(newModel(p)).tree.peak()
		p.BudgetBytes = most * int64(3+r.IntN(7)) / 10
		check(fmt.Sprint("seed ", seed), p)
	}
	if compared < 50 {
		t.Errorf("only %d problems compared", compared)
	}
	for _, g := range moccasins {
		if g.n > 100 {
			continue
		}
		p := readMoccasin(t, g.file)
		for _, f := range []int64{9, 8, 7} {
			p.BudgetBytes = (g.peak*f + 9) / 10
			check(fmt.Sprint(g.file, f), p)
		}
	}
}

func TestMoccasinBounds(t *testing.T) {
	for _, g := range moccasins {
		t.Run(g.file, func(t *testing.T) {
			p := readMoccasin(t, g.file)
			if b := Bounds(p); b.PeakBytes*1000/g.peak != g.degree && b.PeakBytes*1000/g.peak+1 != g.degree {
				t.Errorf("op-degree bound over peak is %d permille, want %d", b.PeakBytes*1000/g.peak, g.degree)
			}
			for i, f := range []int64{9, 8, 7} {
				p.BudgetBytes = (g.peak*f + 9) / 10
				b := Bounds(p)
				t.Logf("budget .%d: bound %.3f %% (%s), best known %.3f %%", f, 100*float64(b.OverheadPicos)/float64(g.sum), b.Name, float64(g.best[i])/1000)
				if best := g.best[i]; best >= 0 && b.OverheadPicos*100000 > (best+1)*g.sum {
					t.Errorf("budget .%d: bound %d is above a known plan", f, b.OverheadPicos)
				}
			}
		})
	}
}
