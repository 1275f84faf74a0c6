package memory

// liberty is what an order must keep to besides that values are made before they are read.
type liberty struct {
	limit  []int32   // by op: all its runs come before the base run of this op; -1: none
	pinned []bool    // by op: its base run stays where it is
	before [][]int32 // by op: ops whose base runs come before its own, with those that define what it reads
	after  [][]int32 // the other way round
}

func newLiberty(m *model) *liberty {
	l := &liberty{limit: make([]int32, m.n), pinned: make([]bool, m.n), before: precedence(m.p), after: make([][]int32, m.n)}
	for j := range m.n {
		l.limit[j] = -1
		if last := m.last[j]; last >= 0 && last < m.n-1 {
			l.limit[j], l.pinned[last] = last, true
		} else if r := m.p.Ops[j].LastRerun; r > j && r < m.n {
			l.pinned[r] = true
		}
		for _, k := range l.before[j] {
			l.after[k] = append(l.after[k], j)
		}
	}
	return l
}

// moveBase moves a base run within what comes before and after it: one at random, or, at a slot that is over budget, the one that makes an idle value to behind
// the slot, or the one that reads it next to before the slot.
func (w *walker) moveBase() {
	if w.rnd.below(2) == 0 {
		j := int32(w.rnd.below(int(w.m.n)))
		lo, hi := w.window(j)
		w.moveTo(j, lo, hi)
		return
	}
	p := w.pressed()
	for range 12 {
		v := int32(w.rnd.below(len(w.uses)))
		from, to, ok := w.idleAt(v, p)
		if !ok {
			continue
		}
		if w.rnd.below(2) == 0 {
			d := w.m.p.Values[v].Def
			if d < 0 || w.runs[d][0] != from {
				continue
			}
			if lo, hi := w.window(d); hi > p+1 {
				w.moveTo(d, max(lo, p), hi)
				return
			}
			continue
		}
		if to >= w.size || !w.isBase(to) {
			continue
		}
		if lo, hi := w.window(w.op[to]); lo < p-1 {
			w.moveTo(w.op[to], lo, min(hi, p))
			return
		}
	}
}

// window is between which slots the base run of j can lie.
func (w *walker) window(j int32) (lo, hi int32) {
	lo, hi = -1, w.size
	for _, k := range w.order.before[j] {
		lo = max(lo, w.runs[k][0])
	}
	for _, k := range w.order.after[j] {
		hi = min(hi, w.runs[k][0])
	}
	for _, v := range w.m.p.Ops[j].Out {
		if uses := w.uses[v]; len(uses) > 0 {
			hi = min(hi, uses[0])
		}
	}
	return lo, hi
}

// moveTo moves the base run of j to a random place between lo and hi.
func (w *walker) moveTo(j, lo, hi int32) {
	s := w.runs[j][0]
	if hi-lo < 2 || w.order.pinned[j] || len(w.runs[j]) > 1 && w.order.limit[j] >= 0 {
		return
	}
	x := lo + 1 + int32(w.rnd.below(int(hi-lo-1)))
	if x == s {
		return
	}
	if w.op[x] != empty {
		a, b := x, w.after(x)
		if x = a + (b-a)/2; x == a {
			if x = w.room(a, b); x < 0 {
				w.undo()
				return
			}
			s = w.runs[j][0]
			if !w.canRun(x, j) { // room moved what it reads
				w.undo()
				return
			}
		}
	}
	w.came(x, j)
	if !w.canRemove(s) {
		w.undo()
		return
	}
	w.went(s)
}
