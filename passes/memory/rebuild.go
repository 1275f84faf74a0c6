package memory

// Rebuilding destroys a part of a feasible plan, repairs it by the greedy with noisy scores, and keeps the result if it is no worse. Where the order
// is layered, as in training steps, it finds what annealing misses: several reruns that only pay together. Swaps stay as they are.

// rebuild makes rounds of it on the best plan of x, with at most so many steps of the greedy in all. With heat, of 1024 of what a rerun costs on average, it also goes on from
// plans that are slower, at first by as much as that, in the end by nothing.
func (x *search) rebuild(steps, heat int64) {
	s := newState(x.m)
	s.restore(x.best)
	if s.w != nil {
		s.w.limit = x.budget
	}
	g := newGreedy(s, greedyOptions{reruns: true})
	if len(g.cands) == 0 {
		return
	}
	g.noise = &x.rnd
	s.logging = true
	was := s.stepPicos()
	for range steps {
		if g.steps >= steps || x.stopped() {
			return
		}
		list := s.recomputes()
		if len(list) == 0 {
			return
		}
		s.journal = s.journal[:0]
		s.destroy(list, &x.rnd)
		if g.reduce(x.budget, 40) {
			s.dropNew(x.budget)
			may := int64(0)
			if k := int64(s.count); heat > 0 && k > 0 {
				may = (s.picos - x.m.sum) / k * heat / 1024 * max(0, steps-g.steps) / steps * x.rnd.patience() >> 16
			}
			if is := s.stepPicos(); is <= was+may {
				if was = is; is < x.cost {
					x.offer(s)
				}
				continue
			}
		}
		s.rollBack(0)
	}
}

// destroy removes some reruns of the list: those of one stage, of a run of stages, or a few at random.
func (s *state) destroy(list []Recompute, rnd *random) {
	i := rnd.below(len(list))
	from, to := i, i+1
	switch rnd.below(3) {
	case 0:
		for from > 0 && list[from-1].Stage == list[i].Stage {
			from--
		}
		for to < len(list) && list[to].Stage == list[i].Stage {
			to++
		}
	case 1:
		for stages := 1 + rnd.below(6); to < len(list) && stages > 0; to++ {
			if list[to].Stage != list[to-1].Stage {
				stages--
			}
		}
	default:
		for range rnd.below(4) {
			if r := list[rnd.below(len(list))]; s.reruns(r.Stage, r.Op) && !s.relied(r.Stage, r.Op) {
				s.remove(r.Stage, r.Op)
			}
		}
	}
	for _, r := range list[from:to] {
		if s.reruns(r.Stage, r.Op) && !s.relied(r.Stage, r.Op) {
			s.remove(r.Stage, r.Op)
		}
	}
}

// dropNew takes back the reruns in the journal that proved unnecessary.
func (s *state) dropNew(budget int64) {
	for i := len(s.journal) - 1; i >= 0; i-- {
		e := s.journal[i]
		if e < 0 || !s.reruns(stageOf(e), int32(e)) || s.relied(stageOf(e), int32(e)) {
			continue
		}
		s.remove(stageOf(e), int32(e))
		if s.tree.peak() > budget {
			s.add(stageOf(e), int32(e))
		}
	}
}

// rollBack undoes the journal down to a length.
func (s *state) rollBack(length int) {
	s.logging = false
	for len(s.journal) > length {
		e := s.journal[len(s.journal)-1]
		s.journal = s.journal[:len(s.journal)-1]
		if e >= 0 {
			s.remove(stageOf(e), int32(e))
		} else {
			s.add(stageOf(^e), int32(^e))
		}
	}
	s.logging = true
}
