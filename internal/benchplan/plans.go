package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"aitk/passes/memory"
	"aitk/passes/memory/moccasin"
	"aitk/passes/memory/networks"
)

// outcome is what the planner makes of a budget.
type outcome struct {
	overhead, bound float64
	boundName       string
	seconds, best   float64 // CPU: all of it, until the last improvement
	misfit          *memory.InfeasibleError
}

// plan solves p for a budget; judge is told of the plan and refuses it or not.
func plan(p memory.Problem, budget int64, free bool, judge func(*memory.Free) error) (outcome, error) {
	p.BudgetBytes = budget
	begin := cpuSeconds()
	var x outcome
	o := memory.Options{Improved: func(memory.Progress) { x.best = cpuSeconds() - begin }}
	f := &memory.Free{Problem: &p}
	var err error
	if free {
		f, err = memory.SolveFree(&p, o)
	} else {
		f.Solution, err = memory.Solve(&p, o)
	}
	x.seconds = cpuSeconds() - begin
	if errors.As(err, &x.misfit) {
		return x, nil
	}
	if err != nil {
		return x, err
	}
	r, err := memory.Simulate(f.Problem, f.Solution)
	if err != nil {
		return x, err
	}
	if r.PeakBytes > budget {
		return x, fmt.Errorf("peak %d, budget %d", r.PeakBytes, budget)
	}
	var sum int64
	for i := range p.Ops {
		sum += p.Ops[i].Picos
	}
	x.overhead, x.bound, x.boundName = float64(r.StepPicos)/float64(sum)-1, float64(f.Solution.Bound.OverheadPicos)/float64(sum), f.Solution.Bound.Name
	return x, judge(f)
}

// verdict says of a budget that nothing was found for whether that is proved, and by what.
func (x *outcome) verdict() (word, why string) {
	if x.misfit.BudgetBytes < x.misfit.BoundBytes {
		return "infeasible", fmt.Sprintf("op degree %d", x.misfit.BoundBytes)
	}
	return "undecided", fmt.Sprintf("found %d, op degree %d", x.misfit.MinimumBytes, x.misfit.BoundBytes)
}

func readGraph(file string) (*moccasin.Graph, int64, error) {
	path := filepath.Join(bench, "moccasin", file)
	f, err := os.Open(path)
	if err != nil {
		return nil, 0, err
	}
	defer f.Close()
	g, err := moccasin.Read(path, f)
	if err != nil {
		return nil, 0, err
	}
	peak, _, err := g.Replay(g.Schedule(nil, &memory.Solution{}))
	return g, peak, err
}

// replayed refuses a plan whose schedule is not what the benchmark's own rules make of it.
func replayed(g *moccasin.Graph, budget int64) func(*memory.Free) error {
	return func(f *memory.Free) error {
		peak, time, err := g.Replay(g.Schedule(f.Order, f.Solution))
		if err == nil && (peak > budget || time != f.Solution.StepPicos) {
			err = fmt.Errorf("the schedule replays to a peak of %d within %d and a cost of %d, said to be %d", peak, budget, time, f.Solution.StepPicos)
		}
		return err
	}
}

// goal is how far x is above the smaller of two values of others, in percentage points. What was published has one decimal: where the reference rounds to the same, it
// says more.
func goal(published, reference, x float64) string {
	best := published
	if best < 0 || reference >= 0 && reference < best+0.0501 {
		best = reference
	}
	if best < 0 {
		return "-"
	}
	return fmt.Sprintf("%+.3f", x-best)
}

func fixedOrder(r *report) error {
	if missing(filepath.Join(bench, "moccasin")) {
		return nil
	}
	r.title("MOCCASIN's public graphs in their own order: overhead in percent (published: MOCCASIN and Checkmate, up to an hour on 16 threads)",
		"graph", "budget", "published", "reference", "aitk", "above the best", "bound", "reference bound", "gap", "seconds", "to best")
	for _, graph := range fixedGraphs() {
		g, peak, err := readGraph(graph.file)
		if err != nil {
			return err
		}
		for _, row := range graph.rows {
			budget := moccasin.BudgetBytes(peak, row.permille)
			x, err := plan(g.Problem, budget, false, replayed(g, budget))
			if err != nil {
				return fmt.Errorf("%s at %d permille: %w", graph.name, row.permille, err)
			}
			cells := []string{graph.name, fmt.Sprintf("%d %%", row.permille/10), known(row.published), known(row.reference)}
			if x.misfit != nil {
				word, why := x.verdict()
				r.row(append(cells, word, "", why, known(row.bound), "", secs(x.seconds), "")...)
				continue
			}
			gap := (1+x.overhead)/(1+x.bound) - 1
			r.row(append(cells, percent(x.overhead), goal(row.published, row.reference, 100*x.overhead), percent(x.bound), known(row.bound), percent(gap), secs(x.seconds), secs(x.best))...)
		}
	}
	return r.end()
}

func freeOrder(r *report) error {
	if missing(filepath.Join(bench, "moccasin")) {
		return nil
	}
	r.title("The same in an order of the planner's own: overhead in percent (FastSA: 12 to 36 s; * over its budget)", "graph", "budget", "FastSA", "reference", "aitk", "above FastSA", "seconds", "to best")
	for _, row := range freeRows() {
		g, peak, err := readGraph(row.file + ".json")
		if err != nil {
			return err
		}
		budget := moccasin.BudgetBytes(peak, row.permille)
		x, err := plan(g.Problem, budget, true, replayed(g, budget))
		if err != nil {
			return fmt.Errorf("%s at %d permille: %w", row.file, row.permille, err)
		}
		star := ""
		if row.missed {
			star = "*"
		}
		cells := []string{row.file, fmt.Sprintf("%d %%", row.permille/10), known(row.fastSA) + star, known(row.reference)}
		if x.misfit != nil {
			word, why := x.verdict()
			r.row(append(cells, word, why, secs(x.seconds), "")...)
			continue
		}
		r.row(append(cells, percent(x.overhead), goal(row.fastSA, none, 100*x.overhead), secs(x.seconds), secs(x.best))...)
	}
	return r.end()
}

func blocks(n int64, explicit bool) (*memory.Problem, int64, error) {
	p := networks.Transformer(networks.TransformerConfig{Blocks: n, Batch: 8, Tokens: 1024, Width: 768, Heads: 12}, networks.Options{Explicit: explicit})
	all, err := memory.Simulate(p, &memory.Solution{})
	return p, all.PeakBytes, err
}

func attention(explicit bool) string {
	if explicit {
		return "explicit"
	}
	return "fused"
}

func sound(*memory.Free) error { return nil } // plan has simulated it

func trainingSteps(r *report) error {
	r.title("Training steps of GPT-2 blocks, batch 8, 1024 tokens: overhead in percent", "blocks", "attention", "budget", "reference", "aitk", "above it", "bound", "reference bound", "gap", "seconds")
	for _, row := range stepRows() {
		p, peak, err := blocks(row.blocks, row.explicit)
		if err != nil {
			return err
		}
		x, err := plan(*p, moccasin.BudgetBytes(peak, row.permille), false, sound)
		if err != nil {
			return err
		}
		cells := []string{fmt.Sprint(row.blocks), attention(row.explicit), fmt.Sprintf("%d %%", row.permille/10), known(row.reference)}
		if x.misfit != nil {
			word, why := x.verdict()
			r.row(append(cells, word, "", why, known(row.bound), "", secs(x.seconds))...)
			continue
		}
		r.row(append(cells, percent(x.overhead), goal(row.reference, none, 100*x.overhead), percent(x.bound), known(row.bound), percent((1+x.overhead)/(1+x.bound)-1), secs(x.seconds))...)
	}
	return r.end()
}

func joint(r *report) error {
	r.title("Twelve blocks with recomputing and swapping at some GB/s each way: overhead in percent with stalls", "attention", "budget", "GB/s", "reference bound", "aitk", "bound", "gap to the better bound", "seconds")
	for _, row := range jointRows() {
		p, peak, err := blocks(12, row.explicit)
		if err != nil {
			return err
		}
		for k, rate := range []int64{12, 25, 50} {
			p.Lanes = networks.Lanes(rate, 1000, -1)
			x, err := plan(*p, moccasin.BudgetBytes(peak, row.permille), false, sound)
			if err != nil {
				return err
			}
			cells := []string{attention(row.explicit), fmt.Sprintf("%d %%", row.permille/10), fmt.Sprint(rate), known(row.bounds[k])}
			if x.misfit != nil {
				word, why := x.verdict()
				r.row(append(cells, word, why, "", secs(x.seconds))...)
				continue
			}
			r.row(append(cells, percent(x.overhead), percent(x.bound), percent((1+x.overhead)/(1+max(x.bound, row.bounds[k]/100))-1), secs(x.seconds))...)
		}
	}
	return r.end()
}
