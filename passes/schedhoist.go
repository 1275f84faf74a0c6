package passes

import (
	"container/heap"
	"slices"

	"aitk/ir"
)

// hoist moves nodes up that free more bytes than they need, as soon as their last operand is there: a weight gradient that is the last
// reader of a large activation runs before the input gradient, an update before whatever comes next. Nodes of a few bytes (flags, norms, scalar
// arithmetic) run at once too, because updates wait for them. All others keep the order that came in.
//
// One walk over the ready nodes with a heap of the eager ones by (bytes, position); O(E log N). Generators and views are left out of the
// walk and put before their first reader.
func hoist(g *ir.Graph, s *Storages, order []*ir.Node) []*ir.Node {
	h := newHoister(g, s, order)
	for i := range h.nodes {
		for h.eager.Len() > 0 {
			if e := heap.Pop(&h.eager).(eagerNode); !h.done[e.at] {
				h.run(e.at)
			}
		}
		if !h.done[i] {
			h.run(int32(i))
		}
	}
	for h.eager.Len() > 0 {
		if e := heap.Pop(&h.eager).(eagerNode); !h.done[e.at] {
			h.run(e.at)
		}
	}
	for _, n := range order { // results that are generators or views
		h.emit(n)
	}
	return h.out
}

// fewBytes is what a result may take and still let its node run at once; fewFirst puts such nodes before all others, because they cost
// nothing and what waits for them may free much.
const (
	fewBytes = 64
	fewFirst = 1 << 60
)

type hoister struct {
	s       *Storages
	nodes   []*ir.Node // all that are not lazy, in the order that came in
	index   []int32    // by node ID: index in nodes; -1
	waits   []int32    // by index: how many nodes it still waits for
	waiters [][]int32  // by index: who waits for it, once for each reason
	reads   [][]int32  // by index: storages read, without duplicates
	left    []int32    // by storage: readers that have not run
	who     []int32    // by storage: xor of the indices of those readers
	kept    []bool     // by storage: never freed
	there   []bool     // by storage: its bytes are alive already
	place   []bool     // by storage: it takes a parameter's place
	done    []bool
	emitted []bool // by node ID
	eager   eagerHeap
	out     []*ir.Node
}

func newHoister(g *ir.Graph, s *Storages, order []*ir.Node) *hoister {
	h := &hoister{
		s: s, index: make([]int32, g.NumNodes()), emitted: make([]bool, g.NumNodes()),
		left: make([]int32, len(s.All)), who: make([]int32, len(s.All)),
		kept: make([]bool, len(s.All)), there: make([]bool, len(s.All)), place: make([]bool, len(s.All)),
		out: make([]*ir.Node, 0, len(order)),
	}
	for i := range s.All {
		st := &s.All[i]
		h.kept[i] = st.Kind == ParamStorage || st.Kind == ConstStorage
		h.there[i] = st.Kind != NodeStorage
		if st.Param != nil && st.Param.Next != nil {
			h.place[s.Of[st.Param.Next.ID]] = true
		}
	}
	for id, kept := range g.Kept() {
		if kept {
			h.kept[s.Of[id]] = true
		}
	}
	for i := range h.index {
		h.index[i] = -1
	}
	lazy := lazyNodes(g)
	for _, n := range order {
		if !lazy[n.ID] {
			h.index[n.ID] = int32(len(h.nodes))
			h.nodes = append(h.nodes, n)
		}
	}
	h.waits, h.waiters = make([]int32, len(h.nodes)), make([][]int32, len(h.nodes))
	h.reads, h.done = make([][]int32, len(h.nodes)), make([]bool, len(h.nodes))
	before := precede(g, s, order)
	for i, n := range h.nodes {
		h.link(int32(i), n, before[n.ID])
	}
	for i := range h.nodes {
		if h.waits[i] == 0 {
			h.offer(int32(i))
		}
	}
	return h
}

// link records what node i reads and waits for.
func (h *hoister) link(i int32, n *ir.Node, before []*ir.Node) {
	for k, v := range n.In {
		if readBefore(h.s, n, k) {
			continue
		}
		st := h.s.Of[v.ID]
		h.reads[i] = append(h.reads[i], st)
		h.left[st]++
		h.who[st] ^= i
		if d := h.s.All[st].Root.Def; d != nil && h.index[d.ID] >= 0 {
			h.wait(i, h.index[d.ID])
		}
	}
	for _, m := range before {
		if at := h.index[m.ID]; at >= 0 {
			h.wait(i, at)
		}
	}
}

func (h *hoister) wait(i, on int32) {
	h.waits[i]++
	h.waiters[on] = append(h.waiters[on], i)
}

// delta is how the live bytes change when node i runs now.
func (h *hoister) delta(i int32) (bytes int64, few bool) {
	few = true
	for _, v := range h.nodes[i].Out {
		st := h.s.Of[v.ID]
		if v.Type.Space != ir.Device || h.place[st] {
			continue
		}
		b := h.s.All[st].Bytes
		bytes += b
		few = few && b <= fewBytes
	}
	for _, st := range h.reads[i] {
		b := h.s.All[st].Bytes
		if h.s.All[st].Space != ir.Device {
			continue
		}
		if !h.there[st] {
			bytes += b
			few = few && b <= fewBytes
		}
		if h.left[st] == 1 && !h.kept[st] {
			bytes -= b
		}
	}
	return bytes, few
}

// offer puts a ready node among the eager ones if it is.
func (h *hoister) offer(i int32) {
	d, few := h.delta(i)
	if few {
		d -= fewFirst
	}
	if d < 0 {
		heap.Push(&h.eager, eagerNode{delta: d, at: i})
	}
}

// run appends node i and tells those who waited.
func (h *hoister) run(i int32) {
	n := h.nodes[i]
	h.done[i] = true
	h.emit(n)
	for _, v := range n.Out {
		h.there[h.s.Of[v.ID]] = true
	}
	for _, st := range h.reads[i] {
		h.there[st] = true
		h.left[st]--
		h.who[st] ^= i
		if h.left[st] == 1 && h.waits[h.who[st]] == 0 && !h.done[h.who[st]] {
			h.offer(h.who[st])
		}
	}
	for _, w := range h.waiters[i] {
		if h.waits[w]--; h.waits[w] == 0 {
			h.offer(w)
		}
	}
}

// emit appends n after the lazy nodes that it reads.
func (h *hoister) emit(n *ir.Node) {
	if h.emitted[n.ID] {
		return
	}
	h.emitted[n.ID] = true
	for _, v := range n.In {
		if v.Def != nil {
			h.emit(v.Def)
		}
	}
	h.out = append(h.out, n)
}

type eagerNode struct {
	delta int64
	at    int32
}

// eagerHeap gives the node that frees most, the earlier one on a tie.
type eagerHeap []eagerNode

func (e eagerHeap) Len() int { return len(e) }
func (e eagerHeap) Less(i, j int) bool {
	if e[i].delta != e[j].delta {
		return e[i].delta < e[j].delta
	}
	return e[i].at < e[j].at
}
func (e eagerHeap) Swap(i, j int) { e[i], e[j] = e[j], e[i] }
func (e *eagerHeap) Push(x any)   { *e = append(*e, x.(eagerNode)) }
func (e *eagerHeap) Pop() any {
	last := len(*e) - 1
	x := (*e)[last]
	*e = slices.Delete(*e, last, last+1)
	return x
}
