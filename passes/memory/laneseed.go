package memory

import "math"

// Seeds by the price of a lane. Whether a swap delays anything depends on all others, and to ask the clock about each is dear where they are many. So the lanes get a price
// instead, per picosecond that they are busy, and the greedy compares swaps and reruns by that alone. Then all copies are placed at once, within the
// bytes that the plan leaves them, and the clock is asked once per plan. At a low price the lanes are the bottleneck, at a high one they idle; the best plan is in between, and
// each price takes milliseconds.
//
// A step of equal blocks has equal values, and at one price all of them would be swapped or none. The best plan is often in between: some of the blocks swap. So there are
// scales on which the price differs from value to value, at random or along the order.

// spread says how the price differs between values.
type spread int

const (
	evenly   spread = iota
	anyhow          // from a half to one and a half, at random
	byLength        // as above, but the less the longer the value is idle
	spreads
)

// lanePricing is the price of lanes: of a picosecond, of 1024, for each value.
type lanePricing struct {
	price  int64
	spread spread
}

// of is the price for a copy of v that is away for some of the n stages.
func (l lanePricing) of(v, stages, n int32) int64 {
	switch l.spread {
	case anyhow:
		r := random{uint64(v)}
		return l.price/2 + l.price*int64(r.below(1024))/1024
	case byLength:
		return l.price/2 + l.price*int64(n-stages)/int64(n)
	}
	return l.price
}

// priceSeeds offers x the plans of a scale of prices, and of prices around the best of these.
func (m *model) priceSeeds(x *search) {
	if m.p.Lanes == nil {
		return
	}
	bestCost := int64(math.MaxInt64)
	var best lanePricing
	var bestPlan *state
	try := func(l lanePricing) {
		s := newState(m)
		g := newGreedy(s, greedyOptions{reruns: m.p.Recompute, swaps: true, anyTime: true, pricing: l})
		if !g.reduce(x.budget, 20*int(m.n)+1000) {
			return
		}
		s.settleSwaps(x.budget)
		x.offer(s)
		if s.tree.peak() <= x.budget && s.hostFits() {
			if cost := s.stepPicos(); cost < bestCost {
				bestCost, best, bestPlan = cost, l, s
			}
		}
	}
	const top = 4096 // a picosecond of a lane is worth four of compute
	for price := int64(top); price >= 16; price /= 2 {
		try(lanePricing{price, anyhow})
		try(lanePricing{price, evenly})
		if !m.p.Recompute && price < top/2 {
			break // there is nothing to compare it with
		}
		if m.n > manyOps && price < best.price/2 {
			break // the lanes have become the bottleneck, and every further price makes more of it
		}
	}
	for step := best.price / 4; step > best.price/40; step = step * 2 / 3 {
		middle := best.price
		for k := spread(0); k < spreads; k++ {
			try(lanePricing{middle + step, k})
			try(lanePricing{middle - step, k})
		}
	}
	if bestPlan != nil {
		bestPlan.dropIdle(x.budget)
		x.offer(bestPlan)
	}
}

// settleSwaps takes back all haste and places the copies within budget.
func (s *state) settleSwaps(budget int64) {
	s.w.limit = budget
	for _, a := range s.w.out {
		a.freeBy, a.backAt = math.MaxInt32, -1
	}
	s.place()
}
