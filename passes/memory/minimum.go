package memory

// The peak-minimiser looks for the smallest peak at any cost. It does not know the budget, so the minimum that it finds is a property of the
// problem. It tries, in this order: the greedy straight down; for several spacings of checkpoints, running again in each stage whatever its op needs from the
// checkpoints; then, of a small problem, exhaustion, which ends the search; else annealing with a price on bytes only, from the best of these.

// leastPeak is what the minimiser found.
type leastPeak struct {
	plan snapshot
	peak int64
}

// leastPeak looks for the smallest peak, which is at least floor, and stops as soon as it has one of at most enough. What it does until then
// does not depend on enough, so whether it gets there does not depend on it either.
func (m *model) leastPeak(floor, enough int64) leastPeak {
	enough = max(floor, enough)
	s := newState(m)
	best := leastPeak{plan: s.snap(), peak: s.tree.peak()}
	keep := func(s *state) {
		if p := s.tree.peak(); p < best.peak {
			best = leastPeak{plan: s.snap(), peak: p}
		}
	}
	if best.peak <= enough {
		return best
	}
	for _, o := range m.leastOptions() {
		s := newState(m)
		newGreedy(s, o).reduceUntil(floor, enough, 20*int(m.n)+1000)
		if keep(s); best.peak <= enough {
			return best
		}
	}
	if !m.p.Recompute {
		return best
	}
	work := 300000 // reruns that all trials together may add
	for _, o := range []refillOptions{{near: 8, linger: 0}, {near: 1, linger: 0}, {near: 2, linger: 1}, {near: 8, linger: 8}} {
		for o.parts = m.n/2 + 1; o.parts > 0 && best.peak > enough; o.parts /= 2 {
			s := newState(m)
			ok := s.refill(o, min(60000+2*int(m.n), work))
			work -= s.count
			if !ok {
				break // fewer checkpoints need more reruns
			}
			keep(s)
		}
	}
	if best.peak <= enough {
		return best
	}
	if m.exact(&best, floor, enough) || best.peak <= enough {
		return best
	}
	s = newState(m)
	s.restore(best.plan)
	x := newSearch(s, floor, 0)
	x.descend(&best, floor, enough)
	if m.p.Lanes == nil {
		m.wring(&best, floor, enough)
	}
	return best
}

// wring lets walkers look for a peak just below the best, in turn from there and from nothing, until several in a row have found none.
func (m *model) wring(best *leastPeak, floor, enough int64) {
	const tries = 12
	moves := min(20000, 4000000/int64(m.n+1))
	w := newWalker(m, m.lineOf(best.plan), floor, 1)
	for k := 0; k < tries && best.peak > max(floor, enough); k++ {
		w.budget = best.peak - 1 - (best.peak-floor)/64
		if k%2 == 0 {
			w.load(m.lineOf(best.plan))
		} else {
			w.load(m.lineOf(snapshot{}))
		}
		if w.squeeze(moves, uint(k/2)) {
			*best = leastPeak{plan: planOfLine(m, w.line()), peak: w.tree.peak()}
			k = -1
		}
	}
}

// squeeze anneals until the peak is within budget; the energy is what the events exceed it by, and each step of cold quarters the heat.
func (w *walker) squeeze(moves int64, cold uint) bool {
	over := w.tree.over(w.budget)
	heat0 := max(over/64, w.tree.peak()/8) >> (2 * cold)
	for i := range moves {
		if over == 0 {
			return true
		}
		left := (moves - i) * 1024 / moves
		heat := heat0 * left / 1024 * left / 1024
		if w.move(); len(w.done) == 0 {
			continue
		}
		if after := w.tree.over(w.budget); after > over && after-over > heat>>16*w.rnd.patience()+heat&0xffff*w.rnd.patience()>>16 {
			w.undo()
		} else {
			over = after
		}
	}
	return over == 0
}

// leastOptions lists the means with which the greedy goes straight down.
func (m *model) leastOptions() (list []greedyOptions) {
	if m.p.Lanes != nil {
		list = append(list, greedyOptions{swaps: true, anyTime: true})
	}
	if m.p.Recompute {
		list = append(list, greedyOptions{reruns: true})
	}
	if len(list) == 2 {
		list = append(list, greedyOptions{swaps: true, reruns: true, anyTime: true})
	}
	return list
}

// refillOptions says which values refill takes for granted.
type refillOptions struct {
	parts  int32 // values that carry the computation across one of the parts-1 cuts that divide the order evenly are kept throughout
	near   int32 // values are kept over gaps of at most so many stages in the plan without recompute
	linger int32 // and for so many stages after any event
}

// refill makes the plan in which every stage runs again whatever its op needs and cannot take for granted. It gives up at limit reruns.
func (s *state) refill(o refillOptions, limit int) bool {
	checkpoint := make([]bool, len(s.m.p.Values))
	for v := range s.m.p.Values {
		x := &s.m.p.Values[v]
		readers := s.m.readers[v]
		if x.Def < 0 || s.m.last[x.Def] < 0 || len(readers) == 0 {
			checkpoint[v] = true
			continue
		}
		cut := (int64(x.Def)*int64(o.parts)/int64(s.m.n) + 1) * int64(s.m.n) / int64(o.parts) // first op behind the next cut
		checkpoint[v] = cut < int64(s.m.n) && s.nearReader(int32(v), int32(cut))
	}
	var need func(u, t int32) bool
	need = func(u, t int32) bool {
		d := s.m.p.Values[u].Def
		if checkpoint[u] || !s.canRerun(t, d) || t-s.lastTouch(u, t) <= o.linger || t-s.m.lastBase(u, t) <= o.near {
			return true
		}
		for _, w := range s.m.in[d] {
			if !need(w, t) {
				return false
			}
		}
		if s.count >= limit {
			return false
		}
		if s.canRerun(t, d) {
			s.add(t, d)
		}
		return true
	}
	s.hold()
	for t := range s.m.n {
		for _, u := range s.m.in[t] {
			if !need(u, t) {
				return false
			}
		}
	}
	s.settle()
	return true
}

// nearReader says whether the first reader of v at or after op cut is one of the next few ops, so that v carries the
// computation across the cut.
func (s *state) nearReader(v, cut int32) bool {
	for _, j := range s.m.readers[v] {
		if j >= cut {
			return j < cut+8
		}
	}
	return false
}

// lastBase is the stage of the last event of v before op t in the plan without recompute.
func (m *model) lastBase(v, t int32) int32 {
	at := m.p.Values[v].Def
	for _, j := range m.readers[v] {
		if j >= t {
			break
		}
		at = j
	}
	return at
}

// lastTouch is the stage of the last event of v, run or use, before op t.
func (s *state) lastTouch(v, t int32) int32 {
	birth, _ := s.life(v, t)
	uses := s.uses[v]
	if k := before(uses, event(t, t)); k > 0 {
		return max(birth, stageOf(uses[k-1]))
	}
	return birth
}

// descend anneals towards lower and lower peaks, at no regard for time.
func (x *search) descend(best *leastPeak, floor, enough int64) {
	moves := min(12000, 4000000/int64(x.m.n+1)) / int64(1+x.count/int(x.m.n))
	low := floor
	for range 10 {
		if best.peak <= max(low, enough) {
			return
		}
		x.budget = low + (best.peak-low)/2
		if x.squeeze(moves) {
			*best = leastPeak{plan: x.snap(), peak: x.tree.peak()}
			continue
		}
		low = x.budget + 1
		x.load(best.plan)
	}
}

// squeeze anneals until the peak is within budget; the energy is what the stages exceed it by.
func (x *search) squeeze(moves int64) bool {
	over := x.tree.over(x.budget)
	heat0 := over / 64
	for i := range moves {
		if over == 0 {
			return true
		}
		left := (moves - i) * 1024 / moves
		heat := heat0 / 1024 * left / 1024 * left
		if !x.move() {
			continue
		}
		after := x.tree.over(x.budget)
		if after > over && after-over > heat>>16*x.rnd.patience() || !x.hostFits() {
			if x.undo() {
				over = x.tree.over(x.budget)
			}
		} else {
			over = after
		}
	}
	return over == 0
}
