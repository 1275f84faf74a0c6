package memory

import "slices"

// A sequence is a plan as a line of events with room between them: each event is a run of an op in a slot, most slots are empty. It is what annealing works on,
// in the order that was given and in orders of its own; swaps it does not know. Where a state walks the events of a stage again after every change, here every
// event has a figure of its own in the tree, so a change of one life is one range addition:
//
//	slot     .  3  .  4  .  1  5  .  6  .      ops 3, 4, op 1 again, 5, 6
//	value 1  ]           .  [------]           a life: from a run to the last use before the next run, both included
//
// A life counts at both its ends, so at each event operands and outputs are both there; what is written over an operand is credited at its event. The figures
// are the simulator's for the same line of events.
type sequence struct {
	m    *model
	size int32
	op   []int32   // by slot: the op that runs there, or -1
	runs [][]int32 // by op: slots of its runs, ascending; the first is its base run
	uses [][]int32 // by value: slots of the events that read it, ascending
	own  []int64   // by slot: scratch less credit, of an event
	tree slotTree

	picos int64
	list  []int32 // slots of the runs that are not the first of their op, in no order
	where []int32 // by slot: position in list

	taken []int32 // scratch of credit
}

const empty = int32(-1)

// newSequence makes a line of the ops of order (nil: as they are) with the reruns of a plan in it, which is in the positions of that order.
func newSequence(m *model, line []int32) *sequence {
	size := 64
	for size < 3*(len(line)+32) {
		size *= 2
	}
	q := &sequence{m: m, size: int32(size), op: make([]int32, size), runs: make([][]int32, m.n), uses: make([][]int32, len(m.p.Values)),
		own: make([]int64, size), where: make([]int32, size), tree: newSlotTree(size)}
	for i := range q.op {
		q.op[i] = empty
	}
	for v := range m.p.Values { // what is there from the start and never dies
		if m.p.Values[v].Def < 0 && m.endless[v] {
			q.tree.add(0, q.size, m.p.Values[v].Bytes)
		}
	}
	for i, j := range line {
		q.add(int32((2*i+1)*size/(2*len(line))), j)
	}
	return q
}

// line lists the ops in the order in which they run.
func (q *sequence) line() []int32 {
	list := make([]int32, 0, int(q.m.n)+len(q.list))
	for _, j := range q.op {
		if j >= 0 {
			list = append(list, j)
		}
	}
	return list
}

// served finds the run that serves a use of v in slot s, and the next run after it: -1, for a value that is there from the start, and size, if there is none.
func (q *sequence) served(v, s int32) (birth, next int32) {
	d := q.m.p.Values[v].Def
	if d < 0 {
		return -1, q.size
	}
	if runs := q.runs[d]; len(runs) == 1 {
		if runs[0] < s {
			return runs[0], q.size
		}
		return -1, q.size
	}
	return q.around(q.runs[d], s)
}

// around finds the neighbours of s in a list of slots, s itself not counted.
func (q *sequence) around(list []int32, s int32) (before, after int32) {
	i := below(list, s)
	before, after = -1, q.size
	if i > 0 {
		before = list[i-1]
	}
	if i < len(list) && list[i] == s {
		i++
	}
	if i < len(list) {
		after = list[i]
	}
	return before, after
}

// below counts the slots of list that are smaller than s.
func below(list []int32, s int32) int {
	if n := len(list); n <= 12 {
		for n > 0 && list[n-1] >= s {
			n--
		}
		return n
	}
	lo, hi := 0, len(list)
	for lo < hi {
		if mid := int(uint(lo+hi) >> 1); list[mid] < s {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo
}

// end is the last event of the life of v that begins at birth, when v is made again at next.
func (q *sequence) end(v, birth, next int32) int32 {
	if next == q.size && q.m.endless[v] {
		return q.size
	}
	uses := q.uses[v]
	if k := below(uses, next); k > 0 && uses[k-1] > birth {
		return uses[k-1]
	}
	return birth
}

// idleFrom is the last event of v before its use number k, or where that would be, in the life from birth to next, if no use from number after on is served by that
// life and it ends there; else it is -2: v lives on.
func (q *sequence) idleFrom(v int32, k, after int, birth, next int32) int32 {
	uses := q.uses[v]
	if after < len(uses) && uses[after] < next || next == q.size && q.m.endless[v] {
		return -2
	}
	if k > 0 && uses[k-1] > birth {
		return uses[k-1]
	}
	return birth
}

// canRun says whether op j can run in slot s: it is free and what it reads has been made.
func (q *sequence) canRun(s, j int32) bool {
	if q.op[s] != empty {
		return false
	}
	for _, u := range q.m.in[j] {
		if d := q.m.p.Values[u].Def; d >= 0 && q.runs[d][0] >= s {
			return false
		}
	}
	return true
}

// add runs op j in slot s. needs: canRun(s, j).
func (q *sequence) add(s, j int32) {
	values := q.m.p.Values
	o := &q.m.p.Ops[j]
	q.op[s] = j
	for _, u := range q.m.in[j] {
		birth, next := q.served(u, s)
		k := below(q.uses[u], s)
		if end := q.idleFrom(u, k, k, birth, next); end >= -1 {
			q.tree.add(end+1, s+1, values[u].Bytes)
			q.uses[u] = slices.Insert(q.uses[u], k, s)
			q.credit(end)
			continue
		}
		q.uses[u] = slices.Insert(q.uses[u], k, s)
	}
	i := below(q.runs[j], s)
	birth, next := q.around(q.runs[j], s)
	for _, v := range o.Out {
		end := q.end(v, s, next)
		if birth >= 0 {
			if end == s { // nothing reads this run
				q.tree.add(s, s+1, values[v].Bytes)
				continue
			}
			q.tree.add(q.end(v, birth, s)+1, s, -values[v].Bytes)
			continue
		}
		q.tree.add(s, min(end+1, q.size), values[v].Bytes)
	}
	q.runs[j] = slices.Insert(q.runs[j], i, s)
	if birth >= 0 {
		for _, v := range o.Out {
			q.credit(q.end(v, birth, s))
		}
	}
	if i > 0 {
		q.enlist(s)
	} else if len(q.runs[j]) > 1 {
		q.enlist(q.runs[j][1])
	}
	q.picos += o.Picos
	q.own[s] = absent
	q.credit(s)
}

// canRemove says whether the run in slot s can go: it is not the only one of its op, and no use depends on it as the first.
func (q *sequence) canRemove(s int32) bool {
	j := q.op[s]
	runs := q.runs[j]
	if runs[0] != s {
		return true
	}
	if len(runs) == 1 {
		return false
	}
	for _, v := range q.m.p.Ops[j].Out {
		if uses := q.uses[v]; len(uses) > 0 && uses[0] < runs[1] {
			return false
		}
	}
	return true
}

// remove undoes add. needs: canRemove(s), or nothing reads what op[s] defines.
func (q *sequence) remove(s int32) {
	values := q.m.p.Values
	j := q.op[s]
	o := &q.m.p.Ops[j]
	i := below(q.runs[j], s)
	birth, next := q.around(q.runs[j], s)
	for _, v := range o.Out {
		end := q.end(v, s, next)
		if birth >= 0 && end > s {
			q.tree.add(q.end(v, birth, s)+1, s, values[v].Bytes)
			continue
		}
		q.tree.add(s, min(end+1, q.size), -values[v].Bytes)
	}
	if i > 0 {
		q.delist(s)
	} else if len(q.runs[j]) > 1 {
		q.delist(q.runs[j][1])
	}
	q.runs[j] = slices.Delete(q.runs[j], i, i+1)
	q.tree.add(s, s+1, absent-q.own[s])
	q.op[s] = empty
	for _, v := range o.Out {
		if birth >= 0 {
			q.credit(q.end(v, birth, s))
		}
	}
	for _, u := range q.m.in[j] {
		birth, next := q.served(u, s)
		k := below(q.uses[u], s)
		end := q.idleFrom(u, k, k+1, birth, next)
		q.uses[u] = slices.Delete(q.uses[u], k, k+1)
		if end >= -1 {
			q.tree.add(end+1, s+1, -values[u].Bytes)
			q.credit(end)
		}
	}
	q.picos -= o.Picos
}

// credit renews the figure of the event in slot s itself, which depends on which operands die there.
func (q *sequence) credit(s int32) {
	if s < 0 || s >= q.size {
		return
	}
	j := q.op[s]
	if j < 0 || len(q.m.over[j]) == 0 && q.own[s] != absent {
		return
	}
	is := q.m.p.Ops[j].ScratchBytes
	q.taken = q.taken[:0]
	for _, pair := range q.m.over[j] {
		if contains(q.taken, pair.Out) || contains(q.taken, pair.In) {
			continue
		}
		if birth, next := q.served(pair.In, s); q.end(pair.In, birth, next) == s {
			q.taken = append(q.taken, pair.Out, pair.In)
			is -= q.m.p.Values[pair.Out].Bytes
		}
	}
	if is != q.own[s] {
		q.tree.add(s, s+1, is-q.own[s])
		q.own[s] = is
	}
}

func (q *sequence) enlist(s int32) {
	q.where[s] = int32(len(q.list))
	q.list = append(q.list, s)
}

func (q *sequence) delist(s int32) {
	i, last := q.where[s], q.list[len(q.list)-1]
	q.list[i] = last
	q.where[last] = i
	q.list = q.list[:len(q.list)-1]
}

// before and after are the occupied slots next to s, or -1 and size.
func (q *sequence) before(s int32) int32 {
	for s--; s >= 0 && q.op[s] == empty; s-- {
	}
	return s
}

func (q *sequence) after(s int32) int32 {
	for s++; s < q.size && q.op[s] == empty; s++ {
	}
	return s
}

// isBase says whether the event in slot s is the first run of its op.
func (q *sequence) isBase(s int32) bool { return q.runs[q.op[s]][0] == s }
