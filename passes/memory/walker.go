package memory

import "math"

// A walker anneals a sequence: it works on all lines of events, feasible or not; energy is the time of all runs plus a price for every byte and event over
// budget. The price rises while the line is infeasible and falls while it is feasible, so that the search keeps walking along the budget. Every move undoes
// itself by its journal.
type walker struct {
	*sequence
	budget int64
	free   bool // base runs move, too
	bases  int  // of 100 moves of a free walker: those of base runs
	rnd    random
	cands  []int32 // values whose op can run again
	order  *liberty
	done   []step // the move under way
	best   []int32
	cost   int64 // of best; math.MaxInt64: none
	moves  int64
	told   func(w *walker) // of a new best
	stop   func() bool
	ended  bool
	ops    []int32 // scratch of closure
}

// step is an event that came or went.
type step struct {
	slot, op int32
	came     bool
}

func newWalker(m *model, line []int32, budget int64, seed uint64) *walker {
	w := &walker{sequence: newSequence(m, line), budget: budget, rnd: random{seed}, cost: math.MaxInt64}
	for v := range m.p.Values {
		if x := &m.p.Values[v]; x.Bytes > 0 && x.Def >= 0 && m.last[x.Def] >= 0 {
			w.cands = append(w.cands, int32(v))
		}
	}
	w.keep()
	return w
}

// load makes a line the present one.
func (w *walker) load(line []int32) { w.sequence = newSequence(w.m, line) }

// keep records the present line if it is within budget and the best so far.
func (w *walker) keep() {
	if w.picos < w.cost && w.tree.peak() <= w.budget {
		w.best, w.cost = w.line(), w.picos
		if w.told != nil {
			w.told(w)
		}
	}
}

func (w *walker) stopped() bool {
	w.ended = w.ended || w.stop != nil && w.stop()
	return w.ended
}

// anneal makes moves and leaves the best line in w.best. heat is of 1024 what a move may cost at first, in what a rerun costs on average.
func (w *walker) anneal(moves, heat int64) {
	n := int64(w.m.n)
	if n < 2 || len(w.cands) == 0 && !w.free {
		return
	}
	mean := w.m.sum/n + 1
	area := max(1, w.tree.peak()/64)
	price := max(1, int64(min(ratio(mean, area)>>6, math.MaxInt64/8))) // of 2^24: a rerun of mean cost for a 64th of the peak
	heat0 := mean
	if k := int64(len(w.list)); k > 0 && w.picos > w.m.sum {
		heat0 = max(1, (w.picos-w.m.sum)/k)
	}
	heat0 = max(1, heat0*heat/1024)
	over := w.tree.over(w.budget)
	was := w.picos + scaled(over, price)
	for i := range moves {
		if w.moves++; w.moves%askEvery == 0 && w.stopped() {
			return
		}
		left := (moves - i) * 1024 / moves // of 1024
		heat := heat0>>8 + heat0*left/1024*left/2048
		if w.move(); len(w.done) > 0 {
			after := w.tree.over(w.budget)
			is := w.picos + scaled(after, price)
			if is > was && is-was > heat*w.rnd.patience()>>16 {
				w.undo()
			} else {
				over, was = after, is
				if over == 0 {
					w.keep()
				}
			}
		}
		if i%16 == 0 {
			if over > 0 {
				price = min(price+price/50+1, math.MaxInt64/8)
			} else {
				price = max(price-price/200, 1)
			}
			was = w.picos + scaled(over, price)
		}
	}
}

// came and went are add and remove of a move.
func (w *walker) came(s, j int32) {
	w.add(s, j)
	w.done = append(w.done, step{s, j, true})
}

func (w *walker) went(s int32) {
	w.done = append(w.done, step{s, w.op[s], false})
	w.remove(s)
}

// undo takes the last move back.
func (w *walker) undo() {
	for k := len(w.done) - 1; k >= 0; k-- {
		if d := w.done[k]; d.came {
			w.remove(d.slot)
		} else {
			w.add(d.slot, d.op)
		}
	}
	w.done = w.done[:0]
}

// move makes one random move, kept in w.done, which is empty if it found none.
func (w *walker) move() {
	w.done = w.done[:0]
	if w.free && w.rnd.below(100) < w.bases {
		w.moveBase()
		return
	}
	kind := w.rnd.below(100)
	if len(w.list) == 0 {
		kind = 99
	}
	switch {
	case kind < 35:
		w.removeOne()
	case kind < 60:
		w.shiftOne()
	default:
		if w.addOne() && w.rnd.below(3) == 0 {
			w.removeOne()
		}
	}
}

func (w *walker) removeOne() {
	if len(w.list) > 0 {
		w.went(w.list[w.rnd.below(len(w.list))])
	}
}

// insert runs op j again near slot x; the runs between two base runs are in the order of the base runs of their ops. It returns false if that cannot be.
func (w *walker) insert(x, j int32) bool {
	a := w.before(min(x+1, w.size))
	b := w.after(a)
	base := w.runs[j][0]
	for a >= 0 && !w.isBase(a) && w.runs[w.op[a]][0] > base {
		a, b = w.before(a), a
	}
	for b < w.size && !w.isBase(b) && w.runs[w.op[b]][0] < base {
		a, b = b, w.after(b)
	}
	if a >= 0 && w.op[a] == j && a != base || b < w.size && w.op[b] == j {
		return false
	}
	if a < base || !w.permits(j, b) {
		return false
	}
	s := a + (b-a)/2
	if s == a {
		if s = w.room(a, b); s < 0 {
			return false
		}
	}
	w.came(s, j)
	return true
}

// permits says whether op j may run again before the event in slot b.
func (w *walker) permits(j, b int32) bool {
	if w.order != nil && w.free {
		l := w.order.limit[j]
		return b < w.size && (l < 0 || b <= w.runs[l][0])
	}
	for b < w.size && !w.isBase(b) {
		b = w.after(b)
	}
	return b < w.size && w.op[b] <= w.m.last[j]
}

// room makes an empty slot between neighbours a and b by moving events one slot along.
func (w *walker) room(a, b int32) int32 {
	for k := int32(1); k < 64; k++ {
		if s := b + k; s < w.size && w.op[s] == empty {
			for ; s > b; s-- {
				w.came(s, w.op[s-1])
				w.went(s - 1)
			}
			return b
		}
		if s := a - k; s >= 0 && w.op[s] == empty {
			for ; s < a; s++ {
				w.came(s, w.op[s+1])
				w.went(s + 1)
			}
			return a
		}
	}
	return -1
}

// shiftOne moves a rerun to another place.
func (w *walker) shiftOne() {
	s := w.list[w.rnd.below(len(w.list))]
	j := w.op[s]
	v := w.m.p.Ops[j].Out[0]
	x := s
	if in := w.m.in[j]; w.rnd.below(2) == 0 && len(in) > 0 {
		uses := w.uses[in[w.rnd.below(len(in))]]
		x = uses[w.rnd.below(len(uses))]
	} else {
		birth, next := w.around(w.runs[j], s)
		end := min(w.end(v, s, next), w.size-1)
		x = w.end(v, birth, s)
		if end-x < 2 {
			return
		}
		x += 1 + int32(w.rnd.below(int(end-x-1)))
	}
	if x == s {
		return
	}
	w.went(s)
	if !w.insert(x, j) {
		w.undo()
	}
}

// pressed draws a slot that is over budget or nearly so.
func (w *walker) pressed() int32 {
	from := int32(w.rnd.below(int(w.size)))
	p := w.tree.firstOver(from, w.budget)
	if p < 0 {
		p = w.tree.firstOver(0, w.budget)
	}
	if p < 0 {
		p = w.tree.firstOver(from, w.budget-w.budget/16)
	}
	if p < 0 {
		p = w.tree.argmax()
	}
	return p
}

// idleAt finds the gap (from, to) of v around slot p, if v is there, idle, and used again.
func (w *walker) idleAt(v, p int32) (from, to int32, ok bool) {
	birth, next := w.served(v, p)
	if birth < 0 && w.m.p.Values[v].Def >= 0 || w.op[p] == w.m.p.Values[v].Def {
		return 0, 0, false
	}
	end := w.end(v, birth, next)
	if end <= p {
		return 0, 0, false
	}
	uses := w.uses[v]
	k := below(uses, p)
	from, to = birth, end
	if k > 0 {
		from = max(from, uses[k-1])
	}
	if k < len(uses) && uses[k] < end {
		to = uses[k]
	}
	return from, to, to > p
}

// addOne takes a value off the device in a pressed slot by reruns.
func (w *walker) addOne() bool {
	if len(w.cands) == 0 {
		return false
	}
	p := w.pressed()
	for range 12 {
		v := w.cands[w.rnd.below(len(w.cands))]
		_, to, ok := w.idleAt(v, p)
		if !ok || to >= w.size {
			continue
		}
		j := w.m.p.Values[v].Def
		x := to - 1
		if to-p > 2 && w.rnd.below(2) == 0 {
			x = p + 1 + int32(w.rnd.below(int(to-p-1)))
		}
		if w.rnd.below(4) > 0 {
			if w.insert(x, j) {
				return true
			}
			continue
		}
		w.ops = w.ops[:0]
		if !w.closure(x, j) {
			continue
		}
		for k := len(w.ops) - 1; k >= 0; k-- { // what others read comes last in the list and runs first
			if !w.insert(x, w.ops[k]) {
				w.undo()
				return false
			}
		}
		return true
	}
	return false
}

// closure plans a run of op j at slot x: operands that are gone are kept until then where the budget leaves room, else run again, too. The ops come into w.ops.
func (w *walker) closure(x, j int32) bool {
	if len(w.ops) >= maxClosure || w.runs[j][0] >= x || w.m.last[j] < 0 {
		return false
	}
	w.ops = append(w.ops, j)
	for _, u := range w.m.in[j] {
		birth, next := w.served(u, x+1)
		end := w.end(u, birth, next)
		if end >= x || w.tree.most(end+1, x+1)+w.m.p.Values[u].Bytes <= w.budget {
			continue
		}
		d := w.m.p.Values[u].Def
		if d >= 0 && contains(w.ops, d) {
			continue
		}
		if d < 0 || !w.closure(x, d) {
			return false
		}
	}
	return true
}

// plan is the line as a snapshot: the reruns by stage. needs: the given order.
func planOfLine(m *model, line []int32) snapshot {
	var p snapshot
	stage := int32(0)
	for _, j := range line {
		if j == stage {
			stage++
		} else {
			p.reruns = append(p.reruns, Recompute{Stage: stage, Op: j})
		}
	}
	return p
}

// lineOf is a snapshot as a line.
func (m *model) lineOf(p snapshot) []int32 {
	line := make([]int32, 0, int(m.n)+len(p.reruns))
	next := 0
	for t := range m.n {
		for ; next < len(p.reruns) && p.reruns[next].Stage == t; next++ {
			line = append(line, p.reruns[next].Op)
		}
		line = append(line, t)
	}
	return line
}
