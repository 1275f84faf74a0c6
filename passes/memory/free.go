package memory

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
)

// Free is a plan in an order of its own.
type Free struct {
	Order    []int32  // by position in the new order: the op of the problem that was given
	Problem  *Problem // the problem in the new order, which Solution is a plan of: op i is op Order[i] of the problem that was given
	Solution *Solution
}

// Reorder states p in another order: position i runs op order[i]. It fails if an op would run before one that it depends on: one that defines what it
// reads, or, for an op that replaces a persistent value or after which others may not run again, one that must come before it (see precedence).
func Reorder(p *Problem, order []int32) (*Problem, error) {
	n := int32(len(p.Ops))
	at := make([]int32, n)
	for j := range at {
		at[j] = -1
	}
	if len(order) != len(p.Ops) {
		return nil, fmt.Errorf("order of %d ops for a problem of %d", len(order), n)
	}
	for i, j := range order {
		if j < 0 || j >= n || at[j] >= 0 {
			return nil, fmt.Errorf("order is no permutation of the ops: op %d at position %d", j, i)
		}
		at[j] = int32(i)
	}
	for j, list := range precedence(p) {
		for _, k := range list {
			if at[k] >= at[j] {
				return nil, fmt.Errorf("order runs op %d at %d, before op %d at %d, which must come first", j, at[j], k, at[k])
			}
		}
	}
	q := *p
	q.Ops, q.Values = make([]Op, n), slices.Clone(p.Values)
	for i, j := range order {
		q.Ops[i] = p.Ops[j]
		o := &q.Ops[i]
		switch {
		case o.LastRerun >= n:
		case o.LastRerun <= j:
			o.LastRerun = -1
		default:
			o.LastRerun = at[o.LastRerun]
		}
	}
	for v := range q.Values {
		if d := q.Values[v].Def; d >= 0 {
			q.Values[v].Def = at[d]
		}
	}
	return &q, nil
}

// precedence lists, by op, the ops that come before it in every order: those that define what it reads; for an op that is the last legal stage of
// others' recomputes, or that replaces a persistent value, those others and the readers of the old content that came before it; and stateful ops and those that
// write in place keep their order among themselves, since an earlier one may be the limit of an op that names only the first.
func precedence(p *Problem) [][]int32 {
	n := int32(len(p.Ops))
	list := make([][]int32, n)
	put := func(j, k int32) {
		if !contains(list[j], k) {
			list[j] = append(list[j], k)
		}
	}
	chained := make([]bool, n)
	for j := range n {
		o := &p.Ops[j]
		for _, v := range o.In {
			if d := p.Values[v].Def; d >= 0 {
				put(j, d)
			}
		}
		chained[j] = chained[j] || o.Once
		if o.LastRerun < n && o.LastRerun > j {
			put(o.LastRerun, j)
			chained[o.LastRerun] = true
		}
	}
	readers := make([][]int32, len(p.Values))
	for j := range n {
		for _, v := range p.Ops[j].In {
			readers[v] = append(readers[v], j)
		}
	}
	for v := range p.Values {
		x := &p.Values[v]
		if !x.Persistent || x.Becomes < 0 {
			continue
		}
		d := p.Values[x.Becomes].Def
		chained[d] = true
		for _, j := range readers[v] {
			if j < d {
				put(d, j)
			} else if j > d {
				put(j, d)
			}
		}
	}
	before := int32(-1)
	for j := range n {
		if chained[j] {
			if before >= 0 {
				put(j, before)
			}
			before = j
		}
	}
	return list
}

// SolveFree plans p within its budget, and its order with it. The result is never slower than what an eighth of the moves finds in the given order, and the same
// options give the same plan. Where neither that order nor one that the search finds has a plan, it returns the *InfeasibleError of the given order. The bounds in
// the solution hold for any order. Swaps are added in the order that is best without them.
func SolveFree(p *Problem, o Options) (*Free, error) {
	if err := Validate(p); err != nil {
		return nil, err
	}
	n := int64(len(p.Ops))
	moves := o.Moves
	if moves == 0 {
		moves = min(700000, 100000+3000*n, 400000000/max(1, n))
	}
	part := o
	part.Moves = moves/8 + 1
	given := make([]int32, n)
	for i := range given {
		given[i] = int32(i)
	}
	same, err := Reorder(p, given)
	if err != nil {
		return nil, err
	}
	best := &Free{Order: given, Problem: same}
	if best.Solution, _, err = solveFrom(p, part, nil); err != nil {
		var no *InfeasibleError
		if best.Solution = nil; !errors.As(err, &no) {
			return nil, err
		}
	}
	if s := best.Solution; s == nil || len(s.Recomputes) > 0 || len(s.Swaps) > 0 {
		if f := freeOrder(p, best.Solution, moves, o); f != nil && (best.Solution == nil || f.Solution.StepPicos < best.Solution.StepPicos) {
			best = f
		}
	}
	if best.Solution == nil {
		return nil, err
	}
	best.Solution.Bound = boundsAnyOrder(p)
	return best, nil
}

// freeOrder searches an order and a plan together; nil if it finds none within the budget.
func freeOrder(p *Problem, known *Solution, moves int64, o Options) *Free {
	m := newModel(p)
	line := m.lineOf(snapshot{})
	w := newWalker(m, line, p.BudgetBytes, o.Seed+1)
	w.free, w.order, w.stop = true, newLiberty(m), o.Stop
	least := int64(math.MaxInt64) // that the caller knows of
	if known != nil {
		least = known.StepPicos
		if m.p.Lanes == nil {
			w.load(m.lineOf(snapshot{reruns: known.Recomputes}))
			w.keep()
		}
	}
	w.told = func(w *walker) {
		if w.cost < least && o.Improved != nil {
			least = w.cost
			o.Improved(Progress{Moves: w.moves, StepPicos: w.cost, PeakBytes: w.tree.peak()})
		}
	}
	// Hot from the order that was given; then an order alone, very hot, since its moves cost nothing, and on from there; in between with little heat from the best.
	// One of these finds what the others miss, by the graph.
	run := moves / 6
	for k := 0; k < 5 && w.cost > m.sum && !w.stopped(); k++ {
		w.bases = 60
		switch k {
		case 0:
			w.load(line)
			w.anneal(run, 4096)
		case 1, 3:
			w.load(line)
			w.bases = 100
			w.anneal(run/2, 32768)
			w.bases = 60 + 10*(k-1)
			w.anneal(run, 2048)
		default:
			if w.best != nil {
				w.load(w.best)
			}
			w.anneal(run, 512)
		}
	}
	if w.best == nil {
		return nil
	}
	return w.settleOrder(run, o)
}

// settleOrder states the best line as a problem in its order with a plan, and goes on from there in that order.
func (w *walker) settleOrder(moves int64, o Options) *Free {
	f := &Free{}
	at := make([]int32, w.m.n)
	for j := range at {
		at[j] = -1
	}
	var plan snapshot
	for _, j := range w.best {
		if at[j] < 0 {
			at[j] = int32(len(f.Order))
			f.Order = append(f.Order, j)
			continue
		}
		plan.reruns = append(plan.reruns, Recompute{Stage: int32(len(f.Order)), Op: at[j]})
	}
	slices.SortFunc(plan.reruns, func(a, b Recompute) int { return cmp.Or(cmp.Compare(a.Stage, b.Stage), cmp.Compare(a.Op, b.Op)) })
	plan.reruns = slices.Compact(plan.reruns)
	q, err := Reorder(w.m.p, f.Order)
	if err != nil {
		return nil
	}
	legal := newModel(q)
	plan.reruns = slices.DeleteFunc(plan.reruns, func(r Recompute) bool { return r.Stage > legal.last[r.Op] })
	o.Moves, o.Improved = moves, nil
	sol, _, err := solveFrom(q, o, []snapshot{plan})
	if err != nil {
		return nil
	}
	f.Problem, f.Solution = q, sol
	return f
}

// boundsAnyOrder is what no order can beat.
func boundsAnyOrder(p *Problem) Bound {
	return Bound{PeakBytes: degreeAnyOrder(p), Name: noBound}
}

// degreeAnyOrder is the most that one op needs by itself: operands, outputs and scratch, less every byte that outputs could take from operands. No
// order, recompute or swap changes that. Persistent values count where an op uses them.
func degreeAnyOrder(p *Problem) int64 {
	var most int64
	for j := range p.Ops {
		o := &p.Ops[j]
		need := o.ScratchBytes
		for _, v := range o.In {
			need += p.Values[v].Bytes
		}
		for _, v := range o.Out {
			need += p.Values[v].Bytes
			if slices.ContainsFunc(o.Over, func(pair Over) bool { return pair.Out == v && p.Values[v].Bytes <= p.Values[pair.In].Bytes }) {
				need -= p.Values[v].Bytes
			}
		}
		most = max(most, need)
	}
	return most
}
