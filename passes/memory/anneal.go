package memory

import (
	"math"
	"math/bits"
)

// Annealing works on all sets of reruns, feasible or not: energy is the time of all reruns plus a price for every byte and stage over budget. The
// price rises while the plan is infeasible and falls while it is feasible, so that the search keeps walking along the budget. It is best
// where the order is irregular; layered graphs do better with rebuild (destroy and repair).

// search is a state with what the improving searches share: a list of its reruns to draw from, and the best feasible plan so far.
type search struct {
	*state
	budget int64
	rnd    random
	list   []int64         // reruns as events, in no order
	where  map[int64]int32 // position in list
	cands  []int32         // values whose op can run again, by Def
	best   []Recompute     // the best plan within budget, if any
	cost   int64           // its time; math.MaxInt64: none
}

func newSearch(s *state, budget int64, seed uint64) *search {
	x := &search{state: s, budget: budget, rnd: random{seed}, where: map[int64]int32{}, cost: math.MaxInt64, cands: newGreedy(s).cands}
	for t, ops := range s.extra {
		for _, j := range ops {
			x.enlist(event(int32(t), j))
		}
	}
	x.record()
	return x
}

func (x *search) enlist(e int64) {
	x.where[e] = int32(len(x.list))
	x.list = append(x.list, e)
}

func (x *search) put(t, j int32) {
	x.add(t, j)
	x.enlist(event(t, j))
}

func (x *search) take(t, j int32) {
	x.remove(t, j)
	e := event(t, j)
	i, last := x.where[e], x.list[len(x.list)-1]
	x.list[i] = last
	x.where[last] = i
	x.list = x.list[:len(x.list)-1]
	delete(x.where, e)
}

// record keeps the present plan if it is feasible and better than the best.
func (x *search) record() {
	if x.picos < x.cost && x.tree.peak() <= x.budget {
		x.best, x.cost = x.recomputes(), x.picos
	}
}

// load makes a plan the present one.
func (x *search) load(plan []Recompute) {
	x.hold()
	for len(x.list) > 0 {
		e := x.list[len(x.list)-1]
		x.take(stageOf(e), int32(e))
	}
	for _, r := range plan {
		x.put(r.Stage, r.Op)
	}
	x.settle()
}

// scaled is a*b/2^24, bounded.
func scaled(a, b int64) int64 {
	hi, lo := bits.Mul64(uint64(a), uint64(b))
	if hi>>22 != 0 {
		return math.MaxInt64 / 4
	}
	return int64(hi<<40 | lo>>24)
}

// anneal makes moves and leaves the best plan in x.best; the state ends wherever it is.
func (x *search) anneal(moves int64) {
	n := x.m.n
	if n < 2 || len(x.cands) == 0 {
		return
	}
	mean := x.m.sum/int64(n) + 1
	area := max(1, x.tree.peak()/64)
	price := max(1, int64(min(ratio(mean, area)>>6, math.MaxInt64/8))) // of 2^24: a rerun of mean cost for a 64th of the peak
	heat0 := mean
	if x.count > 0 {
		heat0 = max(1, (x.picos-x.m.sum)/int64(x.count))
	}
	over := x.tree.over(x.budget)
	var done []int64 // events of the move: >= 0 added, ^e removed
	for i := range moves {
		heat := heat0 - int64(float64(heat0)*float64(i)/float64(moves))
		heat = heat0>>8 + heat*heat/heat0/2
		was := x.picos + scaled(over, price)
		done = x.move(done[:0])
		if len(done) == 0 {
			continue
		}
		after := x.tree.over(x.budget)
		is := x.picos + scaled(after, price)
		if is > was && is-was > heat*x.rnd.patience()>>16 {
			x.undo(done)
		} else {
			over = after
			if over == 0 {
				x.record()
			}
		}
		if i%16 == 0 {
			if over > 0 {
				price = min(price+price/50+1, math.MaxInt64/8)
			} else {
				price = max(price-price/200, 1)
			}
		}
	}
}

func (x *search) undo(done []int64) {
	for k := len(done) - 1; k >= 0; k-- {
		if e := done[k]; e >= 0 {
			x.take(stageOf(e), int32(e))
		} else {
			x.put(stageOf(^e), int32(^e))
		}
	}
}

// move makes one random move and appends what it did to done.
func (x *search) move(done []int64) []int64 {
	kind := x.rnd.below(100)
	if len(x.list) == 0 {
		kind = 99
	}
	switch {
	case kind < 35:
		e := x.list[x.rnd.below(len(x.list))]
		x.take(stageOf(e), int32(e))
		return append(done, ^e)
	case kind < 60:
		return x.shiftOne(done)
	}
	done = x.addOne(done)
	if len(done) > 0 && x.rnd.below(3) == 0 {
		e := x.list[x.rnd.below(len(x.list))]
		x.take(stageOf(e), int32(e))
		done = append(done, ^e)
	}
	return done
}

// shiftOne moves a rerun to another stage of the gap in which it lies.
func (x *search) shiftOne(done []int64) []int64 {
	e := x.list[x.rnd.below(len(x.list))]
	t, j := stageOf(e), int32(e)
	v := x.m.p.Ops[j].Out[0]
	_, end := x.life(v, t)
	lo, hi := j+1, min(stageOf(end), x.m.last[j])
	if birth, was := x.life(v, t-1); true {
		lo = max(birth, stageOf(was)) + 1
	}
	to := t
	if x.rnd.below(2) == 0 && len(x.m.in[j]) > 0 {
		u := x.m.in[j][x.rnd.below(len(x.m.in[j]))]
		uses := x.uses[u]
		to = stageOf(uses[x.rnd.below(len(uses))])
	} else if hi > lo {
		to = lo + int32(x.rnd.below(int(hi-lo+1)))
	}
	if to == t || to <= j || !x.canRerun(to, j) {
		return done
	}
	x.take(t, j)
	x.put(to, j)
	return append(done, ^e, event(to, j))
}

// addOne takes a value off the device in a stage that is over budget or nearly so.
func (x *search) addOne(done []int64) []int64 {
	n := x.m.n
	p := x.tree.firstOver(int32(x.rnd.below(int(n))), x.budget)
	if p == n {
		p = x.tree.firstOver(0, x.budget)
	}
	if p == n {
		p = x.tree.firstOver(int32(x.rnd.below(int(n))), x.budget-x.budget/16)
		if p == n {
			p = x.tree.argmax()
		}
	}
	upto := len(x.cands)
	for upto > 0 && x.m.p.Values[x.cands[upto-1]].Def >= p {
		upto--
	}
	if upto == 0 {
		return done
	}
	for range 12 {
		v := x.cands[x.rnd.below(upto)]
		g, ok := x.idle(v, p)
		if !ok {
			continue
		}
		j := x.m.p.Values[v].Def
		last := min(g.to, x.m.last[j], n-1)
		if last <= p {
			continue
		}
		t := last
		if x.rnd.below(2) == 0 {
			t = p + 1 + int32(x.rnd.below(int(last-p)))
		}
		if x.rnd.below(4) == 0 {
			pl := plan{stage: t}
			if !x.closure(&pl, t, j, x.budget) {
				continue
			}
			for _, k := range pl.ops {
				x.put(t, k)
				done = append(done, event(t, k))
			}
			return done
		}
		if x.canRerun(t, j) {
			x.put(t, j)
			return append(done, event(t, j))
		}
	}
	return done
}
