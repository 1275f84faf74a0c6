package memory

import (
	"cmp"
	"slices"
)

// greedy lowers the peak of a state to a budget: while it is too high, it takes one value off the device at the stage of the peak, the one that costs
// least per byte and overloaded stage. Scores are cached per value and refreshed when a value comes first, so that a step costs a scan of a compact
// array and a few closures; scores grow as operands die, so a refreshed first is nearly always the true first.
type greedy struct {
	s      *state
	budget int64
	weight []int64 // prefix sums of the price of a byte, by stage
	cands  []int32 // values that may be taken off, by Def
	cache  []cached
	fresh  int // steps since the prices were worked out
	noise  func() uint64
}

type cached struct {
	gap   gap
	score uint64
	stage int32 // of the rerun
}

func newGreedy(s *state) *greedy {
	g := &greedy{s: s, weight: make([]int64, s.m.n+1), cache: make([]cached, len(s.m.p.Values))}
	for v := range s.m.p.Values {
		if x := &s.m.p.Values[v]; x.Bytes > 0 && x.Def >= 0 && s.m.last[x.Def] >= 0 {
			g.cands = append(g.cands, int32(v))
		}
	}
	slices.SortFunc(g.cands, func(a, b int32) int {
		return cmp.Or(cmp.Compare(s.m.p.Values[a].Def, s.m.p.Values[b].Def), cmp.Compare(a, b))
	})
	return g
}

// reprice counts the overloaded stages; all of them have the same price.
func (g *greedy) reprice() {
	for t := range g.s.m.n {
		g.weight[t+1] = g.weight[t]
		if g.s.tree.at(t) > g.budget {
			g.weight[t+1]++
		}
	}
	for i := range g.cache {
		g.cache[i] = cached{}
	}
	g.fresh = 0
}

// reduce adds reruns until the peak is within budget; false if it found no way on. steps bounds its work.
func (g *greedy) reduce(budget int64, steps int) bool {
	return g.reduceUntil(budget, budget, steps)
}

// reduceUntil aims at budget and stops at a peak of at most enough.
func (g *greedy) reduceUntil(budget, enough int64, steps int) bool {
	g.budget = budget
	g.reprice()
	for ; g.s.tree.peak() > enough; steps-- {
		if steps == 0 {
			return false
		}
		if g.fresh++; g.fresh > 200 {
			g.reprice()
		}
		if !g.step() {
			return false
		}
	}
	return true
}

// step takes one value off the device at the stage of the peak.
func (g *greedy) step() bool {
	p := g.s.tree.argmax()
	peak := g.s.tree.peak()
	for {
		v := g.best(p)
		if v < 0 {
			return false
		}
		c := &g.cache[v]
		was := c.score
		pl := g.evaluate(v, p)
		if c.score > was {
			continue
		}
		if g.apply(pl, peak) {
			c.gap = gap{}
			return true
		}
		c.score = noRatio
	}
}

// best scans for the value with the least cached score at stage p, or -1.
func (g *greedy) best(p int32) int32 {
	found, least := int32(-1), noRatio
	for _, v := range g.cands {
		if g.s.m.p.Values[v].Def >= p {
			break
		}
		c := &g.cache[v]
		if c.gap.from >= p || p >= c.gap.to {
			g.evaluate(v, p)
		}
		if c.score < least {
			found, least = v, c.score
		}
	}
	return found
}

// evaluate finds the cheapest rerun that takes v off the device at stage p, caches its score and returns it.
func (g *greedy) evaluate(v, p int32) (best plan) {
	s := g.s
	c := &g.cache[v]
	c.score = noRatio
	where, ok := s.idle(v, p)
	if !ok {
		c.gap = gap{p - 1, p + 1}
		return plan{}
	}
	c.gap = where
	x := &s.m.p.Values[v]
	last := min(where.to, s.m.last[x.Def], s.m.n-1)
	if last <= p {
		return plan{}
	}
	try := func(t int32) {
		pl := plan{stage: t}
		if !s.closure(&pl, t, x.Def, g.budget) {
			return
		}
		if score := ratio(pl.picos, x.Bytes*max(1, g.weight[t]-g.weight[where.from+1])); score < c.score {
			c.score, best = score, pl
		}
	}
	try(last)
	soonest := last
	for _, u := range s.m.in[x.Def] {
		if _, end := s.life(u, last); stageOf(end) < last && stageOf(end) > p {
			if stageOf(end) < soonest {
				soonest = stageOf(end)
			}
		}
	}
	if soonest < last {
		try(soonest)
	}
	return best
}

// apply adds the reruns of pl unless one of the stages that they touch comes to limit or more.
func (g *greedy) apply(pl plan, limit int64) bool {
	s := g.s
	for _, j := range pl.ops {
		s.add(pl.stage, j)
	}
	if s.tree.at(pl.stage) < limit && s.tree.peak() <= limit {
		return true
	}
	for i := len(pl.ops) - 1; i >= 0; i-- {
		s.remove(pl.stage, pl.ops[i])
	}
	return false
}

// dropIdle removes reruns, the dearest first, without which the peak stays within budget, until there are none.
func (s *state) dropIdle(budget int64) {
	type rerun struct{ t, j int32 }
	for changed := true; changed; {
		changed = false
		list := make([]rerun, 0, s.count)
		for t, ops := range s.extra {
			for _, j := range ops {
				list = append(list, rerun{int32(t), j})
			}
		}
		slices.SortStableFunc(list, func(a, b rerun) int {
			return cmp.Compare(s.m.p.Ops[b.j].Picos, s.m.p.Ops[a.j].Picos)
		})
		for _, r := range list {
			s.remove(r.t, r.j)
			if s.tree.peak() > budget {
				s.add(r.t, r.j)
			} else {
				changed = true
			}
		}
	}
}
