package memory

import (
	"cmp"
	"slices"
)

// greedy lowers the peak of a state to a budget: while it is too high, it takes one value off the device at the stage of the peak, the one that costs
// least per byte and overloaded stage. Scores are cached per value and refreshed when a value comes first, so that a step costs a scan of a compact
// array and a few closures; scores grow as operands die, so a refreshed first is nearly always the true first.
type greedy struct {
	s       *state
	budget  int64
	options greedyOptions
	weight  []int64 // prefix sums of the price of a byte, by stage
	cands   []int32 // values that may be taken off, by Def
	cache   []cached
	spent   int64   // see maxSpent
	refused int     // swaps in a row for which the lanes had no room
	fresh   int     // steps since the prices were worked out
	steps   int64   // so far
	noise   *random // if set, scores are raised by up to a quarter at random
}

// greedyOptions says which means the greedy has.
type greedyOptions struct {
	reruns, swaps bool
	anyTime       bool        // waiting for copies is no matter
	pricing       lanePricing // of lanes, where waiting is no matter; no price: that of compute
	lanePrice     int64       // of a picosecond on a lane, of 1024: lanes are free until they are busy, and then what they carried should have been worth it
}

// cached is what is known of the cheapest way to take a value off the device in a gap.
type cached struct {
	gap      gap
	score    uint64
	by       means
	measured bool // the score of a swap is that of a trial, not an estimate
	busy     bool // a swap without waiting was tried in this gap and the lanes had no room
}

// means are the ways to take a value off the device.
type means uint8

const (
	byRerun   means = iota
	bySwap          // where the lanes have room
	byWaiting       // by a swap that compute may have to wait for
	byHurry         // the value is swapped: its copies make haste, and compute may have to wait
)

func newGreedy(s *state, o greedyOptions) *greedy {
	g := &greedy{s: s, options: o, weight: make([]int64, s.m.n+1), cache: make([]cached, len(s.m.p.Values))}
	g.options.swaps = o.swaps && s.w != nil
	for v := range s.m.p.Values {
		x := &s.m.p.Values[v]
		rerun := o.reruns && x.Def >= 0 && s.m.last[x.Def] >= 0
		if x.Bytes > 0 && (rerun || g.options.swaps && (!x.NoSwap || s.m.homeFree(int32(v)) || s.m.heir[v] >= 0)) {
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
	g.fresh, g.refused = 0, 0
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
	g.steps++
	p := g.s.tree.argmax()
	peak := g.s.tree.peak()
	for {
		v := g.best(p)
		if v < 0 {
			return false
		}
		c := &g.cache[v]
		was := c.score
		if c.measured {
			c.measured = false
			if g.swap(v, p, peak, noRatio) {
				c.gap = gap{}
				return true
			}
			c.score = noRatio
			continue
		}
		pl := g.evaluate(v, p)
		if c.score > was {
			continue
		}
		if c.by == byRerun {
			if g.apply(pl, peak) {
				c.gap = gap{}
				return true
			}
			c.score = noRatio
			continue
		}
		if g.swap(v, p, peak, was) {
			c.gap = gap{}
			return true
		}
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

// evaluate finds the cheapest way to take v off the device at stage p and caches it; if it is a rerun, that is returned.
func (g *greedy) evaluate(v, p int32) (best plan) {
	s := g.s
	c := &g.cache[v]
	c.score, c.measured = noRatio, false
	where, ok := s.idle(v, p)
	if !ok || s.isAway(v, p) {
		*c = cached{gap: gap{p - 1, p + 1}, score: noRatio}
		return plan{}
	}
	if c.gap != where {
		*c = cached{gap: where, score: noRatio}
	}
	if x := &s.m.p.Values[v]; g.options.reruns && x.Def >= 0 {
		if last := min(where.to, s.m.last[x.Def], s.m.n-1); last > p {
			best = g.cheapestRerun(v, p, last, where)
		}
	}
	if g.options.swaps {
		g.estimateSwap(v, p, where)
	}
	return best
}

// cheapestRerun tries the last stage in which v can be made again, and the last one in which more of its operands are still there.
func (g *greedy) cheapestRerun(v, p, last int32, where gap) (best plan) {
	s := g.s
	c := &g.cache[v]
	x := &s.m.p.Values[v]
	try := func(t int32) {
		pl := plan{stage: t}
		if !s.closure(&pl, t, x.Def, g.budget) {
			return
		}
		score := ratio(pl.picos, x.Bytes*max(1, g.weight[t]-g.weight[where.from+1]))
		if g.noise != nil {
			score += score / 1024 * uint64(g.noise.below(256))
		}
		if score < c.score {
			c.score, c.by, best = score, byRerun, pl
		}
	}
	try(last)
	soonest := last
	for _, u := range s.m.in[x.Def] {
		if _, end := s.life(u, last); stageOf(end) < soonest && stageOf(end) > p {
			soonest = stageOf(end)
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
	for k, j := range pl.ops {
		if s.blocked(pl.stage, j) { // by an op of the same plan
			for k--; k >= 0; k-- {
				s.remove(pl.stage, pl.ops[k])
			}
			return false
		}
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
