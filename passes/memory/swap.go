package memory

import (
	"cmp"
	"math"
	"slices"
)

// This file is the third mode of the state: values that are away on the host for a gap. Where each copy goes on its lane is worked out in lanes.go.

// away is a swap under search. The bytes are off the device in stages free..before-1; for one that wraps, in those before before and from free on.
type away struct {
	value, after, use int32
	free, before      int32
	freeBy, backAt    int32 // limits from the search: free <= freeBy and before >= backAt, whatever the lanes say; compute waits if they are not that fast
	wraps             bool
	idle              bool // wraps, and is not used: on no lane

	outEnd, inEnd int64 // scratch of the clock: when the copies are complete
	outLane       int64 // scratch of place: when the copy out is complete if nothing waits
	inLane        int32 // scratch of place: the last stage in which the copy in can begin without delaying any
}

// swaps holds all swaps of a state and what they cost in lanes and host bytes.
type swaps struct {
	out, in   []*away // by after, in order of issue; by use
	of        [][]*away
	host      peakTree // host bytes by moment: moment t+1 is the end of stage t
	hostFixed int64    // host bytes of contents that the host always holds
	begin     []int64  // by stage: when it begins if nothing waits; n+1 entries
	stale     bool     // begin is out of date
	limit     int64    // device bytes within which place tries to keep copies under way

	// Of the clock: the swaps in the orders in which copies out are issued, bytes are freed and copies in are issued, which are nearly right
	// from one time to the next, and its last result, while that is known to hold.
	outs, frees, ins []*away
	picos            int64
	known            bool
}

func newSwaps(m *model) *swaps {
	w := &swaps{of: make([][]*away, len(m.p.Values)), host: newPeakTree(int(m.n) + 1), begin: make([]int64, m.n+1), stale: true, limit: math.MaxInt64}
	return w
}

// isAway says whether v is off the device at the events of stage t.
func (s *state) isAway(v, t int32) bool {
	if s.w == nil {
		return false
	}
	for _, a := range s.w.of[v] {
		if a.covers(t) {
			return true
		}
	}
	if h := s.m.heir[v]; h >= 0 && len(s.w.of[h]) > 0 {
		a := s.wrap(h)
		return a != nil && t >= a.free
	}
	return false
}

// denied says whether a use of v in stage t could find it off the device: within a gap that a swap has, up to where it comes back. A
// use behind the last one of a value whose home is the host is no matter: it stays longer (see reuse).
func (s *state) denied(v, t int32) bool {
	if s.w == nil {
		return false
	}
	for _, a := range s.w.of[v] {
		if t < a.before && (a.wraps || a.after < t) {
			return true
		}
	}
	return false
}

func (a *away) covers(t int32) bool {
	if a.wraps {
		return t < a.before || t >= a.free
	}
	return a.free <= t && t < a.before
}

// wrap is the swap of persistent value v across the end of the step, or nil.
func (s *state) wrap(v int32) *away {
	for _, a := range s.w.of[v] {
		if a.wraps {
			return a
		}
	}
	return nil
}

// constant says whether no program changes persistent value x: a copy that the host once got stays true.
func (x *Value) constant() bool { return x.Persistent && x.Becomes < 0 && !x.Changes }

// clean says whether the host holds the content of v whatever is swapped.
func (s *state) clean(v int32) bool {
	x := &s.m.p.Values[v]
	return x.OnHost || x.constant() || x.Persistent && s.wrap(v) != nil
}

// writes says whether swap a needs a copy out.
func (s *state) writes(a *away) bool {
	if a.wraps {
		return s.m.p.Values[a.value].Becomes >= 0
	}
	if s.clean(a.value) {
		return false
	}
	for _, b := range s.w.of[a.value] {
		if !b.wraps {
			return b == a // the first in time
		}
	}
	return false
}

// takeAway adds swap a, whose free and before are set, without placing it. needs: it lies in a gap, and overlaps no other swap of the value.
func (s *state) takeAway(a *away) {
	w := s.w
	s.hostBytes(a.value, -1)
	w.of[a.value] = insertSorted(w.of[a.value], a, byAfter)
	if !a.idle {
		w.out = insertSorted(w.out, a, byAfter)
		w.in = insertSorted(w.in, a, byUse)
		w.outs, w.frees, w.ins = append(w.outs, a), append(w.frees, a), append(w.ins, a)
	}
	s.hostBytes(a.value, 1)
	s.awayBytes(a, -1)
}

// bringBack removes swap a.
func (s *state) bringBack(a *away) {
	w := s.w
	s.hostBytes(a.value, -1)
	w.of[a.value] = drop(w.of[a.value], a)
	if !a.idle {
		w.out = drop(w.out, a)
		w.in = drop(w.in, a)
		w.outs, w.frees, w.ins = drop(w.outs, a), drop(w.frees, a), drop(w.ins, a)
	}
	s.hostBytes(a.value, 1)
	s.awayBytes(a, 1)
}

func byAfter(a, b *away) int {
	return cmp.Or(cmp.Compare(a.after, b.after), cmp.Compare(a.value, b.value), cmp.Compare(a.use, b.use))
}

func byUse(a, b *away) int {
	return cmp.Or(cmp.Compare(a.use, b.use), cmp.Compare(a.value, b.value), cmp.Compare(a.after, b.after))
}

func insertSorted(list []*away, a *away, by func(a, b *away) int) []*away {
	i, _ := slices.BinarySearchFunc(list, a, by)
	return slices.Insert(list, i, a)
}

func drop(list []*away, a *away) []*away {
	i := slices.Index(list, a)
	return slices.Delete(list, i, i+1)
}

// awayBytes adds sign times the bytes of swap a to the stages in which it is away.
func (s *state) awayBytes(a *away, sign int64) {
	s.w.known = false
	bytes := sign * s.m.p.Values[a.value].Bytes
	if a.wraps {
		s.tree.add(0, a.before, bytes)
		s.tree.add(a.free, s.m.n, bytes)
		return
	}
	s.tree.add(a.free, a.before, bytes)
}

// hostBytes adds sign times the host bytes that the swaps of v take together.
func (s *state) hostBytes(v int32, sign int64) {
	list := s.w.of[v]
	if len(list) == 0 {
		return
	}
	bytes := sign * s.m.p.Values[v].Bytes
	if s.clean(v) {
		s.w.hostFixed += bytes
		return
	}
	first, last := list[0].after, list[0].use
	for _, a := range list {
		last = max(last, a.use)
	}
	s.w.host.add(first+1, last+1, bytes)
}

func (s *state) hostPeak() int64 {
	if s.w == nil {
		return 0
	}
	return s.w.hostFixed + s.w.host.peak()
}

// hostFits says whether the host budget is kept.
func (s *state) hostFits() bool {
	return s.w == nil || s.m.p.Lanes.HostBudgetBytes < 0 || s.hostPeak() <= s.m.p.Lanes.HostBudgetBytes
}

// blocked says whether a swap stands against op j running again in stage t: an operand may be away then, or an output is away across t.
func (s *state) blocked(t, j int32) bool {
	if s.w == nil || len(s.w.out) == 0 {
		return false
	}
	for _, u := range s.m.in[j] {
		if s.denied(u, t) {
			return true
		}
	}
	for _, v := range s.m.p.Ops[j].Out {
		for _, a := range s.w.of[v] {
			if a.after < t && t <= a.use {
				return true
			}
		}
	}
	return false
}

// relied says whether a swap stands against removing the rerun of op j in stage t: it brings an operand back for this rerun alone,
// or until the next swap.
func (s *state) relied(t, j int32) bool {
	if s.w == nil || len(s.w.out) == 0 {
		return false
	}
	for _, u := range s.m.in[j] {
		for _, a := range s.w.of[u] {
			if a.use != t {
				continue
			}
			next := s.nextUse(u, a.before, event(t, j))
			if next < 0 {
				return true
			}
			for _, b := range s.w.of[u] {
				if b != a && !b.wraps && b.after >= t && b.after < next {
					return true
				}
			}
		}
	}
	return false
}

// nextUse is the stage of the first use of v at or after stage t within the life there, leaving out event not; -1: none.
func (s *state) nextUse(v, t int32, not int64) int32 {
	_, end := s.life(v, t)
	uses := s.uses[v]
	for k := before(uses, event(t, 0)); k < len(uses) && uses[k] <= end; k++ {
		if uses[k] != not {
			return stageOf(uses[k])
		}
	}
	return -1
}

// reuse follows up uses of op j's operands that came or went: what their swaps come back for, and for those across the end of the step when they
// leave. Other than that, copies stay where they are until place.
func (s *state) reuse(j int32) {
	if len(s.w.out) == 0 {
		return
	}
	for _, u := range s.m.in[j] {
		for i := 0; i < len(s.w.of[u]); i++ {
			a := s.w.of[u][i]
			if use := s.nextUse(u, a.before, -1); use != a.use && use >= 0 {
				s.hostBytes(u, -1)
				s.w.in = drop(s.w.in, a)
				a.use, s.w.known = use, false
				s.w.in = insertSorted(s.w.in, a, byUse)
				s.hostBytes(u, 1)
			}
		}
		root := u
		if h := s.m.heir[u]; h >= 0 {
			root = h
		}
		if a := s.wrap(root); a != nil {
			s.leave(a)
		}
	}
}

// leave sets anew after which stage a, which crosses the end of the step, leaves the device.
func (s *state) leave(a *away) {
	after := s.lastUse(a.value)
	if after == a.after {
		return
	}
	s.w.out = drop(s.w.out, a)
	s.w.of[a.value] = drop(s.w.of[a.value], a)
	s.awayBytes(a, 1)
	a.after, a.free = after, max(a.free, after+1)
	s.awayBytes(a, -1)
	s.w.of[a.value] = insertSorted(s.w.of[a.value], a, byAfter)
	s.w.out = insertSorted(s.w.out, a, byAfter)
}

// lastUse is the last stage that uses persistent value v or its Becomes; v is used.
func (s *state) lastUse(v int32) int32 {
	uses := s.uses[v]
	last := stageOf(uses[len(uses)-1])
	if b := s.m.p.Values[v].Becomes; b >= 0 {
		last = max(last, s.m.p.Values[b].Def)
		if uses := s.uses[b]; len(uses) > 0 {
			last = max(last, stageOf(uses[len(uses)-1]))
		}
	}
	return last
}

// newAway makes the swap of v in gap g, placed in the middle of nowhere; wraps if it crosses the end of the step.
func (s *state) newAway(v int32, g gap) *away {
	a := &away{value: v, after: g.from, use: g.to, freeBy: math.MaxInt32, backAt: -1}
	a.free, a.before = g.to, g.to
	return a
}

// newWrap makes the swap of persistent value v across the end of the step; if nothing uses it, it is never on the device.
func (s *state) newWrap(v int32) *away {
	n := s.m.n
	a := &away{value: v, wraps: true, after: n, free: n, before: n, use: n, freeBy: math.MaxInt32, backAt: -1}
	uses := s.uses[v]
	if len(uses) == 0 {
		a.idle = true
		return a
	}
	a.before, a.use, a.after = 0, stageOf(uses[0]), s.lastUse(v)
	return a
}

// fixHomes gives persistent values whose home is the host their swap.
func (s *state) fixHomes() {
	for v := range s.m.p.Values {
		if x := &s.m.p.Values[v]; x.HomeFixed && x.HostHome {
			s.takeAway(s.newWrap(int32(v)))
		}
	}
	s.place()
}

// copySwaps lists the swaps in the order of a Solution.
func (s *state) copySwaps() []Swap {
	if s.w == nil {
		return nil
	}
	list := make([]Swap, 0, len(s.w.out))
	for _, a := range s.w.out {
		list = append(list, Swap{Value: a.value, After: a.after, Free: a.free, Before: a.before, Use: a.use, Write: s.writes(a), Wraps: a.wraps})
	}
	return list
}

// homes lists which persistent values have their home on the host; nil if none.
func (s *state) homes() []bool {
	if s.w == nil {
		return nil
	}
	var list []bool
	for v := range s.w.of {
		if s.wrap(int32(v)) != nil {
			if list == nil {
				list = make([]bool, len(s.w.of))
			}
			list[v] = true
		}
	}
	return list
}

// awayAt makes the swap that takes v off the device at stage p, if one can: v is idle there, may be swapped, and is not away in that gap already.
// The swap is not yet placed.
func (s *state) awayAt(v, p int32) *away {
	g, ok := s.idle(v, p)
	if !ok || s.w == nil {
		return nil
	}
	root := v
	if h := s.m.heir[v]; h >= 0 {
		root = h
	}
	if s.m.p.Values[root].Persistent && (g.from < 0 || g.to == s.m.n) && s.m.homeFree(root) {
		if s.wrap(root) != nil {
			return nil
		}
		return s.newWrap(root)
	}
	if !s.m.swappable(v, g.from, g.to) || g.to >= s.m.n {
		return nil
	}
	for _, a := range s.w.of[v] {
		if a.after < g.to && g.from < a.use {
			return nil
		}
	}
	return s.newAway(v, g)
}
