package memory

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// InfeasibleError says that the planner knows no plan within the budget.
type InfeasibleError struct {
	BudgetBytes  int64
	MinimumBytes int64   // the smallest peak that the planner can do; with this budget Solve succeeds
	BoundBytes   int64   // no plan of this order has a smaller peak
	Stage        int32   // op at the peak of that plan
	Alive        []int32 // values on the device there, largest first
}

func (e *InfeasibleError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "budget of %d bytes is too small: the smallest peak found is %d bytes, at op %d, where values", e.BudgetBytes, e.MinimumBytes, e.Stage)
	for i, v := range e.Alive {
		if i == 5 {
			fmt.Fprintf(&b, " and %d more", len(e.Alive)-i)
			break
		}
		fmt.Fprintf(&b, " %d", v)
	}
	b.WriteString(" are alive")
	return b.String()
}

// Unlimited is the plan without recompute, with swaps only for persistent values whose home is fixed on the host.
func Unlimited(p *Problem) (*Solution, error) {
	if err := Validate(p); err != nil {
		return nil, err
	}
	m := newModel(p)
	return m.finish(newState(m).snap())
}

// Minimum is the plan with the smallest peak that the planner finds at any cost in time, by the means that p allows. It does not depend on
// the budget or on options: this defines the smallest budget with which Solve succeeds.
func Minimum(p *Problem) (*Solution, error) {
	if err := Validate(p); err != nil {
		return nil, err
	}
	m := newModel(p)
	floor := m.degree(m.baseGaps())
	sol, err := m.finish(m.leastPeak(floor, 0).plan)
	if err == nil {
		sol.Bound = Bound{PeakBytes: floor, Name: noBound}
	}
	return sol, err
}

// Solve plans p within its budget at the least time that it finds. Below the peak of Minimum it returns an *InfeasibleError, from there on a plan. Without
// a limit, or with one that the plan without recompute and swap keeps, it returns that plan.
func Solve(p *Problem, o Options) (*Solution, error) {
	if err := Validate(p); err != nil {
		return nil, err
	}
	sol, _, err := solveFrom(p, o, nil)
	return sol, err
}

// solveFrom is Solve of a valid problem with plans of it that the search starts from, too: the result is not slower than those of them that are within the budget.
func solveFrom(p *Problem, o Options, known []snapshot) (*Solution, snapshot, error) {
	m := newModel(p)
	s := newState(m)
	budget := p.BudgetBytes
	gaps := m.baseGaps()
	floor := m.degree(gaps)
	if budget < 0 || s.tree.peak() <= budget {
		plan := s.snap()
		sol, err := m.finish(plan)
		if err == nil {
			sol.Bound = Bound{PeakBytes: floor, Name: noBound}
		}
		return sol, plan, err
	}
	if !slices.ContainsFunc(known, func(plan snapshot) bool { return m.within(plan, budget) }) {
		least := m.leastPeak(floor, budget)
		if least.peak > budget {
			return nil, snapshot{}, m.infeasible(floor)
		}
		known = append([]snapshot{least.plan}, known...)
	}
	plan := m.improve(known, o)
	sol, err := m.finish(plan)
	if err != nil {
		return nil, snapshot{}, err
	}
	sol.Bound.Name = noBound
	if !o.PeakOnly {
		sol.Bound = m.overhead(gaps, budget, sol.StepPicos-m.sum, min(coverWork, 20000+m.moves(o)/5))
	}
	sol.Bound.PeakBytes = floor
	return sol, plan, nil
}

// within says whether a plan keeps to the budgets.
func (m *model) within(plan snapshot, budget int64) bool {
	s := newState(m)
	s.restore(plan)
	return s.tree.peak() <= budget && s.hostFits()
}

// infeasible describes the least peak.
func (m *model) infeasible(floor int64) error {
	least := m.leastPeak(floor, 0)
	s := newState(m)
	s.restore(least.plan)
	r, err := Simulate(m.p, s.solution())
	if err != nil {
		return err
	}
	return &InfeasibleError{BudgetBytes: m.p.BudgetBytes, MinimumBytes: r.PeakBytes, BoundBytes: floor, Stage: r.PeakStage, Alive: r.Alive}
}

// moves is how many moves the options allow.
func (m *model) moves(o Options) int64 {
	switch n := max(1, int64(m.n)); {
	case o.Moves != 0:
		return o.Moves
	case m.p.Lanes != nil: // each asks the clock
		return min(50000, 20000+1000*n, 30000000/n)
	default:
		return min(400000, 100000+2000*n, 400000000/n)
	}
}

// improve finds a good plan within the budget, given some of which at least one is.
func (m *model) improve(known []snapshot, o Options) snapshot {
	budget := m.p.BudgetBytes
	moves := m.moves(o)
	x := newSearch(newState(m), budget, o.Seed)
	x.stop, x.improved = o.Stop, o.Improved
	large := m.n > manyOps
	for _, means := range m.seedOptions() {
		if means.swaps && large {
			continue
		}
		m.greedySeeds(x, means, m.aims(budget))
	}
	m.priceSeeds(x)
	if large && x.cost == math.MaxInt64 { // those that ask the clock take long, and prices nearly always do better
		for _, means := range m.seedOptions() {
			if means.swaps {
				m.greedySeeds(x, means, []int64{budget})
			}
		}
	}
	for _, plan := range known {
		s := newState(m)
		s.restore(plan)
		x.offer(s)
		if large && m.p.Lanes != nil && s.stepPicos() > x.cost+x.cost/4 {
			continue // thousands of swaps too many to take them back one by one
		}
		s.dropIdle(budget)
		x.offer(s)
	}
	if m.p.Lanes == nil {
		x.walks(moves, o)
		x.below(moves/4, o)
	} else {
		if s := int64(len(x.best.away)); s > 0 && o.Moves == 0 {
			moves = min(moves, 1500000/s) // each places all copies anew
		}
		// Several short runs beat a long one on small problems, where each either finds the way or does not.
		run := max(1, min(moves/3, 6000+100*int64(m.n)))
		for k := int64(0); k == 0 || (k+1)*run <= moves && !x.stopped(); k++ {
			if start := x.best; k%2 == 0 {
				x.load(start)
			} else {
				x.load(newState(m).snap()) // from nothing: the way down may lie elsewhere
			}
			x.anneal(run)
			x.rebuild(run/48, 0)
		}
	}
	last := newState(m)
	last.restore(x.best)
	last.dropIdle(budget)
	x.offer(last)
	return x.best
}

// manyOps is from how many ops on seeds with lanes are chosen with care: each of them takes a good part of a second.
const manyOps = 1000

// greedySeeds offers x what the greedy makes of some aims.
func (m *model) greedySeeds(x *search, means greedyOptions, aims []int64) {
	for _, aim := range aims {
		s := newState(m)
		if newGreedy(s, means).reduce(aim, 20*int(m.n)+1000) {
			s.dropIdle(x.budget)
		}
		x.offer(s)
	}
}

// below searches at the marks below the budget, too, in a way that depends on the mark alone, so that neighbouring budgets share what they find there.
func (x *search) below(moves int64, o Options) {
	if moves == 0 {
		return
	}
	m := x.m
	for _, aim := range m.aims(x.budget)[1:] {
		s := newState(m)
		if x.stopped() || !newGreedy(s, greedyOptions{reruns: true}).reduce(aim, 20*int(m.n)+1000) {
			return
		}
		y := newSearch(newState(m), aim, o.Seed)
		y.stop = x.stopped
		y.offer(s)
		y.walks(moves, o)
		s = newState(m)
		s.restore(y.best)
		s.dropIdle(x.budget)
		x.moves += y.moves
		x.offer(s)
	}
}

// walks improves x.best by walkers and by rebuilding: in turn from the best plan, with little heat, and from nothing, since the way down may lie elsewhere.
func (x *search) walks(moves int64, o Options) {
	m := x.m
	run := max(1, min(moves/3, 12000+100*int64(m.n)))
	w := newWalker(m, m.lineOf(x.best), x.budget, o.Seed)
	w.stop = x.stopped
	w.told = func(w *walker) {
		if w.cost < x.cost {
			x.best, x.cost, x.moves = planOfLine(m, w.best), w.cost, w.moves
			x.tell(w.cost, w.tree.peak())
		}
	}
	share := int64(8) // of 16: what rebuilding may cost beside the walker, by what came of it; a step of it costs about n/8 moves
	for k := int64(0); k == 0 || (k+1)*run <= moves && !x.stopped(); k++ {
		before := x.cost
		if heat := int64(512); k%2 == 0 {
			w.load(m.lineOf(x.best))
			w.anneal(run, heat)
		} else {
			w.load(m.lineOf(snapshot{}))
			w.anneal(run, 2*heat)
		}
		was := x.cost
		if x.rebuild(max(run/96*share/16, run*share/2/int64(m.n)), 1024*(k%2)); x.cost < was {
			share = min(2*share, 32)
		} else if was < before {
			share = max(share/2, 1)
		}
	}
}

// aims lists the budgets that the seeds are made for: the budget, and the next few marks of a fixed scale below it, so that neighbouring budgets
// have most of their seeds in common and the larger one is hardly ever the slower.
func (m *model) aims(budget int64) []int64 {
	const marks = 48
	all := newState(m).tree.peak()
	list := []int64{budget}
	for k := int64(marks); k > 0 && len(list) < 3; k-- {
		if mark := mulDiv(all, k, marks); mark < budget {
			list = append(list, mark)
		}
	}
	return list
}

// offer keeps the plan of s if it is feasible and better than the best.
func (x *search) offer(s *state) {
	if s.tree.peak() <= x.budget && s.hostFits() {
		if cost := s.stepPicos(); cost < x.cost {
			x.best, x.cost = s.snap(), cost
			x.tell(x.cost, s.tree.peak())
		}
	}
}

// seedOptions lists the means with which the greedy makes seeds.
func (m *model) seedOptions() (list []greedyOptions) {
	if m.p.Recompute {
		list = append(list, greedyOptions{reruns: true})
	}
	if m.p.Lanes != nil {
		list = append(list, greedyOptions{swaps: true, lanePrice: 16})
	}
	if len(list) == 2 {
		list = append(list, greedyOptions{reruns: true, swaps: true, lanePrice: 32}, greedyOptions{reruns: true, swaps: true, lanePrice: 256})
	}
	return list
}

// finish makes a Solution of a plan and fills in what the simulator says of it.
func (m *model) finish(plan snapshot) (*Solution, error) {
	s := newState(m)
	s.restore(plan)
	sol := s.solution()
	r, err := Simulate(m.p, sol)
	if err != nil {
		return nil, fmt.Errorf("memory planner made an illegal plan: %w", err)
	}
	if r.PeakBytes != s.tree.peak() || r.StepPicos > s.stepPicos() {
		return nil, fmt.Errorf("memory planner believes in %d bytes and %d ps, the simulator finds %d and %d", s.tree.peak(), s.stepPicos(), r.PeakBytes, r.StepPicos)
	}
	sol.PeakBytes, sol.HostPeakBytes, sol.StepPicos = r.PeakBytes, r.HostPeakBytes, r.StepPicos
	return sol, nil
}
