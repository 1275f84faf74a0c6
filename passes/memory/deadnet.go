package memory

import "math/bits"

// deadNet is the network of the dead-input bound (deadinput.go). Its nodes and arcs depend on the stages alone, its capacities on prices; so it is built once.
type deadNet struct {
	m      *model
	stages []row
	last   []int32 // by value: its last event in the plan without recompute; n if it never dies

	net     *cutNet
	base    []int64     // by arc: room of those that no price changes
	pays    []payArc    // what a value's bytes cost at a stage
	costs   []costArc   // what reruns cost
	direct  []directGap // gaps that need no dead operand: what is best for them needs no cut
	absent  []absence   // nodes of the values absent at a stage
	held    []holding   // dead operands
	bytes   []int64     // by stage: of all absences
	needs   map[needKey]int32
	remakes map[int32]int32 // by value: its again in costs
}

type payArc struct {
	arc, at int32
	bytes   int64
}

// costArc pays for a rerun somewhere in the segments from..to; segment q lies before stage q of the list, the last one behind all of them.
type costArc struct {
	arc, node, from, to int32
	picos               int64
}

// directGap is absent at stages from..to-1.
type directGap struct {
	from, to     int32
	last         int32 // segment
	bytes, picos int64
}

type absence struct {
	node, at int32
	bytes    int64
}

// holding is a dead operand that is needed at a stage: it is held there, unless the cut makes it again.
type holding struct {
	node, again, at int32
	bytes           int64
}

type needKey struct{ value, at int32 }

func (m *model) newDeadNet(gaps []baseGap, stages []row) *deadNet {
	d := &deadNet{m: m, stages: stages, last: make([]int32, len(m.p.Values)), net: newCutNet(), bytes: make([]int64, len(stages)),
		needs: map[needKey]int32{}, remakes: map[int32]int32{}}
	for v := range m.p.Values {
		x := &m.p.Values[v]
		d.last[v] = x.Def
		if r := m.readers[v]; len(r) > 0 {
			d.last[v] = r[len(r)-1]
		}
		if m.endless[v] || x.Persistent {
			d.last[v] = m.n
		}
	}
	for i := range gaps {
		d.gap(&gaps[i])
	}
	d.base = append([]int64(nil), d.net.room...)
	return d
}

// segment is that of overhead in stage t.
func (d *deadNet) segment(t int32) int32 {
	q := int32(0)
	for int(q) < len(d.stages) && d.stages[q].stage < t {
		q++
	}
	return q
}

func (d *deadNet) gap(g *baseGap) {
	if g.rerun.empty() {
		return
	}
	def, bytes := d.m.p.Values[g.value].Def, d.m.p.Values[g.value].Bytes
	from, to := d.segment(g.rerun.from), d.segment(min(g.rerun.to, d.m.last[def]))
	if from >= to {
		return
	}
	dead := false
	for k := from; k < to; k++ {
		d.bytes[k] += bytes
		for _, u := range d.m.in[def] {
			dead = dead || d.last[u] < d.stages[k].stage
		}
	}
	last := d.segment(min(g.rerun.to, d.m.last[def]))
	if !dead {
		d.direct = append(d.direct, directGap{from, to, last, bytes, g.picos})
		return
	}
	again := d.net.node()
	d.costs = append(d.costs, costArc{d.net.arc(again, cutSink, 0), again, from + 1, last, g.picos})
	for k := from; k < to; k++ {
		node := d.net.node()
		d.absent = append(d.absent, absence{node, k, bytes})
		d.pays = append(d.pays, payArc{d.net.arc(cutSource, node, 0), k, bytes})
		d.net.arc(node, again, noLimit)
		d.operands(node, def, k)
	}
}

// operands makes node depend on the dead operands of op j at stage k of the list.
func (d *deadNet) operands(node, j, k int32) {
	for _, u := range d.m.in[j] {
		if d.last[u] < d.stages[k].stage && d.m.p.Values[u].Bytes > 0 {
			d.net.arc(node, d.needed(u, k), noLimit)
		}
	}
}

// needed is the node that says that u is needed at stage k of the list.
func (d *deadNet) needed(u, k int32) int32 {
	key := needKey{u, k}
	if n, ok := d.needs[key]; ok {
		return n
	}
	h := holding{node: d.net.node(), again: cutSink, at: k, bytes: d.m.p.Values[u].Bytes}
	d.needs[key] = h.node
	def := d.m.p.Values[u].Def
	remake := def >= 0 && d.m.last[def] > d.stages[k].stage
	if remake {
		h.again = d.net.node()
	}
	d.pays = append(d.pays, payArc{d.net.arc(h.node, h.again, 0), k, h.bytes})
	d.held = append(d.held, h)
	if !remake {
		return h.node
	}
	at, ok := d.remakes[u]
	if !ok {
		at = int32(len(d.costs))
		d.remakes[u] = at
		node := d.net.node()
		d.costs = append(d.costs, costArc{d.net.arc(node, cutSink, 0), node, k + 1, d.segment(d.m.last[def]), d.m.share(u)})
	}
	d.costs[at].from = min(d.costs[at].from, k+1)
	d.net.arc(h.again, d.costs[at].node, noLimit)
	d.operands(h.again, def, k)
	return h.node
}

// worths is what a picosecond of overhead costs, of 2^30, by segment, and the segment where it costs the least between any two.
type worths struct {
	of    []int64
	least [][]int32
}

func newWorths(of []int64) worths {
	w := worths{of: of, least: make([][]int32, len(of))}
	for a := range of {
		w.least[a] = make([]int32, len(of))
		best := int32(a)
		for b := a; b < len(of); b++ {
			if of[b] < of[best] {
				best = int32(b)
			}
			w.least[a][b] = best
		}
	}
	return w
}

// time is what picos of reruns in the segments from..to cost at least in units of the flow, rounded down.
func (w *worths) time(picos int64, from, to int32) int64 {
	hi, lo := bits.Mul64(uint64(picos)*cutUnits, uint64(max(0, w.of[w.least[from][to]])))
	return int64(hi<<34 | lo>>30)
}

// flow is what the cut costs at least at prices by stage, in units of the flow.
func (d *deadNet) flow(prices []int64, unit int64, w *worths) int64 {
	copy(d.net.room, d.base)
	for _, p := range d.pays {
		d.net.room[p.arc] = pay(prices[p.at], p.bytes, unit)
	}
	for _, c := range d.costs {
		d.net.room[c.arc] = w.time(c.picos, c.from, c.to)
	}
	flow := d.net.maximise()
	sums := sumsBefore(prices)
	for i := range d.direct {
		g := &d.direct[i]
		flow += min(pay(sums[g.to]-sums[g.from], g.bytes, unit), w.time(g.picos, g.from+1, g.last))
	}
	return flow
}

// chosen is what the last cut does: bytes absent less those held, by stage; and the time of reruns, by segment.
func (d *deadNet) chosen(prices []int64, unit int64, w *worths) (bytes, picos []int64) {
	bytes, picos = make([]int64, len(d.stages)), make([]int64, len(d.stages)+1)
	level := d.net.level
	for _, a := range d.absent {
		if level[a.node] >= 0 {
			bytes[a.at] += a.bytes
		}
	}
	for _, h := range d.held {
		if level[h.node] >= 0 && level[h.again] < 0 {
			bytes[h.at] -= h.bytes
		}
	}
	for _, c := range d.costs {
		if level[c.node] >= 0 {
			picos[w.least[c.from][c.to]] += c.picos
		}
	}
	sums := sumsBefore(prices)
	for i := range d.direct {
		g := &d.direct[i]
		if pay(sums[g.to]-sums[g.from], g.bytes, unit) > w.time(g.picos, g.from+1, g.last) {
			picos[w.least[g.from+1][g.last]] += g.picos
			for k := g.from; k < g.to; k++ {
				bytes[k] += g.bytes
			}
		}
	}
	return bytes, picos
}

func sumsBefore(prices []int64) []int64 {
	sums := make([]int64, len(prices)+1)
	for k, p := range prices {
		sums[k+1] = sums[k] + p
	}
	return sums
}

// pay is the price of bytes in units of the flow, rounded down.
func pay(price, bytes, unit int64) int64 {
	hi, lo := bits.Mul64(uint64(price), uint64(bytes)*cutUnits)
	if hi >= uint64(unit) {
		return noLimit / 1024
	}
	q, _ := bits.Div64(hi, lo, uint64(unit))
	return int64(min(q, noLimit/1024))
}
