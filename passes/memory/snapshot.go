package memory

// snapshot is a plan that a state can come back to.
type snapshot struct {
	reruns []Recompute
	away   []away
}

// snap copies the present plan.
func (s *state) snap() snapshot {
	p := snapshot{reruns: s.recomputes()}
	if s.w != nil {
		for v := range s.w.of {
			for _, a := range s.w.of[v] {
				p.away = append(p.away, *a)
			}
		}
	}
	return p
}

// restore adds a plan to a state without reruns. Copies go where they were: placing them anew could need more bytes, since compute may have come to
// wait for some of them.
func (s *state) restore(p snapshot) {
	if s.w != nil {
		s.clearSwaps()
	}
	s.addAll(p.reruns)
	for i := range p.away {
		a := p.away[i]
		s.takeAway(&a)
	}
}

// reset makes p the present plan.
func (s *state) reset(p snapshot) {
	if s.w != nil {
		s.clearSwaps()
	}
	s.hold()
	for _, r := range s.recomputes() {
		s.remove(r.Stage, r.Op)
	}
	s.settle()
	s.restore(p)
}

// clearSwaps removes all swaps.
func (s *state) clearSwaps() {
	for v := range s.w.of {
		for len(s.w.of[v]) > 0 {
			s.bringBack(s.w.of[v][0])
		}
	}
}

// solution makes a Solution of the present plan; the figures are left to the simulator.
func (s *state) solution() *Solution {
	return &Solution{Recomputes: s.recomputes(), Swaps: s.copySwaps(), HostHome: s.homes()}
}
