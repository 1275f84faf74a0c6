package memory

import "slices"

// model is a Problem made ready for the search: places of persistent values are operands of the op that replaces them, pairs that can
// never be taken are gone, and the last legal stage of every rerun is known.
type model struct {
	p       *Problem
	n       int32
	in      [][]int32
	over    [][]Over
	readers [][]int32 // by value: ops that have it in their in, ascending
	endless []bool    // by value: never dies once it is there
	heir    []int32   // by value: persistent value whose place it takes, or -1
	last    []int32   // by op: last legal stage of a rerun; -1: none
	sum     int64     // picoseconds of all ops

	outPicos, inPicos []int64 // by value: of its copies; nil without lanes
}

func newModel(p *Problem) *model {
	n := int32(len(p.Ops))
	m := &model{p: p, n: n, in: make([][]int32, n), over: make([][]Over, n), last: make([]int32, n),
		readers: make([][]int32, len(p.Values)), endless: make([]bool, len(p.Values)), heir: make([]int32, len(p.Values))}
	for j := range n {
		m.in[j] = p.Ops[j].In
		m.sum += p.Ops[j].Picos
		m.last[j] = -1
		if o := &p.Ops[j]; p.Recompute && !o.Once && len(o.Out) > 0 {
			m.last[j] = min(o.LastRerun, n-1)
		}
		for _, v := range m.in[j] {
			m.readers[v] = append(m.readers[v], j)
		}
	}
	for v := range p.Values {
		m.endless[v] = m.endless[v] || p.Values[v].Exit
		m.heir[v] = -1
	}
	for v := range p.Values {
		if p.Values[v].Persistent {
			m.persistent(int32(v))
		}
	}
	for j := range n {
		for _, o := range p.Ops[j].Over {
			if p.Values[o.In].Persistent || p.Values[o.Out].Bytes > p.Values[o.In].Bytes || m.heir[o.Out] >= 0 {
				continue
			}
			m.over[j] = append(m.over[j], o)
		}
		if m.last[j] <= j {
			m.last[j] = -1
		}
	}
	if p.Lanes != nil {
		m.copyTimes()
	}
	return m
}

// persistent settles where the life of persistent value v ends.
func (m *model) persistent(v int32) {
	b := m.p.Values[v].Becomes
	if b < 0 {
		m.endless[v] = true
		return
	}
	m.endless[b] = true
	d := m.p.Values[b].Def
	m.last[d] = -1
	readers := m.readers[v]
	reads := slices.Contains(m.p.Ops[d].In, v)
	if len(readers) > 0 && readers[len(readers)-1] > d || reads && !slices.Contains(m.p.Ops[d].Over, Over{Out: b, In: v}) {
		m.endless[v] = true // two places until the end of the step
		return
	}
	m.heir[b] = v
	for _, j := range readers {
		m.last[j] = min(m.last[j], d)
	}
	if !reads {
		m.in[d] = append(slices.Clone(m.in[d]), v)
		m.readers[v] = append(readers, d)
	}
	m.over[d] = append([]Over{{Out: b, In: v}}, m.over[d]...)
}
