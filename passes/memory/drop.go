package memory

import (
	"cmp"
	"math"
	"slices"
)

// dropIdle takes back what proved unnecessary: reruns, the dearest first, then haste of copies, then swaps, as long as the peak stays within
// budget and the step gets no longer. It goes on until there is nothing left to take back; with many swaps, whose every trial places all copies anew, it makes one
// pass.
func (s *state) dropIdle(budget int64) {
	for s.dropReruns(budget) || s.dropSwaps(budget) {
		if s.w != nil && len(s.w.out) > 500 {
			return
		}
	}
}

// maxTrials bounds what dropSwaps tries: each trial places all copies anew.
const maxTrials = 60000

func (s *state) dropReruns(budget int64) (changed bool) {
	list := s.recomputes()
	slices.SortStableFunc(list, func(a, b Recompute) int {
		return cmp.Compare(s.m.p.Ops[b.Op].Picos, s.m.p.Ops[a.Op].Picos)
	})
	was := s.stepPicos()
	for _, r := range list {
		if s.relied(r.Stage, r.Op) {
			continue
		}
		s.remove(r.Stage, r.Op)
		if s.tree.peak() <= budget {
			if is := s.stepPicos(); is <= was {
				changed, was = true, is
				continue
			}
		}
		s.add(r.Stage, r.Op)
	}
	return changed
}

// easeAll takes back all haste at once if that is better.
func (s *state) easeAll(better func() bool) {
	type limits struct{ freeBy, backAt int32 }
	were := make([]limits, len(s.w.out))
	if !slices.ContainsFunc(s.w.out, func(a *away) bool { return a.freeBy < math.MaxInt32 || a.backAt >= 0 }) {
		return
	}
	for i, a := range s.w.out {
		were[i] = limits{a.freeBy, a.backAt}
		a.freeBy, a.backAt = math.MaxInt32, -1
	}
	if !better() {
		for i, a := range s.w.out {
			a.freeBy, a.backAt = were[i].freeBy, were[i].backAt
		}
		s.place()
	}
}

func (s *state) dropSwaps(budget int64) (changed bool) {
	if s.w == nil || len(s.w.out) == 0 {
		return false
	}
	was, kept := s.stepPicos(), s.snap()
	s.w.limit = budget
	s.place()
	if s.tree.peak() > budget || s.stepPicos() > was { // copies lie where they were placed at a time of more reruns
		s.reset(kept)
		return false
	}
	better := func() bool {
		s.place()
		if s.tree.peak() > budget || !s.hostFits() {
			return false
		}
		is := s.stepPicos()
		if is > was {
			return false
		}
		changed, was = true, is
		return true
	}
	s.easeAll(better)
	trials := maxTrials/len(s.w.out) + 1
	for _, a := range slices.Clone(s.w.out) {
		if a.freeBy == math.MaxInt32 && a.backAt < 0 {
			continue
		}
		if trials--; trials < 0 {
			return changed
		}
		freeBy, backAt := a.freeBy, a.backAt
		if a.freeBy, a.backAt = math.MaxInt32, -1; !better() {
			a.freeBy, a.backAt = freeBy, backAt
			s.place()
		}
	}
	all := slices.Clone(s.w.out)
	slices.SortStableFunc(all, func(a, b *away) int {
		return cmp.Compare(s.m.p.Values[a.value].Bytes, s.m.p.Values[b.value].Bytes)
	})
	for _, a := range all {
		if x := &s.m.p.Values[a.value]; a.wraps && x.HomeFixed {
			continue
		}
		if trials--; trials < 0 {
			return changed
		}
		if s.bringBack(a); !better() {
			s.takeAway(a)
			s.place()
		}
	}
	return changed
}
