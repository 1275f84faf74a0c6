package memory

import "math"

// The interval-flow bound needs prices for bytes at a row of stages: the dual of covering every row with enough bytes of broken gaps. Since each
// gap covers consecutive rows, the difference of neighbouring constraints makes it a min-cost flow along a line: nodes are the places between rows,
// a gap is an arc over the rows that it covers, what is covered in excess flows back row by row at no cost, and arcs at a prohibitive cost make any
// demand feasible. This is the primal network simplex on it, with strongly feasible trees against cycling.
//
//	node 0 --row 0--> node 1 --row 1--> node 2 ...        tree at the start: the prohibitive arcs
//
// The prices need not be optimal, nor exact: Bounds works out the certified value of whatever prices it is given. So costs are rounded and pivots are limited.

type flowArc struct {
	from, to  int32
	cap, cost int64 // cost per unit of flow
}

const (
	atLower int8 = iota
	atUpper
	inTree
)

type lineFlow struct {
	arcs  []flowArc
	flow  []int64
	where []int8

	// The tree, by node. The root is node 0.
	parent, pred      []int32 // pred: arc to the parent
	depth             []int32
	potential         []int64
	child, next, prev []int32 // lists of children
	block             int
	scanned           int
}

const noLimit = math.MaxInt64 / 4

// rowPrices solves the covering problem and returns a price per row, in units of cost. Arcs may have any cap; demands are positive.
func rowPrices(demand []int64, gaps []flowArc, prohibitive int64) []int64 {
	prices, _ := rowFlow(demand, gaps, prohibitive)
	return prices
}

// rowFlow is rowPrices with the flow of every gap.
func rowFlow(demand []int64, gaps []flowArc, prohibitive int64) (prices, flow []int64) {
	rows := len(demand)
	f := &lineFlow{arcs: append([]flowArc(nil), gaps...)}
	for k := range rows {
		f.arcs = append(f.arcs, flowArc{from: int32(k + 1), to: int32(k), cap: noLimit})
	}
	first := len(f.arcs)
	for k := range rows {
		f.arcs = append(f.arcs, flowArc{from: int32(k), to: int32(k + 1), cap: noLimit, cost: prohibitive})
	}
	f.flow, f.where = make([]int64, len(f.arcs)), make([]int8, len(f.arcs))
	nodes := rows + 1
	f.parent, f.pred, f.depth, f.potential = make([]int32, nodes), make([]int32, nodes), make([]int32, nodes), make([]int64, nodes)
	f.child, f.next, f.prev = make([]int32, nodes), make([]int32, nodes), make([]int32, nodes)
	for k := range nodes {
		f.parent[k], f.child[k], f.next[k], f.prev[k], f.pred[k] = -1, -1, -1, -1, -1
	}
	for k := range rows {
		a := int32(first + k)
		f.flow[a], f.where[a] = demand[k], inTree
		f.hang(int32(k+1), int32(k), a)
		f.depth[k+1], f.potential[k+1] = int32(k+1), f.potential[k]+prohibitive
	}
	for f.block = 20; f.block*f.block < len(f.arcs); f.block += f.block / 4 {
	}
	for range 60*nodes + 4*len(f.arcs) {
		in := f.entering()
		if in < 0 {
			break
		}
		f.pivot(in)
	}
	prices = make([]int64, rows)
	for k := range rows {
		prices[k] = max(0, f.potential[k+1]-f.potential[k])
	}
	return prices, f.flow[:len(gaps)]
}

func (f *lineFlow) hang(node, parent, arc int32) {
	f.parent[node], f.pred[node] = parent, arc
	f.prev[node], f.next[node] = -1, f.child[parent]
	if c := f.child[parent]; c >= 0 {
		f.prev[c] = node
	}
	f.child[parent] = node
}

func (f *lineFlow) unhang(node int32) {
	if p := f.prev[node]; p >= 0 {
		f.next[p] = f.next[node]
	} else {
		f.child[f.parent[node]] = f.next[node]
	}
	if n := f.next[node]; n >= 0 {
		f.prev[n] = f.prev[node]
	}
}

// reduced is the reduced cost of arc a.
func (f *lineFlow) reduced(a int32) int64 {
	return f.arcs[a].cost + f.potential[f.arcs[a].from] - f.potential[f.arcs[a].to]
}

// entering scans blocks of arcs in turn and returns the most violated one of the first block that has any, or -1.
func (f *lineFlow) entering() int32 {
	best, worst := int32(-1), int64(0)
	for i := range f.arcs {
		a := int32(f.scanned)
		if f.scanned++; f.scanned == len(f.arcs) {
			f.scanned = 0
		}
		if f.where[a] != inTree {
			c := f.reduced(a)
			if f.where[a] == atUpper {
				c = -c
			}
			if c < worst {
				best, worst = a, c
			}
		}
		if (i+1)%f.block == 0 && best >= 0 {
			return best
		}
	}
	return best
}

// pivot sends flow round the cycle that arc in closes with the tree until an arc is full or empty, which then leaves the tree.
func (f *lineFlow) pivot(in int32) {
	first, second := f.arcs[in].from, f.arcs[in].to
	if f.where[in] == atUpper {
		first, second = second, first
	}
	join := f.join(first, second)
	delta, out, side := f.arcs[in].cap, int32(-1), 0
	for u := first; u != join; u = f.parent[u] {
		if room := f.room(u, false); room < delta {
			delta, out, side = room, u, 1
		}
	}
	for u := second; u != join; u = f.parent[u] {
		if room := f.room(u, true); room <= delta {
			delta, out, side = room, u, 2
		}
	}
	if delta > 0 {
		if f.where[in] == atUpper {
			f.flow[in] -= delta
		} else {
			f.flow[in] += delta
		}
		for u := first; u != join; u = f.parent[u] {
			f.push(u, false, delta)
		}
		for u := second; u != join; u = f.parent[u] {
			f.push(u, true, delta)
		}
	}
	if side == 0 {
		f.where[in] = atLower + atUpper - f.where[in]
		return
	}
	leaving := f.pred[out]
	f.where[leaving] = atLower
	if f.flow[leaving] > 0 {
		f.where[leaving] = atUpper
	}
	c := f.reduced(in)
	f.where[in] = inTree
	top, under := first, second
	if side == 2 {
		top, under = second, first
	}
	if f.arcs[in].from == top {
		c = -c
	}
	f.rehang(top, under, in, out)
	f.shift(top, c)
}

func (f *lineFlow) join(a, b int32) int32 {
	for a != b {
		if f.depth[a] >= f.depth[b] {
			a = f.parent[a]
		} else {
			b = f.parent[b]
		}
	}
	return a
}

// room is how much flow fits on the tree arc of u, upwards or downwards.
func (f *lineFlow) room(u int32, up bool) int64 {
	a := f.pred[u]
	if (f.arcs[a].from == u) == up {
		if f.arcs[a].cap == noLimit {
			return noLimit
		}
		return f.arcs[a].cap - f.flow[a]
	}
	return f.flow[a]
}

func (f *lineFlow) push(u int32, up bool, delta int64) {
	a := f.pred[u]
	if (f.arcs[a].from == u) == up {
		f.flow[a] += delta
	} else {
		f.flow[a] -= delta
	}
}

// rehang turns the path from top to out round, and hangs top under another node by arc in.
func (f *lineFlow) rehang(top, under, in, out int32) {
	node, parent, arc := top, under, in
	for {
		oldParent, oldArc := f.parent[node], f.pred[node]
		f.unhang(node)
		f.hang(node, parent, arc)
		if node == out {
			return
		}
		node, parent, arc = oldParent, node, oldArc
	}
}

// shift adds to the potentials below and at top, and renews the depths.
func (f *lineFlow) shift(top int32, c int64) {
	node := top
	for {
		f.potential[node] += c
		f.depth[node] = f.depth[f.parent[node]] + 1
		if f.child[node] >= 0 {
			node = f.child[node]
			continue
		}
		for node != top && f.next[node] < 0 {
			node = f.parent[node]
		}
		if node == top {
			return
		}
		node = f.next[node]
	}
}
