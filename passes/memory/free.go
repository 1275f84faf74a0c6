package memory

import (
	"fmt"
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

// SolveFree plans p within its budget, and its order with it. The result is never slower than Solve's with the same options that it is given, and the same
// options give the same plan. Below the smallest peak that it can do it returns an *InfeasibleError. The bounds in the solution hold for any order.
func SolveFree(p *Problem, o Options) (*Free, error) {
	if err := Validate(p); err != nil {
		return nil, err
	}
	order := make([]int32, len(p.Ops))
	for i := range order {
		order[i] = int32(i)
	}
	sol, err := Solve(p, o)
	if err != nil {
		return nil, err
	}
	sol.Bound = Bound{PeakBytes: degreeAnyOrder(p), Name: noBound}
	return &Free{Order: order, Problem: p, Solution: sol}, nil
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
