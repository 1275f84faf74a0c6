package memory

import "math/bits"

// Of a small problem without lanes the least peak is found by exhaustion: depth first over (stage, last rerun in it, values on the device), with a memory of what
// led nowhere. Two facts keep it small. Dropping a value costs nothing, so it is put off until an event does not fit. And what led nowhere within one
// limit leads nowhere within a smaller one, so each plan found lowers the limit and nothing is searched twice.

const (
	exactOps    = 24 // most ops of a problem that exhaustion is tried on
	exactValues = 48 // and most values
	exactStates = 300000
)

// exhaustion searches for a plan whose events take at most limit bytes.
type exhaustion struct {
	m     *model
	limit int64
	bytes []int64  // by value
	in    []uint64 // by op: sets of values
	out   []uint64
	alive []uint64 // by stage: values that an event from this stage on may read, or that must be there at the end
	keep  uint64   // values that must be there at the end
	fixed uint64   // values that no op can make again
	dead  map[uint64]struct{}
	left  int // states that may still be visited
	plan  []Recompute
}

// exact replaces best by a plan of the least peak there is. It says whether it got through; if not, best may be better than it was, but need not be the least.
func (m *model) exact(best *leastPeak, floor, enough int64) bool {
	if m.n > exactOps || len(m.p.Values) > exactValues || m.p.Lanes != nil {
		return false
	}
	x := m.newExhaustion()
	start := x.keep & x.fixed
	for v := range m.p.Values {
		if m.p.Values[v].Def < 0 {
			start |= 1 << v
		}
	}
	for best.peak > max(floor, enough) {
		x.limit = best.peak - 1
		x.plan = x.plan[:0]
		if !x.from(0, 0, start&x.alive[0]) {
			return x.left > 0
		}
		s := newState(m)
		s.addAll(x.plan)
		p := s.tree.peak()
		if p >= best.peak {
			return false // it would have to find the same plan again
		}
		*best = leastPeak{plan: s.snap(), peak: p}
	}
	return true
}

func (m *model) newExhaustion() *exhaustion {
	x := &exhaustion{m: m, in: make([]uint64, m.n), out: make([]uint64, m.n), alive: make([]uint64, m.n+1), dead: map[uint64]struct{}{}, left: exactStates}
	for v := range m.p.Values {
		x.bytes = append(x.bytes, m.p.Values[v].Bytes)
		if m.endless[v] {
			x.keep |= 1 << v
		}
		if d := m.p.Values[v].Def; d < 0 || m.last[d] < 0 {
			x.fixed |= 1 << v
		}
	}
	for j := range m.n {
		for _, v := range m.in[j] {
			x.in[j] |= 1 << v
		}
		for _, v := range m.p.Ops[j].Out {
			x.out[j] |= 1 << v
		}
	}
	for t := range m.n + 1 {
		x.alive[t] = x.keep
		for j := range m.n {
			if j >= t || m.last[j] >= t {
				x.alive[t] |= x.in[j]
			}
		}
	}
	return x
}

func (x *exhaustion) sum(set uint64) (sum int64) {
	for ; set != 0; set &= set - 1 {
		sum += x.bytes[bits.TrailingZeros64(set)]
	}
	return sum
}

// from says whether the step can be finished from stage t, when op k-1 was the last to run again in it (0: none) and the values of set are there; x.plan then
// lists the reruns up to the end.
func (x *exhaustion) from(t, k int32, set uint64) bool {
	if t == x.m.n {
		return x.keep&^set == 0
	}
	if x.lost(t, set) {
		return false
	}
	key := set<<10 | uint64(t)<<5 | uint64(k)
	if _, ok := x.dead[key]; ok || x.left == 0 {
		return false
	}
	x.left--
	length := len(x.plan)
	tight := false // an event did not fit
	run := func(j int32) bool {
		return x.run(j, set, &tight, func(set uint64) bool {
			if j == t {
				return x.from(t+1, 0, set&x.alive[t+1])
			}
			x.plan = append(x.plan[:length], Recompute{Stage: t, Op: j})
			return x.from(t, j+1, set&x.alive[t])
		})
	}
	if run(t) {
		return true
	}
	for j := k; j < t; j++ {
		if x.m.last[j] >= t && x.out[j]&x.alive[t]&^set != 0 && run(j) {
			return true
		}
	}
	if tight {
		for rest := set; rest != 0; rest &= rest - 1 {
			v := bits.TrailingZeros64(rest)
			if x.bytes[v] == 0 {
				continue
			}
			if x.plan = x.plan[:length]; x.from(t, k, set&^(1<<v)) {
				return true
			}
		}
	}
	x.plan = x.plan[:length]
	x.dead[key] = struct{}{}
	return false
}

// lost says whether something that no op can make again, and that is needed from stage t on, is not in set.
func (x *exhaustion) lost(t int32, set uint64) bool {
	for gone := x.alive[t] & x.fixed &^ set; gone != 0; gone &= gone - 1 {
		v := bits.TrailingZeros64(gone)
		if x.m.p.Values[v].Def >= t {
			continue
		}
		if r := x.m.readers[v]; x.keep>>v&1 == 1 || len(r) > 0 && r[len(r)-1] >= t {
			return true
		}
	}
	return false
}

// run goes on after an event of op j, with what is then there: where outputs may be written over operands, with each choice of operands that go.
func (x *exhaustion) run(j int32, set uint64, tight *bool, next func(set uint64) bool) bool {
	if x.in[j]&^set != 0 {
		return false
	}
	set &^= x.out[j]
	need := x.sum(set|x.out[j]) + x.m.p.Ops[j].ScratchBytes
	if need <= x.limit && next(set|x.out[j]) {
		return true
	}
	*tight = *tight || need > x.limit
	var given uint64 // operands that may be written over
	for _, pair := range x.m.over[j] {
		given |= 1 << pair.In
	}
	for gone := given; gone != 0; gone = (gone - 1) & given {
		if need-x.credit(j, gone) <= x.limit && next(set&^gone|x.out[j]) {
			return true
		}
	}
	return false
}

// credit is what the outputs of op j need no bytes for when the operands of a set die there.
func (x *exhaustion) credit(j int32, die uint64) (sum int64) {
	var taken uint64
	for _, pair := range x.m.over[j] {
		if both := uint64(1)<<pair.In | 1<<pair.Out; die>>pair.In&1 == 1 && taken&both == 0 {
			taken |= both
			sum += x.bytes[pair.Out]
		}
	}
	return sum
}
