package pack

import (
	"cmp"
	"slices"
)

// exactLimit is the number of items from which an era is left to the heuristics.
const exactLimit = 4000

// refine lets the exact search work on the eras that exceed the target, the highest first, within so many nodes.
func (s *search) refine(nodes int64) {
	if s.done() || nodes <= 0 {
		return
	}
	l := s.p.layout(s.items)
	target := s.target - l.base
	for s.ctx.Err() == nil && s.best.Nodes < nodes && len(l.eras) > 0 {
		e := slices.MaxFunc(l.eras, func(a, b *era) int { return cmp.Compare(a.height, b.height) })
		if e.height <= target || len(e.items) > exactLimit || int64(len(e.items)) > nodes-s.best.Nodes {
			break // each node places one item at most: with fewer nodes than items no placement comes about
		}
		m := &minimiser{era: e, x: newExact(s.ctx, e.solids, e.slack), left: nodes - s.best.Nodes}
		m.minimise(target, s.capacity > 0)
		s.best.Nodes += m.x.nodes
		if e.height > target {
			break // the others need not be lower than this one
		}
	}
	offsets := make([]int64, len(s.p.items))
	at, bound := int64(0), int64(0)
	for _, i := range l.ground {
		offsets[i] = at
		at += s.p.items[i].bytes
	}
	for _, e := range l.eras {
		bound = max(bound, e.bound)
		for k, i := range e.items {
			offsets[i] = l.base + e.best[k]
		}
	}
	s.take("exact", offsets)
	if bound += l.base - l.rounded; s.p.isExact && bound > s.best.BoundBytes {
		s.best.BoundBytes, s.best.BoundName = bound, "exhausted"
	}
}

// minimiser lowers one era by the exact search.
type minimiser struct {
	era   *era
	x     *exact
	left  int64 // nodes
	ranks [][]int32
}

// minimise looks for a height of at most target, or with once unset for the smallest one. What the search excludes raises the bound.
func (m *minimiser) minimise(target int64, once bool) {
	e := m.era
	m.ranks = e.ranks()
	low := max(e.bound, target) // the least height that is of use and not excluded
	if once {
		m.decide(low, m.left)
		return
	}
	for e.height > low {
		if m.decide(low, m.left/2) != excluded {
			break
		}
		low = e.bound
	}
	// Undecided at low: narrow from above, where the search is easy, and note how far down it got.
	for floor := low; e.height-e.step > floor && m.left > 0; {
		middle := floor + (e.height-floor)/2/e.step*e.step
		switch m.decide(middle, max(m.left/4, min(m.left, 1000))) {
		case excluded:
			floor = max(floor, e.bound)
		case limit:
			floor = middle
		}
	}
}

// decide asks whether the era fits under a height, by runs of growing length over the portfolio of candidate orders and rules.
func (m *minimiser) decide(height, nodes int64) verdict {
	e, x := m.era, m.x
	nodes = min(nodes, m.left)
	end := x.nodes + nodes
	defer func(before int64) { m.left -= x.nodes - before }(x.nodes)
	for t := range x.weight {
		x.weight[t] = 1
	}
	for k := 0; x.nodes < end; k++ {
		portfolio := len(m.ranks) * int(numRules)
		x.rule, x.rank = rule(k%int(numRules)), m.ranks[k/int(numRules)%len(m.ranks)]
		switch x.run(height, min(end-x.nodes, 250<<min(k/portfolio, 40))) {
		case fits:
			e.height = 0
			for i := range x.items {
				e.best[i] = x.items[i].offset
				e.height = max(e.height, x.items[i].offset+x.items[i].raw)
			}
			return fits
		case excluded:
			e.bound = max(e.bound, height+e.step)
			return excluded
		}
		if x.ctx.Err() != nil {
			break
		}
	}
	return limit
}

// ranks are the orders in which candidates are tried.
func (e *era) ranks() [][]int32 {
	life := func(s *solid) int64 { return int64(s.end - s.start) }
	orders := []func(a, b *solid) int{
		func(a, b *solid) int { return cmp.Compare(life(b)*b.bytes, life(a)*a.bytes) },
		func(a, b *solid) int { return cmp.Or(cmp.Compare(life(b), life(a)), cmp.Compare(b.bytes, a.bytes)) },
		func(a, b *solid) int { return cmp.Or(cmp.Compare(b.bytes, a.bytes), cmp.Compare(life(b), life(a))) },
	}
	var out [][]int32
	order := make([]int32, len(e.solids))
	for _, compare := range orders {
		for k := range order {
			order[k] = int32(k)
		}
		slices.SortStableFunc(order, func(a, b int32) int { return compare(&e.solids[a], &e.solids[b]) })
		rank := make([]int32, len(order))
		for k, i := range order {
			rank[i] = int32(k)
		}
		out = append(out, rank)
	}
	return out
}
