package memory

import "slices"

// Placing copies on the lanes: copies out as early as the lane allows, in the order in which their gaps begin; copies in as late as the lane allows, in
// the order of the uses that they serve, from the last backwards. Both are first in, first out, so the runtime's queues follow the same order. Times
// are those of a step without waiting; waiting only gives the lanes more time. Copies count at the duplex rate throughout, so that the clock here is never ahead of
// the simulator's.

// copyTimes works out the time of a copy of each value out and in.
func (m *model) copyTimes() {
	l := m.p.Lanes
	m.outPicos, m.inPicos = make([]int64, len(m.p.Values)), make([]int64, len(m.p.Values))
	slow := func(bytes, perSec int64) int64 {
		picos := l.LatencyPicos + transferPicos(bytes, perSec)
		if d := l.DuplexPermille; d > 0 && d < 1000 {
			picos = (picos*1000 + d - 1) / d
		}
		return picos
	}
	for v := range m.p.Values {
		m.outPicos[v] = slow(m.p.Values[v].Bytes, l.D2HBytesPerSec)
		m.inPicos[v] = slow(m.p.Values[v].Bytes, l.H2DBytesPerSec)
	}
}

// begins brings the stages' times up to date.
func (s *state) begins() []int64 {
	w := s.w
	if w.stale {
		var now int64
		for t := range s.m.n {
			w.begin[t] = now
			now += s.m.p.Ops[t].Picos
			for _, j := range s.extra[t] {
				now += s.m.p.Ops[j].Picos
			}
		}
		w.begin[s.m.n] = now
		w.stale = false
	}
	return w.begin
}

// place puts all copies on the lanes and the bytes where that leaves them; then it makes room where that takes more bytes than w.limit.
func (s *state) place() {
	w := s.w
	begin := s.begins()
	n := s.m.n
	var lane int64
	t := int32(0)
	for _, a := range w.out {
		free := a.after + 1
		a.outLane = begin[a.after+1]
		if s.writes(a) {
			lane = max(lane, begin[a.after+1]) + s.m.outPicos[a.value]
			a.outLane = lane
			for t < n && begin[t] < lane {
				t++
			}
			free = max(free, t)
		}
		a.outEnd = int64(max(a.after+1, min(free, a.freeBy)))
	}
	lane = begin[n]
	t = n
	for i := len(w.in) - 1; i >= 0; i-- {
		a := w.in[i]
		lane = min(lane, begin[a.use]) - s.m.inPicos[a.value]
		for t > 0 && begin[t] > lane {
			t--
		}
		before := min(max(t, a.backAt), a.use)
		a.inLane = t
		free := int32(a.outEnd)
		if !a.wraps {
			before = max(before, a.after+1)
			free = min(free, before)
		}
		s.reposition(a, free, before)
	}
	if s.tree.peak() > w.limit {
		s.makeRoom()
	}
}

// makeRoom goes through the stages that take more bytes than w.limit and takes away what copies under way hold there: either the oldest copy out is waited
// for, or the copy in with the latest use is put off, whichever promises to delay compute less. So copies take as much time as the bytes allow, and no more.
func (s *state) makeRoom() {
	w := s.w
	begin, n := s.w.begin, s.m.n
	leaving, coming := 0, -1 // oldest copy out that may hold bytes; copy in of the latest use that may have begun
	for p := s.tree.firstOver(0, w.limit); p < n; p = s.tree.firstOver(p, w.limit) {
		for leaving < len(w.out) && w.out[leaving].after < p && w.out[leaving].free <= p {
			leaving++
		}
		var out, in *away
		for k := leaving; k < len(w.out) && w.out[k].after < p; k++ {
			if w.out[k].free > p {
				out = w.out[k]
				break
			}
		}
		for coming+1 < len(w.in) && w.in[coming+1].inLane <= p {
			coming++
		}
		for k := coming; k >= 0 && w.in[k].use > p; k-- {
			if w.in[k].before <= p {
				in = w.in[k]
				break
			}
		}
		switch {
		case out == nil && in == nil:
			if p++; p == n { // nothing under way: the plan itself is too large here
				return
			}
		case in == nil || out != nil && out.outLane-begin[p] <= begin[p+1]+s.m.inPicos[in.value]-begin[in.use]:
			s.reposition(out, p, out.before)
		default:
			s.reposition(in, in.free, min(in.use, p+1+(p-in.inLane)/4))
		}
	}
}

// reposition moves the stages between which swap a is away and returns what they were.
func (s *state) reposition(a *away, free, before int32) (wasFree, wasBefore int32) {
	wasFree, wasBefore = a.free, a.before
	if free != a.free || before != a.before {
		s.awayBytes(a, 1)
		a.free, a.before = free, before
		s.awayBytes(a, -1)
	}
	return wasFree, wasBefore
}

// stepPicos is the time of the plan: all runs, and what compute waits for copies.
func (s *state) stepPicos() int64 {
	if s.w == nil || len(s.w.out) == 0 {
		return s.picos
	}
	w := s.w
	if w.known && !w.stale {
		return w.picos
	}
	begin := s.begins()
	w.outs = sorted(w.outs, func(a, b *away) bool {
		return a.after < b.after || a.after == b.after && (a.free < b.free || a.free == b.free && a.value < b.value)
	})
	w.frees = sorted(w.frees, func(a, b *away) bool { return a.free < b.free })
	w.ins = sorted(w.ins, func(a, b *away) bool {
		return a.before < b.before || a.before == b.before && (a.use < b.use || a.use == b.use && a.value < b.value)
	})
	outs, frees, ins, uses := w.outs, w.frees, w.ins, w.in
	var clock, laneOut, laneIn int64
	at := int32(0)
	for len(outs)+len(frees)+len(ins)+len(uses) > 0 {
		next := s.m.n
		if len(outs) > 0 {
			next = min(next, outs[0].after+1)
		}
		if len(frees) > 0 {
			next = min(next, frees[0].free)
		}
		if len(ins) > 0 {
			next = min(next, ins[0].before)
		}
		if len(uses) > 0 {
			next = min(next, uses[0].use)
		}
		clock += begin[next] - begin[at]
		at = next
		for ; len(outs) > 0 && outs[0].after+1 == at; outs = outs[1:] {
			outs[0].outEnd = 0
			if s.writes(outs[0]) {
				laneOut = max(laneOut, clock) + s.m.outPicos[outs[0].value]
				outs[0].outEnd = laneOut
			}
		}
		for ; len(frees) > 0 && frees[0].free == at; frees = frees[1:] {
			clock = max(clock, frees[0].outEnd)
		}
		for ; len(ins) > 0 && ins[0].before == at; ins = ins[1:] {
			laneIn = max(laneIn, clock) + s.m.inPicos[ins[0].value]
			ins[0].inEnd = laneIn
		}
		for ; len(uses) > 0 && uses[0].use == at; uses = uses[1:] {
			clock = max(clock, uses[0].inEnd)
		}
	}
	clock += begin[s.m.n] - begin[at]
	w.picos, w.known = max(clock, laneOut, laneIn), true
	return w.picos
}

// sorted sorts a list that is nearly sorted already.
func sorted(list []*away, less func(a, b *away) bool) []*away {
	shifts := 0
	for i := 1; i < len(list); i++ {
		a := list[i]
		k := i
		for ; k > 0 && less(a, list[k-1]); k-- {
			list[k] = list[k-1]
		}
		list[k] = a
		if shifts += i - k; shifts > 64*len(list) { // not that nearly
			slices.SortFunc(list, func(a, b *away) int {
				switch {
				case less(a, b):
					return -1
				case less(b, a):
					return 1
				}
				return 0
			})
			return list
		}
	}
	return list
}
