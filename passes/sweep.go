package passes

import (
	"errors"

	"aitk/ir/plan"
	"aitk/passes/memory"
)

// Point is one budget of a sweep and the plan for it.
type Point struct {
	BudgetBytes      int64
	Plan             *plan.Plan
	OverheadBoundPPM int64 // no plan of this order within the budget has less overhead
}

// Sweep plans the programs of ctx for n budgets (at least 2), evenly spread from the smallest arena that the planner can do to that without recompute
// and swap. The points come in the order of budgets, each with a plan that the checker has passed, and none takes longer than one with a smaller
// budget; the last one recomputes and swaps nothing. The budgets of o are not looked at. ctx keeps its programs.
//
// One run of the solver plans the step for all budgets. What it gives is placed, and since an arena is larger than its live bytes, a plan may miss its
// budget: then it serves the larger ones, and the solver is asked again with less. Every budget takes the fastest of all plans that fit it, which is why a
// larger one never is the slower.
func Sweep(ctx *Context, o MemoryOptions, n int) ([]Point, error) {
	c := &compiler{MemoryOptions: o}
	c.BudgetBytes, c.BudgetPercent, c.budget = -1, 0, -1
	for _, g := range ctx.Programs {
		c.sources = append(c.sources, g.Clone())
	}
	if err := c.extremes(); err != nil {
		return nil, err
	}
	s := sweeping{compiler: c, points: make([]Point, n), best: make([]*candidate, n)}
	least, most := min(c.smallest.device(), c.unlimited.device()), c.unlimited.device()
	for k := range s.points {
		i, last := int64(k), int64(n-1)
		s.points[k].BudgetBytes = least + (most-least)/last*i + (most-least)%last*i/last
	}
	for _, x := range []*candidate{c.smallest, c.unlimited} {
		s.offer(x)
	}
	if err := s.search(); err != nil {
		return nil, err
	}
	bound := c.peakBound()
	for k, x := range s.best {
		p := &s.points[k]
		c.chosen, c.budget = x, p.BudgetBytes
		p.Plan = c.proved()
		reportQuantized(&p.Plan.Report, ctx)
		r := &p.Plan.Report
		r.OverheadBoundPPM, r.BoundBytes = p.OverheadBoundPPM, min(bound, r.PeakBytes)
		p.Plan.SetAdapters(ctx.Adapters)
	}
	return s.points, nil
}

// sweeping carries one sweep.
type sweeping struct {
	*compiler
	points []Point
	best   []*candidate // by point: the fastest that fits, nil: none yet
}

// offer gives a candidate to every point that it fits and is the fastest for. Of two that take as long, the one with less recomputing came first.
func (s *sweeping) offer(x *candidate) {
	if s.HostBudgetBytes >= 0 && x.host() > s.HostBudgetBytes && x != s.unlimited {
		return
	}
	picos := s.lowered(x).Report.StepPicos
	for k := range s.points {
		if x.device() <= s.points[k].BudgetBytes && (s.best[k] == nil || picos < s.lowered(s.best[k]).Report.StepPicos) {
			s.best[k] = x
		}
	}
}

// search asks the solver for all budgets between the smallest and the largest, and again with less for those whose arena came out too large.
func (s *sweeping) search() error {
	unit := s.Profile.AlignBytes
	limit := make([]int64, len(s.points)) // of live bytes
	var open []int                        // points that still want a plan of their own
	for k := range s.points {
		if limit[k] = s.points[k].BudgetBytes; limit[k] < s.unlimited.device() {
			open = append(open, k)
		}
	}
	whole := s.lowered(s.unlimited).Report.StepPicos
	for try := 0; try < fitTries && len(open) > 0; try++ {
		budgets := make([]int64, len(open))
		for i, k := range open {
			budgets[i] = limit[k]
		}
		p := s.problem(s.copies()[0], nil, limits{device: -1, host: s.HostBudgetBytes, swap: s.Swap})
		if err := p.checkTimes(); err != nil {
			return err
		}
		plans, err := memory.Sweep(&p.Problem, budgets, memory.Options{Moves: s.Effort, PeakOnly: try > 0})
		if err != nil {
			return err
		}
		var again []int
		for i, k := range open {
			sol := plans[i].Solution
			if sol == nil {
				continue // the smallest plan stays
			}
			if try == 0 && whole > 0 {
				s.points[k].OverheadBoundPPM = int64(float64(sol.Bound.OverheadPicos) / float64(whole) * 1e6)
			}
			x, err := s.around(sol, limit[k])
			if _, infeasible := errors.AsType[*memory.InfeasibleError](err); infeasible {
				continue
			}
			if err != nil {
				return err
			}
			s.offer(x)
			if over := x.device() - s.points[k].BudgetBytes; over > 0 {
				limit[k] -= roundUp(over, unit)
				again = append(again, k)
			}
		}
		open = again
	}
	return nil
}

// around plans the other programs beside a decision for the step.
func (s *sweeping) around(step *memory.Solution, device int64) (*candidate, error) {
	first := true
	return s.solve(func(p *memory.Problem) (*memory.Solution, error) {
		if first {
			first = false
			return step, nil
		}
		return memory.Solve(p, memory.Options{Moves: s.Effort, PeakOnly: true})
	}, limits{device: device, host: s.HostBudgetBytes, swap: s.Swap})
}

// extremes finds the plan without recompute and swap and the peak-minimiser's.
func (c *compiler) extremes() error {
	var err error
	if c.unlimited, err = c.keepAll(); err != nil {
		return err
	}
	if c.smallest, err = c.least(); err != nil {
		return err
	}
	if c.smallest.device() > c.unlimited.device() && c.unlimited.host() <= c.smallest.host() {
		c.smallest = c.unlimited // a lower peak that packs worse
	}
	return nil
}

// lowered is the plan of a candidate, measured.
func (c *compiler) lowered(x *candidate) *plan.Plan {
	if x.plan == nil {
		x.plan = lower(x.place, c.Profile)
		plan.Measure(x.plan)
	}
	return x.plan
}
