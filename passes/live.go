package passes

import "aitk/ir"

// Liveness works on *storages*, not on values: a storage is the bytes of one value and of everything that is a view of it, so two
// Reshapes of a tensor neither cost memory nor end its life. A storage lives from the node that makes it to the last node that reads
// any of its views; parameters and constants live all through; inputs live from the start to their last reader.
//
// Where an op may write its output over an operand (ir.AliasPair) and the operand's storage dies there, the bytes are handed over and
// count once:
//
//	%3 = MatMul %0 %1        %3 lives [0,2)
//	%4 = Relu %3             takes %3's bytes: live bytes at the Relu are those of %3, not of both

// StorageKind tells what a storage begins as.
type StorageKind uint8

// The kinds of storages.
const (
	NodeStorage StorageKind = iota
	InputStorage
	ParamStorage
	ConstStorage
)

// Storage is the bytes of one value and all its views.
type Storage struct {
	Root  *ir.Value // the value that is no view
	Kind  StorageKind
	Param *ir.Param // of a ParamStorage
	Bytes int64     // of Root; in Space
	Space ir.Space
	Views []ir.ID // values that view Root, Root not among them, in node order
}

// Storages is a graph's values by storage.
type Storages struct {
	Of  []int32 // by value ID: index into All; -1 for an ID that no value has
	All []Storage
}

// StoragesOf groups the values of a graph. Storages are numbered inputs, parameters, constants, then nodes' values in order.
func StoragesOf(g *ir.Graph) *Storages {
	s := &Storages{Of: make([]int32, g.NumValues())}
	for i := range s.Of {
		s.Of[i] = -1
	}
	add := func(v *ir.Value, k StorageKind, p *ir.Param) {
		s.Of[v.ID] = int32(len(s.All))
		s.All = append(s.All, Storage{Root: v, Kind: k, Param: p, Bytes: v.Type.Bytes(), Space: v.Type.Space})
	}
	for _, v := range g.Inputs {
		add(v, InputStorage, nil)
	}
	for _, p := range g.Params {
		add(p.Value, ParamStorage, p)
	}
	for _, c := range g.Consts {
		add(c.Value, ConstStorage, nil)
	}
	for _, n := range g.Nodes {
		if x := ir.ViewOf(n); x != nil {
			at := s.Of[x.ID]
			s.Of[n.Out[0].ID] = at
			s.All[at].Views = append(s.All[at].Views, n.Out[0].ID)
			continue
		}
		for _, v := range n.Out {
			add(v, NodeStorage, nil)
		}
	}
	return s
}

// Handover says that a node writes storage Out over storage In, which dies there.
type Handover struct{ Out, In int32 }

// Liveness is what Live finds for one order of nodes. Positions are indices into that order; a view takes a position but no bytes.
type Liveness struct {
	Order    []*ir.Node
	Storages *Storages
	// Def is, by storage, the position of the node that makes it; -1: there from the start.
	Def []int32
	// Last is, by storage, the position of the last node that reads it (Def where none does); len(Order): alive at the end.
	Last []int32
	// Readers counts, by storage, the nodes that read it; views do not count.
	Readers []int32
	// Over lists, by position, the handovers that the node takes.
	Over [][]Handover
	// Place is, by storage, the parameter storage whose place it takes as that parameter's new content, without being a handover: it is
	// made after the last reader of the old content, as a zero fill is. -1 for the rest.
	Place []int32
	// LiveBytes is, by position, the device bytes alive while the node runs: operands, results and all that waits. Scratch is not in it.
	LiveBytes []int64
	PeakBytes int64 // most of LiveBytes, or what lives without any node
	PeakAt    int32 // first position with the peak; -1: before the first node
}

// Live works out the lives of g's storages for an order of g.Nodes (nil: as they stand). The order must respect dependencies.
func Live(g *ir.Graph, s *Storages, order []*ir.Node) *Liveness {
	if s == nil {
		s = StoragesOf(g)
	}
	if order == nil {
		order = g.Nodes
	}
	l := &Liveness{Order: order, Storages: s}
	l.spans(g)
	l.handovers(g)
	l.bytes()
	return l
}

// spans fills Def, Last and Readers.
func (l *Liveness) spans(g *ir.Graph) {
	s := l.Storages
	end := int32(len(l.Order))
	l.Def, l.Last, l.Readers = make([]int32, len(s.All)), make([]int32, len(s.All)), make([]int32, len(s.All))
	for i := range l.Def {
		l.Def[i], l.Last[i] = -1, -1
		if k := s.All[i].Kind; k == ParamStorage || k == ConstStorage {
			l.Last[i] = end
		}
	}
	for t, n := range l.Order {
		if ir.ViewOf(n) != nil {
			continue
		}
		for i, v := range n.In {
			at := s.Of[v.ID]
			if readBefore(s, n, i) {
				continue
			}
			l.Readers[at]++
			l.Last[at] = max(l.Last[at], int32(t))
		}
		for _, v := range n.Out {
			at := s.Of[v.ID]
			l.Def[at], l.Last[at] = int32(t), int32(t)
		}
	}
	for id, kept := range g.Kept() {
		if kept {
			l.Last[s.Of[id]] = end
		}
	}
}

// readBefore tells whether operand i of n reads a storage that an earlier operand of n reads too.
func readBefore(s *Storages, n *ir.Node, i int) bool {
	for _, w := range n.In[:i] {
		if s.Of[w.ID] == s.Of[n.In[i].ID] {
			return true
		}
	}
	return false
}

// lastReaders is, by storage, the position of the last reader, -1 without one; unlike Last it is also known of what lives to the end.
func (l *Liveness) lastReaders() []int32 {
	last := make([]int32, len(l.Storages.All))
	for i := range last {
		last[i] = -1
	}
	for t, n := range l.Order {
		if ir.ViewOf(n) != nil {
			continue
		}
		for _, v := range n.In {
			last[l.Storages.Of[v.ID]] = int32(t)
		}
	}
	return last
}

// handovers decides who writes over whom: the operand's storage has its last reader here, sizes agree, the op reads it through that one
// operand only, and it is a node's own storage or a parameter whose new content this is. What is kept to the end is never written over.
func (l *Liveness) handovers(g *ir.Graph) {
	s := l.Storages
	lastReader := l.lastReaders()
	for _, r := range g.Results {
		lastReader[s.Of[r.Value.ID]] = int32(len(l.Order)) // the caller reads it when all is done
	}
	l.Over = make([][]Handover, len(l.Order))
	l.Place = make([]int32, len(s.All))
	for i := range l.Place {
		l.Place[i] = -1
	}
	for t, n := range l.Order {
		for _, a := range ir.AliasesOf(n.Op) {
			if h, ok := couldTake(s, n, a); ok && l.mayTake(int32(t), h, lastReader) {
				l.Over[t] = append(l.Over[t], h)
			}
		}
	}
	for i := range s.All {
		p := s.All[i].Param
		if p == nil || p.Next == nil {
			continue
		}
		out := s.Of[p.Next.ID]
		if out == int32(i) || s.All[out].Kind != NodeStorage || l.Place[out] >= 0 || lastReader[i] >= l.Def[out] || l.handed(out) {
			continue
		}
		l.Place[out] = int32(i)
	}
}

// handed tells whether a storage was written over another one.
func (l *Liveness) handed(out int32) bool {
	for _, h := range l.Over[l.Def[out]] {
		if h.Out == out {
			return true
		}
	}
	return false
}

// couldTake tells whether a pair of n allows a handover as far as the node alone shows: sizes and spaces agree, the op reads the storage through
// that one operand only, and it is a node's own storage or a parameter whose new content this is.
func couldTake(s *Storages, n *ir.Node, a ir.AliasPair) (Handover, bool) {
	if a.View || a.Out >= len(n.Out) || a.In >= len(n.In) {
		return Handover{}, false
	}
	h := Handover{Out: s.Of[n.Out[a.Out].ID], In: s.Of[n.In[a.In].ID]}
	o, i := &s.All[h.Out], &s.All[h.In]
	switch {
	case o.Bytes != i.Bytes || o.Space != i.Space || o.Bytes == 0:
		return h, false
	case i.Kind == ParamStorage && i.Param.Next != n.Out[a.Out]:
		return h, false
	case i.Kind != ParamStorage && i.Kind != NodeStorage:
		return h, false
	}
	for k, v := range n.In {
		if k != a.In && s.Of[v.ID] == h.In {
			return h, false
		}
	}
	return h, true
}

// mayTake tells whether the operand's storage dies at t and neither is part of a handover there already.
func (l *Liveness) mayTake(t int32, h Handover, lastReader []int32) bool {
	out, in := h.Out, h.In
	if lastReader[in] != t || l.Storages.All[in].Kind == NodeStorage && l.Last[in] != t {
		return false
	}
	for _, h := range l.Over[t] {
		if h.Out == out || h.In == in {
			return false
		}
	}
	return true
}

// bytes fills LiveBytes and the peak by adding what begins and taking away what ends.
func (l *Liveness) bytes() {
	s := l.Storages
	var live int64
	begin := make([]int64, len(l.Order)+1)
	end := make([]int64, len(l.Order)+1) // taken away after the node of this position
	for i := range s.All {
		st := &s.All[i]
		if st.Space != ir.Device {
			continue
		}
		if l.Def[i] < 0 {
			live += st.Bytes
			if last := max(l.Last[i], 0); int(last) < len(l.Order) {
				end[last] += st.Bytes
			}
			continue
		}
		if l.Place[i] >= 0 {
			continue // its bytes are the parameter's, which never end
		}
		begin[l.Def[i]] += st.Bytes
		end[min(int(l.Last[i]), len(l.Order))] += st.Bytes
	}
	for t := range l.Order {
		for _, h := range l.Over[t] {
			in := &s.All[h.In]
			begin[t] -= in.Bytes // counted once
			if in.Kind == ParamStorage {
				end[min(int(l.Last[h.Out]), len(l.Order))] -= in.Bytes // the place stays the parameter's
			} else {
				end[t] -= in.Bytes
			}
		}
	}
	l.LiveBytes = make([]int64, len(l.Order))
	l.PeakBytes, l.PeakAt = live, -1
	for t := range l.Order {
		live += begin[t]
		l.LiveBytes[t] = live
		if live > l.PeakBytes {
			l.PeakBytes, l.PeakAt = live, int32(t)
		}
		live -= end[t]
	}
}
