package memory

import (
	"math"
	"math/bits"
	"slices"
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
	swaps  []int32         // values that can be swapped, by Def
	best   snapshot        // the best plan within budget, if any
	cost   int64           // its time; math.MaxInt64: none
	done   []change        // the move under way
	moves  int64           // so far

	stop     func() bool
	improved func(Progress)
	ended    bool // stop said so
}

// askEvery is how many moves pass between two questions whether to stop.
const askEvery = 256

// stopped asks the caller whether to stop, who once having said so is not asked again.
func (x *search) stopped() bool {
	x.ended = x.ended || x.stop != nil && x.stop()
	return x.ended
}

// tell tells the caller of a plan that is the best so far.
func (x *search) tell(cost, peak int64) {
	if x.improved != nil {
		x.improved(Progress{Moves: x.moves, StepPicos: cost, PeakBytes: peak})
	}
}

// change is one step of a move, kept to be undone.
type change struct {
	kind           changeKind
	event          int64
	away           *away
	freeBy, backAt int32
}

type changeKind uint8

const (
	rerunCame changeKind = iota
	rerunWent
	swapCame
	swapWent
	swapLimits
)

func newSearch(s *state, budget int64, seed uint64) *search {
	x := &search{state: s, budget: budget, rnd: random{seed}, where: map[int64]int32{}, cost: math.MaxInt64,
		cands: newGreedy(s, greedyOptions{reruns: true}).cands}
	if s.w != nil {
		s.w.limit = budget
		x.swaps = newGreedy(s, greedyOptions{swaps: true}).cands
	}
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
	if x.picos < x.cost && x.tree.peak() <= x.budget && x.hostFits() {
		if cost := x.stepPicos(); cost < x.cost {
			x.best, x.cost = x.snap(), cost
			x.tell(x.cost, x.tree.peak())
		}
	}
}

// load makes a plan the present one.
func (x *search) load(plan snapshot) {
	x.reset(plan)
	x.list = x.list[:0]
	clear(x.where)
	for _, r := range plan.reruns {
		x.enlist(event(r.Stage, r.Op))
	}
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
	if n < 2 || len(x.cands)+len(x.swaps) == 0 {
		return
	}
	mean := x.m.sum/int64(n) + 1
	area := max(1, x.tree.peak()/64)
	price := max(1, int64(min(ratio(mean, area)>>6, math.MaxInt64/8))) // of 2^24: a rerun of mean cost for a 64th of the peak
	heat0 := mean
	if now := x.stepPicos(); x.count > 0 && now > x.m.sum {
		heat0 = max(1, (now-x.m.sum)/int64(x.count))
	}
	over := x.tree.over(x.budget)
	cost := x.stepPicos()
	for i := range moves {
		if x.moves++; x.moves%askEvery == 0 && x.stopped() {
			return
		}
		left := (moves - i) * 1024 / moves // of 1024
		heat := heat0>>8 + heat0*left/1024*left/2048
		was := cost + scaled(over, price)
		if !x.move() {
			continue
		}
		after, costs := x.tree.over(x.budget), x.stepPicos()
		is := costs + scaled(after, price)
		if is > was && is-was > heat*x.rnd.patience()>>16 || !x.hostFits() {
			if x.undo() { // placements depend on what came before
				over, cost = x.tree.over(x.budget), x.stepPicos()
			}
		} else {
			over, cost = after, costs
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

// undo takes the last move back, and says whether it was one of swaps.
func (x *search) undo() (swaps bool) {
	for k := len(x.done) - 1; k >= 0; k-- {
		switch c := &x.done[k]; c.kind {
		case rerunCame:
			x.take(stageOf(c.event), int32(c.event))
		case rerunWent:
			x.put(stageOf(c.event), int32(c.event))
		case swapCame:
			x.bringBack(c.away)
			swaps = true
		case swapWent:
			x.takeAway(c.away)
			swaps = true
		case swapLimits:
			c.away.freeBy, c.away.backAt = c.freeBy, c.backAt
			swaps = true
		}
	}
	if swaps {
		x.place()
	}
	return swaps
}

// move makes one random move, kept in x.done; false if it found none.
func (x *search) move() bool {
	x.done = x.done[:0]
	if len(x.swaps) > 0 && (len(x.cands) == 0 || x.rnd.below(4) == 0) {
		return x.moveSwap()
	}
	kind := x.rnd.below(100)
	if len(x.list) == 0 {
		kind = 99
	}
	switch {
	case kind < 35:
		x.removeOne()
	case kind < 60:
		x.shiftOne()
	default:
		if x.addOne() && x.rnd.below(3) == 0 {
			x.removeOne()
		}
	}
	return len(x.done) > 0
}

func (x *search) came(t, j int32) bool {
	if !x.canRerun(t, j) || x.blocked(t, j) {
		return false
	}
	x.put(t, j)
	x.done = append(x.done, change{kind: rerunCame, event: event(t, j)})
	return true
}

func (x *search) went(t, j int32) bool {
	if x.relied(t, j) {
		return false
	}
	x.take(t, j)
	x.done = append(x.done, change{kind: rerunWent, event: event(t, j)})
	return true
}

func (x *search) removeOne() {
	e := x.list[x.rnd.below(len(x.list))]
	x.went(stageOf(e), int32(e))
}

// shiftOne moves a rerun to another stage of the gap in which it lies.
func (x *search) shiftOne() {
	e := x.list[x.rnd.below(len(x.list))]
	t, j := stageOf(e), int32(e)
	v := x.m.p.Ops[j].Out[0]
	_, end := x.life(v, t)
	hi := min(stageOf(end), x.m.last[j])
	birth, was := x.life(v, t-1)
	lo := max(birth, stageOf(was)) + 1
	to := t
	if x.rnd.below(2) == 0 && len(x.m.in[j]) > 0 {
		u := x.m.in[j][x.rnd.below(len(x.m.in[j]))]
		uses := x.uses[u]
		to = stageOf(uses[x.rnd.below(len(uses))])
	} else if hi > lo {
		to = lo + int32(x.rnd.below(int(hi-lo+1)))
	}
	if to == t || !x.canRerun(to, j) || !x.went(t, j) {
		return
	}
	x.came(to, j)
}

// pressed draws a stage that is over budget or nearly so.
func (x *search) pressed() int32 {
	n := x.m.n
	p := x.tree.firstOver(int32(x.rnd.below(int(n))), x.budget)
	if p == n {
		p = x.tree.firstOver(0, x.budget)
	}
	if p == n {
		p = x.tree.firstOver(int32(x.rnd.below(int(n))), x.budget-x.budget/16)
	}
	if p == n {
		p = x.tree.argmax()
	}
	return p
}

// born counts the values of list, which is by Def, that are defined before op p.
func (x *search) born(list []int32, p int32) int {
	k, _ := slices.BinarySearchFunc(list, p, func(v, p int32) int { return int(x.m.p.Values[v].Def) - int(p) })
	return k
}

// addOne takes a value off the device in a pressed stage by reruns.
func (x *search) addOne() bool {
	p := x.pressed()
	upto := x.born(x.cands, p)
	if upto == 0 {
		return false
	}
	for range 12 {
		v := x.cands[x.rnd.below(upto)]
		g, ok := x.idle(v, p)
		if !ok {
			continue
		}
		j := x.m.p.Values[v].Def
		last := min(g.to, x.m.last[j], x.m.n-1)
		if last <= p {
			continue
		}
		t := last
		if x.rnd.below(2) == 0 {
			t = p + 1 + int32(x.rnd.below(int(last-p)))
		}
		if x.rnd.below(4) > 0 {
			if x.came(t, j) {
				return true
			}
			continue
		}
		pl := plan{stage: t}
		if !x.closure(&pl, t, j, x.budget) {
			continue
		}
		for _, k := range pl.ops {
			x.came(t, k)
		}
		return len(x.done) > 0
	}
	return false
}

// moveSwap adds, removes, hurries or eases a swap.
func (x *search) moveSwap() bool {
	kind := x.rnd.below(100)
	if len(x.w.out) > 0 && kind < 50 {
		a := x.w.out[x.rnd.below(len(x.w.out))]
		if kind < 25 && !(a.wraps && x.m.p.Values[a.value].HomeFixed) {
			x.bringBack(a)
			x.done = append(x.done, change{kind: swapWent, away: a})
		} else {
			x.done = append(x.done, change{kind: swapLimits, away: a, freeBy: a.freeBy, backAt: a.backAt})
			if a.freeBy, a.backAt = math.MaxInt32, -1; kind >= 38 {
				a.hurry(x.pressed())
			}
		}
		x.place()
		return true
	}
	p := x.pressed()
	upto := x.born(x.swaps, p)
	if upto == 0 {
		return false
	}
	for range 12 {
		a := x.awayAt(x.swaps[x.rnd.below(upto)], p)
		if a == nil {
			continue
		}
		if kind >= 75 && !a.idle {
			a.hurry(p)
		}
		x.takeAway(a)
		x.done = append(x.done, change{kind: swapCame, away: a})
		x.place()
		return true
	}
	return false
}
