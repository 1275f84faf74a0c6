package memory

import "slices"

// state is a plan under search: which op runs again in which stage. It keeps the exact peak of live bytes under adding and removing one rerun.
//
// A stage is one position of the base order. A value's life, from a run of its op to the last use that the run serves, touches three kinds
// of stages: those strictly between, where it counts as a whole (a range addition in the tree), and the stages of its ends, whose events
// are few and are walked again whenever one of the lives that end there changes (local). The figure of a stage is the sum of both:
//
//	stage      3          4          5         6
//	events     3          4          1' 5      6
//	value 1               (gap)      [----------]      reruns in stage 5, used by 5 and 6
//	counts     -          -          local     local
//
// Adding a rerun of op j splits the lives of its outputs and may lengthen those of its operands: O((1+operands) log n).
type state struct {
	m     *model
	runs  [][]int32 // by op: stages of its reruns, ascending
	extra [][]int32 // by stage: ops that run again in it, ascending
	uses  [][]int64 // by value: events that read it, ascending
	local []int64   // by stage: most bytes of values that begin or end in it, with scratch
	tree  peakTree
	picos int64  // of all runs
	count int    // reruns
	w     *swaps // nil without lanes

	logging bool    // keep a journal
	journal []int64 // reruns that came (event) and went (its complement)

	held    bool    // stages are not walked again until settle
	touched []int32 // stages to walk again
	dirty   []bool  // by stage: in touched
	ends    []int64 // scratch of walk
	taken   []int32 // scratch of walk
}

// event numbers the run of op in stage so that events compare in the order of execution.
func event(stage, op int32) int64 { return int64(stage)<<32 | int64(op) }

func stageOf(e int64) int32 { return int32(e >> 32) }

func newState(m *model) *state {
	s := &state{m: m, runs: make([][]int32, m.n), extra: make([][]int32, m.n), uses: make([][]int64, len(m.p.Values)),
		local: make([]int64, m.n), dirty: make([]bool, m.n), tree: newPeakTree(int(m.n)), picos: m.sum}
	for v, readers := range m.readers {
		s.uses[v] = make([]int64, len(readers))
		for i, j := range readers {
			s.uses[v][i] = event(j, j)
		}
	}
	for v := range m.p.Values {
		birth := m.p.Values[v].Def
		_, end := s.life(int32(v), m.n)
		s.tree.add(birth+1, stageOf(end), m.p.Values[v].Bytes)
	}
	for t := range m.n {
		s.touch(t)
	}
	s.settle()
	if m.p.Lanes != nil {
		s.w = newSwaps(m)
		s.fixHomes()
	}
	return s
}

// life finds the life of v that serves a use in stage t: the stage of its run (-1: there from the start) and its last event (in stage n if it
// never dies; its own run if nothing reads it).
func (s *state) life(v, t int32) (birth int32, end int64) {
	d := s.m.p.Values[v].Def
	birth = d
	next := int32(-1)
	if d >= 0 {
		runs := s.runs[d]
		i := len(runs)
		for i > 0 && runs[i-1] > t {
			i--
		}
		if i > 0 {
			birth = runs[i-1]
		}
		if i < len(runs) {
			next = runs[i]
		}
	}
	uses := s.uses[v]
	k := len(uses)
	if next < 0 {
		if s.m.endless[v] {
			return birth, event(s.m.n, 0)
		}
	} else {
		k = before(uses, event(next, d))
	}
	if k > 0 && (birth < 0 || uses[k-1] > event(birth, d)) {
		return birth, uses[k-1]
	}
	if birth < 0 {
		return -1, event(-1, 0)
	}
	return birth, event(birth, d)
}

// before counts the events of list that come before e.
func before(list []int64, e int64) int {
	if n := len(list); n < 8 {
		for n > 0 && list[n-1] >= e {
			n--
		}
		return n
	}
	i, _ := slices.BinarySearch(list, e)
	return i
}

// canRerun says whether op j may run again in stage t.
func (s *state) canRerun(t, j int32) bool {
	return j < t && t <= s.m.last[j] && !s.reruns(t, j)
}

func (s *state) reruns(t, j int32) bool {
	return contains(s.runs[j], t)
}

// add lets op j run again in stage t. needs: canRerun(t, j).
func (s *state) add(t, j int32) {
	s.touch(t)
	for _, u := range s.m.in[j] {
		birth, was := s.life(u, t)
		i := before(s.uses[u], event(t, j))
		s.uses[u] = slices.Insert(s.uses[u], i, event(t, j))
		_, is := s.life(u, t)
		s.shift(u, birth, was, is)
	}
	outs := s.m.p.Ops[j].Out
	s.ends = s.ends[:0]
	for _, v := range outs {
		_, was := s.life(v, t)
		s.ends = append(s.ends, was)
	}
	i, _ := slices.BinarySearch(s.runs[j], t)
	s.runs[j] = slices.Insert(s.runs[j], i, t)
	for k, v := range outs {
		birth, is := s.life(v, t-1)
		s.shift(v, birth, s.ends[k], is)
		_, end := s.life(v, t)
		s.tree.add(t+1, stageOf(end), s.m.p.Values[v].Bytes)
		s.touch(stageOf(end))
	}
	i, _ = slices.BinarySearch(s.extra[t], j)
	s.extra[t] = slices.Insert(s.extra[t], i, j)
	s.picos += s.m.p.Ops[j].Picos
	s.count++
	if s.logging {
		s.journal = append(s.journal, event(t, j))
	}
	s.changed(j)
}

// remove undoes add. needs: reruns(t, j).
func (s *state) remove(t, j int32) {
	s.touch(t)
	outs := s.m.p.Ops[j].Out
	s.ends = s.ends[:0]
	for _, v := range outs {
		_, end := s.life(v, t)
		s.tree.add(t+1, stageOf(end), -s.m.p.Values[v].Bytes)
		s.touch(stageOf(end))
		_, was := s.life(v, t-1)
		s.ends = append(s.ends, was)
	}
	i, _ := slices.BinarySearch(s.runs[j], t)
	s.runs[j] = slices.Delete(s.runs[j], i, i+1)
	for k, v := range outs {
		birth, is := s.life(v, t)
		s.shift(v, birth, s.ends[k], is)
	}
	for _, u := range s.m.in[j] {
		birth, was := s.life(u, t)
		i := before(s.uses[u], event(t, j))
		s.uses[u] = slices.Delete(s.uses[u], i, i+1)
		_, is := s.life(u, t)
		s.shift(u, birth, was, is)
	}
	i, _ = slices.BinarySearch(s.extra[t], j)
	s.extra[t] = slices.Delete(s.extra[t], i, i+1)
	s.picos -= s.m.p.Ops[j].Picos
	s.count--
	if s.logging {
		s.journal = append(s.journal, ^event(t, j))
	}
	s.changed(j)
}

// changed follows up a rerun of op j that came or went.
func (s *state) changed(j int32) {
	s.walkTouched()
	if s.w != nil {
		s.w.stale = true
		s.reuse(j)
	}
}

// shift moves the end of a life of v.
func (s *state) shift(v, birth int32, was, is int64) {
	if was == is {
		return
	}
	a, b := stageOf(was), stageOf(is)
	if b > a {
		s.tree.add(max(a, birth+1), b, s.m.p.Values[v].Bytes)
	} else {
		s.tree.add(max(b, birth+1), a, -s.m.p.Values[v].Bytes)
	}
	s.touch(a)
	s.touch(b)
}

func (s *state) touch(t int32) {
	if t >= 0 && t < s.m.n && !s.dirty[t] {
		s.dirty[t] = true
		s.touched = append(s.touched, t)
	}
}

// hold puts off walking stages while many reruns are added; the peak is not to be read until settle.
func (s *state) hold() { s.held = true }

func (s *state) settle() {
	s.held = false
	s.walkTouched()
}

func (s *state) walkTouched() {
	if s.held {
		return
	}
	for _, t := range s.touched {
		s.dirty[t] = false
		is := s.walk(t)
		s.tree.add(t, t+1, is-s.local[t])
		s.local[t] = is
	}
	s.touched = s.touched[:0]
}

// walk finds the most bytes at one event of stage t, leaving out values that live on both sides of it.
func (s *state) walk(t int32) int64 {
	var now int64 // bytes of values that came into the stage and die in it, then of those that began in it
	s.ends = s.ends[:0]
	for k := 0; k <= len(s.extra[t]); k++ {
		j := s.opAt(t, k)
		for _, u := range s.m.in[j] {
			birth, end := s.life(u, t)
			s.ends = append(s.ends, end)
			if birth < t && end == event(t, j) {
				now += s.m.p.Values[u].Bytes
			}
		}
	}
	var most int64
	ends := s.ends
	for k := 0; k <= len(s.extra[t]); k++ {
		j := s.opAt(t, k)
		o, in := &s.m.p.Ops[j], s.m.in[j]
		e := event(t, j)
		during, after := now+o.ScratchBytes-s.credit(j, e, ends), now
		for _, v := range o.Out {
			during += s.m.p.Values[v].Bytes
			if _, end := s.life(v, t); end > e {
				after += s.m.p.Values[v].Bytes
			}
		}
		for i, u := range in {
			if ends[i] == e {
				after -= s.m.p.Values[u].Bytes
			}
		}
		most = max(most, during)
		now = after
		ends = ends[len(in):]
	}
	return most
}

// opAt is the op of event k of stage t: the reruns, then the base op.
func (s *state) opAt(t int32, k int) int32 {
	if k < len(s.extra[t]) {
		return s.extra[t][k]
	}
	return t
}

// credit is what outputs of op j need no bytes for at event e, because they take those of operands that die there.
func (s *state) credit(j int32, e int64, ends []int64) int64 {
	if len(s.m.over[j]) == 0 {
		return 0
	}
	var sum int64
	s.taken = s.taken[:0]
	for _, pair := range s.m.over[j] {
		if contains(s.taken, pair.Out) || contains(s.taken, pair.In) || ends[slices.Index(s.m.in[j], pair.In)] != e {
			continue
		}
		s.taken = append(s.taken, pair.Out, pair.In)
		sum += s.m.p.Values[pair.Out].Bytes
	}
	return sum
}

// addAll adds the reruns of a plan.
func (s *state) addAll(plan []Recompute) {
	s.hold()
	for _, r := range plan {
		s.add(r.Stage, r.Op)
	}
	s.settle()
}

// recomputes lists the reruns in the order of a Solution.
func (s *state) recomputes() []Recompute {
	list := make([]Recompute, 0, s.count)
	for t, ops := range s.extra {
		for _, j := range ops {
			list = append(list, Recompute{Stage: int32(t), Op: j})
		}
	}
	return list
}
