package memory

// A base gap is a stretch of the plan without recompute in which a value lies idle. The bounds rest on this: in any plan, whatever is live at an op in the plan
// without recompute and swap is live there, too, unless its gap is broken, by a rerun within (from, to] or by a swap inside it.
type baseGap struct {
	value    int32
	from, to int32 // stages of the uses (or birth, -1; or end, n) on either side
	rerun    span  // stages that a rerun clears; empty: its op must not run again in time
	swap     span  // stages that a swap clears; empty: not to be swapped
	picos    int64 // of one rerun, shared among the outputs of the op
}

// span is a half-open range of stages.
type span struct{ from, to int32 }

func (s span) empty() bool { return s.from >= s.to }

// baseGaps lists the gaps that some plan could break.
func (m *model) baseGaps() []baseGap {
	var list []baseGap
	for v := range m.p.Values {
		x := &m.p.Values[v]
		at := x.Def
		share := m.share(int32(v))
		next := func(to int32) {
			g := baseGap{value: int32(v), from: at, to: to, picos: share}
			if d := x.Def; d >= 0 && m.last[d] > at {
				g.rerun = span{at + 1, min(to, m.n-1)}
				if at >= 0 && m.overwritable(at, int32(v)) {
					g.rerun.from = at
				}
			}
			if m.swappable(int32(v), at, to) {
				g.swap = span{at + 1, to}
			} else if to == m.n && m.p.Lanes != nil && !x.NoSwap {
				g.swap = span{at + 1, m.lastReread(int32(v))} // back for a rerun, which base gaps do not show
			}
			if x.Bytes > 0 && (!g.rerun.empty() || !g.swap.empty()) {
				list = append(list, g)
			}
			at = to
		}
		for _, j := range m.readers[v] {
			next(j)
		}
		if m.endless[v] {
			next(m.n)
		}
	}
	return list
}

// lastReread is the last stage in which a rerun may read v.
func (m *model) lastReread(v int32) int32 {
	last := int32(-1)
	for _, j := range m.readers[v] {
		last = max(last, m.last[j])
	}
	return last
}

// share is the part of an op's time that a gap of its output v must pay: each rerun breaks at most one gap of every output, so any shares that
// sum to the op's time are valid; these go by bytes.
func (m *model) share(v int32) int64 {
	d := m.p.Values[v].Def
	if d < 0 {
		return 0
	}
	o := &m.p.Ops[d]
	if len(o.Out) == 1 {
		return o.Picos
	}
	var sum int64
	for _, u := range o.Out {
		sum += m.p.Values[u].Bytes
	}
	if sum == 0 {
		return 0
	}
	return mulDiv(o.Picos, m.p.Values[v].Bytes, sum)
}

// overwritable says whether an output of op j may be written over v.
func (m *model) overwritable(j, v int32) bool {
	for _, o := range m.over[j] {
		if o.In == v {
			return true
		}
	}
	return false
}

// homeFree says whether persistent value v may have its home on the host.
func (m *model) homeFree(v int32) bool {
	x := &m.p.Values[v]
	if !x.Persistent || m.p.Lanes == nil || x.Becomes >= 0 && m.endless[v] {
		return false
	}
	if x.HomeFixed {
		return x.HostHome
	}
	return !x.NoSwap
}

// swappable says whether v can be off the device somewhere between events in stages from and to.
func (m *model) swappable(v, from, to int32) bool {
	x := &m.p.Values[v]
	if m.p.Lanes == nil || to-from < 2 {
		return false
	}
	root := v // the persistent value in whose place it lies
	if h := m.heir[v]; h >= 0 {
		root = h
	}
	r := &m.p.Values[root]
	if r.Persistent && (from < 0 || to == m.n) && m.homeFree(root) {
		return true
	}
	if to == m.n {
		return false
	}
	if x.Persistent && x.Becomes >= 0 && m.p.Values[x.Becomes].Def == to && !contains(m.p.Ops[to].In, v) {
		return false // only its place is kept until then
	}
	return !x.NoSwap
}

// opBytes is the least that the event of op j takes in the plan without recompute and swap: everything live there, less every byte that
// outputs could take from operands that die there.
func (m *model) opBytes(live []int64) []int64 {
	need := make([]int64, m.n)
	for j := range m.n {
		o := &m.p.Ops[j]
		need[j] = live[j] + o.ScratchBytes
		for _, v := range o.Out {
			for _, pair := range m.over[j] {
				if pair.Out == v && m.diesAt(pair.In, j) {
					need[j] -= m.p.Values[v].Bytes
					break
				}
			}
		}
	}
	return need
}

// diesAt says whether op j is the last to read v.
func (m *model) diesAt(v, j int32) bool {
	r := m.readers[v]
	return !m.endless[v] && len(r) > 0 && r[len(r)-1] == j
}

// liveBytes sums, by op, the values live at it in the plan without recompute and swap: operands, outputs and whatever lies idle.
func (m *model) liveBytes() []int64 {
	live := make([]int64, m.n+1)
	for v := range m.p.Values {
		x := &m.p.Values[v]
		from, to := max(0, x.Def), x.Def+1
		if r := m.readers[v]; len(r) > 0 {
			to = r[len(r)-1] + 1
		}
		if m.endless[v] {
			to = m.n
		}
		if from < to {
			live[from] += x.Bytes
			live[to] -= x.Bytes
		}
	}
	for j := range m.n {
		live[j+1] += live[j]
	}
	return live[:m.n]
}

// degree is the op-degree bound of the peak: at each op, what no rerun and no swap can clear.
func (m *model) degree(gaps []baseGap) int64 {
	need := m.opBytes(m.liveBytes())
	clear := make([]int64, m.n+1)
	for i := range gaps {
		g := &gaps[i]
		from, to := g.rerun.from, g.rerun.to
		if g.rerun.empty() || !g.swap.empty() && g.swap.from < from {
			from = g.swap.from
		}
		if !g.swap.empty() {
			to = max(g.swap.to, to)
			if g.rerun.empty() {
				to = g.swap.to
			}
		}
		clear[from] += m.p.Values[g.value].Bytes
		clear[to] -= m.p.Values[g.value].Bytes
	}
	var most, sum int64
	for j := range m.n {
		sum += clear[j]
		most = max(most, need[j]-sum)
	}
	return most
}
