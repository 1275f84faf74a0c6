package memory

import "sort"

// This file is what the greedy knows of swaps.

// maxRefused is after how many swaps in a row for which the lanes had no room no more are tried, until prices are worked out anew.
const maxRefused = 64

// maxSpent bounds the copies and stages that all trials together may go through; then the rest is done by reruns or, without those, by swaps that do not
// look at the clock. It is reached beyond some thousand ops with hundreds of swaps.
const maxSpent = 20000000

// present finds the swap that has v's gap around stage p but leaves v on the device there, or nil.
func (s *state) present(v, p int32) *away {
	for _, a := range s.w.of[v] {
		if !a.covers(p) && (!a.wraps && a.after < p && p < a.use || a.wraps && (p < a.use || p > a.after)) {
			return a
		}
	}
	if h := s.m.heir[v]; h >= 0 {
		if a := s.wrap(h); a != nil && p > a.after && p < a.free {
			return a
		}
	}
	return nil
}

// estimateSwap caches the cheapest way to swap v at stage p if that is cheaper than what is cached.
func (g *greedy) estimateSwap(v, p int32, where gap) {
	s := g.s
	c := &g.cache[v]
	out, in := s.m.outPicos[v], s.m.inPicos[v]
	bytes := s.m.p.Values[v].Bytes
	better := func(by means, cost, from, to int64) {
		if score := ratio(cost, bytes*max(1, to-from)); score < c.score {
			c.score, c.by = score, by
		}
	}
	if a := s.present(v, p); a != nil {
		cost := out
		if p >= a.before && p < a.use {
			cost = in
		}
		better(byHurry, cost, g.weight[p], g.weight[p+1])
		return
	}
	a := s.awayAt(v, p)
	if a == nil {
		return
	}
	if !s.needsOut(a) {
		out = 0
	}
	begin := s.begins()
	n := int(s.m.n)
	from, to := g.weight[where.from+1], g.weight[min(where.to, s.m.n)]
	if a.wraps {
		if a.idle {
			better(bySwap, 0, 0, g.weight[n])
			return
		}
		from, to = 0, g.weight[a.use]+g.weight[n]-g.weight[a.after+1]
	}
	wait := out + in
	if g.options.anyTime && g.options.pricing.price > 0 {
		wait = wait / 1024 * g.options.pricing.of(v, where.to-where.from, s.m.n)
		if !a.wraps { // what the gap itself is too short for
			wait += max(0, out+in-(begin[a.use]-begin[a.after+1]))
		}
	}
	better(byWaiting, wait, from, to)
	if c.busy || g.options.anyTime || g.refused > maxRefused {
		return
	}
	free := sort.Search(n, func(t int) bool { return begin[t] >= begin[a.after+1]+out })
	back := sort.Search(n, func(t int) bool { return begin[t] > begin[a.use]-in }) - 1
	room := free <= int(p) && int(p) < back
	if a.wraps {
		room = int(p) < back || int(p) >= free
	}
	if room {
		better(bySwap, (out+in)/1024*g.options.lanePrice+1, from, to)
	}
}

// needsOut is writes for a swap that is not there yet.
func (s *state) needsOut(a *away) bool {
	if a.wraps {
		return s.m.p.Values[a.value].Becomes >= 0
	}
	return !s.clean(a.value)
}

// swap carries out what is cached for v at stage p. If it turns out dearer than expected, it is undone, what it really costs is cached and the
// result is false; so it is if it does not help.
func (g *greedy) swap(v, p int32, limit int64, expected uint64) bool {
	s := g.s
	c := &g.cache[v]
	if g.spent += int64(s.m.n)/4 + 4*int64(len(s.w.out)); g.spent > maxSpent && !g.options.anyTime {
		g.options.swaps, g.options.anyTime = !g.options.reruns, !g.options.reruns
		g.reprice()
		return false
	}
	before := g.stepPicos()
	a := s.present(v, p)
	fresh := a == nil
	if fresh {
		if a = s.awayAt(v, p); a == nil {
			c.score = noRatio
			return false
		}
	}
	freeBy, backAt, free, back := a.freeBy, a.backAt, a.free, a.before
	if c.by != bySwap {
		a.hurry(p)
	}
	if g.options.anyTime && !a.idle { // nothing is on the lanes' account: gone at once, back at the last moment
		a.freeBy, a.backAt = a.after+1, a.use
		free, back = a.freeBy, a.backAt
	}
	if fresh {
		a.free, a.before = free, back
		s.takeAway(a)
	} else {
		free, back = s.reposition(a, free, back)
	}
	g.place()
	fits := s.isAway(v, p) && s.tree.at(p) < limit && s.tree.peak() <= limit && s.hostFits()
	score := noRatio
	if fits {
		out, in := s.m.outPicos[v], s.m.inPicos[v]
		stages := max(1, g.weight[min(c.gap.to, s.m.n)]-g.weight[c.gap.from+1])
		if !fresh {
			stages = max(1, g.weight[p+1]-g.weight[p])
		}
		score = ratio(max(g.stepPicos()-before, 0)+(out+in)/1024*g.options.lanePrice+1, s.m.p.Values[v].Bytes*stages)
		g.refused = 0
		if expected == noRatio || score/2 <= expected || g.options.anyTime {
			return true
		}
	}
	if a.freeBy, a.backAt = freeBy, backAt; fresh {
		s.bringBack(a)
	} else {
		s.reposition(a, free, back)
	}
	g.place()
	if !fits && c.by == bySwap && !c.busy {
		c.busy = true
		g.refused++
		g.evaluate(v, p)
		return false
	}
	c.score, c.measured = score, fits
	return false
}

// place puts the copies on the lanes, if time matters.
func (g *greedy) place() {
	if !g.options.anyTime {
		g.s.place()
	}
}

// stepPicos is the time of the step, if that matters.
func (g *greedy) stepPicos() int64 {
	if g.options.anyTime {
		return 0
	}
	return g.s.stepPicos()
}

// hurry sets the limits of a so that it is away at stage p.
func (a *away) hurry(p int32) {
	if a.wraps {
		if p < a.use {
			a.backAt = max(a.backAt, p+1)
		} else {
			a.freeBy = min(a.freeBy, p)
		}
		return
	}
	a.freeBy = min(a.freeBy, p)
	a.backAt = max(a.backAt, p+1)
}
