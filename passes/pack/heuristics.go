package pack

// heuristics runs the valley skyline in both directions of time and first fit over every rank, until the target is met.
func (s *search) heuristics() {
	p := s.p
	if len(p.items) == 0 {
		s.take("empty", []int64{})
		return
	}
	tries := s.options.Tries
	if tries == 0 {
		tries = min(200, 200_000/len(p.items))
	}
	back := p.mirror()
	backward := back.ranks(max(tries, 0))
	for k, r := range p.ranks(max(tries, 0)) {
		if s.done() {
			return
		}
		if p.isArcs {
			s.pass("valley/"+r.name, p.valley(r.keys))
			if !s.done() {
				s.pass("valley-backward/"+r.name, back.valley(backward[k].keys))
			}
		}
		if !s.done() && len(p.items) <= firstFitLimit && !(r.random && p.isArcs) || !p.isArcs && k == 0 {
			s.pass("first-fit/"+r.name, p.firstFit(r.keys))
		}
	}
}

func (s *search) pass(method string, offsets []int64) {
	s.best.Passes++
	s.take(method, offsets)
}
