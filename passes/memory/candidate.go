package memory

import "math/bits"

// gap is a stretch in which a value lies idle on the device: from its last event in stage from to its next use in stage to.
type gap struct{ from, to int32 }

// idle finds the gap of v around stage p, if v is on the device there, idle, and used again later.
func (s *state) idle(v, p int32) (g gap, ok bool) {
	birth, end := s.life(v, p)
	if birth >= p || stageOf(end) <= p {
		return gap{}, false
	}
	uses := s.uses[v]
	k := before(uses, event(p, 0))
	g = gap{birth, s.m.n}
	if k > 0 && stageOf(uses[k-1]) > birth {
		g.from = stageOf(uses[k-1])
	}
	if k < len(uses) && uses[k] <= end {
		g.to = stageOf(uses[k])
	}
	if g.to <= p {
		return gap{}, false // used in stage p itself
	}
	return g, true
}

// plan is a set of reruns in one stage that makes a value again, with what its operands need.
type plan struct {
	stage int32
	ops   []int32
	picos int64
}

// maxClosure bounds how many ops one candidate may run again.
const maxClosure = 48

// closure plans the rerun of op j in stage t: operands that are gone are kept until then where budget leaves room, else run again too. The
// plan is appended to pl; ok is false if there is none.
func (s *state) closure(pl *plan, t, j int32, budget int64) bool {
	if len(pl.ops) >= maxClosure || !s.canRerun(t, j) || s.blocked(t, j) {
		return false
	}
	pl.ops = append(pl.ops, j)
	pl.picos += s.m.p.Ops[j].Picos
	for _, u := range s.m.in[j] {
		birth, end := s.life(u, t)
		if s.isAway(u, t) { // its home is the host, and it would stay until here
			if s.tree.most(0, t+1)+s.m.p.Values[u].Bytes > budget {
				return false
			}
			continue
		}
		if end >= event(t, j) || birth == t {
			continue
		}
		d := s.m.p.Values[u].Def
		if d >= 0 && contains(pl.ops, d) {
			continue
		}
		if s.tree.most(stageOf(end)+1, t)+s.m.p.Values[u].Bytes <= budget {
			continue
		}
		if d < 0 || !s.closure(pl, t, d, budget) {
			return false
		}
	}
	return true
}

// mulDiv is a*b/c for figures that are not negative, with b <= c.
func mulDiv(a, b, c int64) int64 {
	hi, lo := bits.Mul64(uint64(a), uint64(b))
	q, _ := bits.Div64(hi, lo, uint64(c))
	return int64(q)
}

// ratio is cost per benefit as a fixed-point number; larger is worse.
func ratio(cost, benefit int64) uint64 {
	if benefit <= 0 {
		return noRatio
	}
	hi, lo := bits.Mul64(uint64(cost), 1<<30)
	if hi >= uint64(benefit) {
		return noRatio - 1
	}
	q, _ := bits.Div64(hi, lo, uint64(benefit))
	return min(q, noRatio-1)
}

const noRatio = ^uint64(0)
