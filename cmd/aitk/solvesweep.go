package main

import (
	"errors"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"aitk/passes/memory"
)

// sweepBudgets are n budgets from least to most, evenly spread.
func sweepBudgets(least, most, n int64) []int64 {
	list := make([]int64, n)
	for k := range n {
		whole, rest := (most-least)/(n-1), (most-least)%(n-1)
		list[k] = least + whole*k + rest*k/(n-1)
	}
	return list
}

// sweepMemory plans for many budgets and shows the answers.
func (c *call) sweepMemory(path string, m *memorySolver) error {
	if c.has("budget") {
		return usagef("--sweep chooses its budgets, from the smallest that works to that without recompute and swap: leave --budget out")
	}
	m.begin = time.Now()
	list, err := m.sweep(c.solve.sweep)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if err := c.ctx.Err(); err != nil {
		return err
	}
	seconds := time.Since(m.begin).Seconds()
	if c.wants("json") {
		return c.show(map[string]func(io.Writer) error{"json": func(w io.Writer) error {
			return writeJSON(w, map[string]any{"peak": m.peak, "cost": m.sum, "seconds": seconds, "points": list})
		}})
	}
	return c.writeFile("-", func(w io.Writer) error {
		t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
		fmt.Fprintln(t, "budget\tof peak\tpeak\tcost\toverhead\tat least\trecomputes\tswaps\t")
		for _, a := range list {
			fmt.Fprintf(t, "%d\t%.2f %%\t%d\t%s\t%.4f %%\t%.4f %%\t%d\t%d\t\n", *a.Budget, 100*float64(*a.Budget)/float64(max(m.peak, 1)), a.Peak, a.Cost, 100*a.Overhead, 100*a.OverheadBound,
				a.Recomputes, len(a.Swaps))
		}
		return t.Flush()
	})
}

// sweep plans for n budgets, the smallest first. No answer costs more than one with a smaller budget.
func (m *memorySolver) sweep(n int64) ([]*memoryAnswer, error) {
	least, err := memory.Minimum(&m.problem)
	if err != nil {
		return nil, err
	}
	budgets := sweepBudgets(min(least.PeakBytes, m.peak), m.peak, n)
	plans := make([]*memoryPlan, n)
	if m.free {
		var before *memoryPlan
		for k, b := range budgets {
			p, misfit, err := m.plan(b)
			if err != nil {
				return nil, err
			}
			if misfit != nil {
				return nil, misfit
			}
			if before != nil && before.sol.StepPicos < p.sol.StepPicos {
				q := *before.problem
				q.BudgetBytes = b
				s := *before.sol
				s.Bound = p.sol.Bound
				p = &memoryPlan{before.order, &q, &s}
			}
			plans[k], before = p, p
		}
	} else {
		points, err := memory.Sweep(&m.problem, budgets, m.options)
		if err != nil {
			return nil, err
		}
		for k, x := range points {
			if x.Solution == nil {
				return nil, errors.Join(errors.New("internal error: a sweep found no plan where the smallest peak fits"), x.Infeasible)
			}
			q := m.problem
			q.BudgetBytes = x.BudgetBytes
			plans[k] = &memoryPlan{nil, &q, x.Solution}
		}
	}
	list := make([]*memoryAnswer, n)
	for k, p := range plans {
		if list[k], err = m.answer(p, budgets[k]); err != nil {
			return nil, err
		}
		if k > 0 && p.sol.StepPicos > plans[k-1].sol.StepPicos {
			return nil, fmt.Errorf("internal error: a budget of %d costs more than one of %d", budgets[k], budgets[k-1])
		}
	}
	return list, nil
}
