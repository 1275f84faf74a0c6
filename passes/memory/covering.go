package memory

import (
	"container/heap"
	"math"
	"math/bits"
	"slices"
)

// The interval cover bound: a gap is broken or it is not, so the least time that covers the demand of every stage with whole gaps is a bound, too, and a better
// one than the flow, which breaks parts of gaps. It is found by branch and bound with the flow as relaxation: gaps that were decided leave it, those broken with their
// bytes off the demand; what is more than the demand that is left in all stages of a gap cannot help, so its bytes are cut to that. The bound of a node is the value of
// its prices in exact arithmetic, with each gap cut to each stage's demand, so that no rounding in the flow can make it wrong; when the work is used up, the least bound
// among open nodes is the result.

// node is a set of decisions; the root has none.
type coverNode struct {
	parent *coverNode
	column int32 // decided last
	broken bool
	bound  int64
	branch int32 // column to decide next; -1: the relaxation is whole, so the bound is what the demand costs
}

type coverHeap []*coverNode

func (h coverHeap) Len() int           { return len(h) }
func (h coverHeap) Less(i, j int) bool { return h[i].bound < h[j].bound }
func (h coverHeap) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *coverHeap) Push(x any)        { *h = append(*h, x.(*coverNode)) }
func (h *coverHeap) Pop() any {
	old := *h
	x := old[len(old)-1]
	*h = old[:len(old)-1]
	return x
}

// wholeCover is the bound in picoseconds. It stops at one of enough, and when it has solved relaxations of so many rows and columns together.
func (c *cover) wholeCover(enough, work int64) int64 {
	root := &coverNode{column: -1}
	work -= c.relax(root)
	open := &coverHeap{root}
	for {
		n := heap.Pop(open).(*coverNode)
		if n.bound >= enough || n.branch < 0 || work <= 0 {
			return min(n.bound, enough)
		}
		for _, broken := range []bool{true, false} {
			child := &coverNode{parent: n, column: n.branch, broken: broken}
			work -= c.relax(child)
			child.bound = max(child.bound, n.bound)
			heap.Push(open, child)
		}
	}
}

// relax works out the bound of a node and where to branch; it returns how large the relaxation was.
func (c *cover) relax(n *coverNode) (work int64) {
	demand := slices.Clone(c.demand)
	decided := make(map[int32]bool)
	var spent int64
	for k := n; k.parent != nil; k = k.parent {
		decided[k.column] = true
		if col := &c.columns[k.column]; k.broken {
			spent += col.picos
			for r := col.from; r < col.to; r++ {
				demand[r] -= col.bytes
			}
		}
	}
	index := make([]int32, len(demand)+1) // of rows among those with demand
	var left []int64
	for r, d := range demand {
		index[r] = int32(len(left))
		if d > 0 {
			left = append(left, d)
		}
	}
	index[len(demand)] = int32(len(left))
	n.branch = -1
	if len(left) == 0 {
		n.bound = spent
		return 1
	}
	var columns []column
	var from []int32 // columns of c
	for k := range c.columns {
		col := c.columns[k]
		if decided[int32(k)] {
			continue
		}
		col.from, col.to = index[col.from], index[col.to]
		if col.from >= col.to {
			continue
		}
		most := slices.Max(left[col.from:col.to])
		col.bytes = min(col.bytes, most)
		columns = append(columns, col)
		from = append(from, int32(k))
	}
	unit := priceUnit(columns, 0)
	arcs := make([]flowArc, len(columns))
	for k, col := range columns {
		arcs[k] = flowArc{from: col.from, to: col.to, cap: col.bytes, cost: min(perByte(col.picos, col.bytes, unit), priceUnits)}
	}
	prices, flow := rowFlow(left, arcs, prohibitiveGap)
	n.bound = spent + c.worth(left, columns, from, prices, unit)
	var most float64
	for k, col := range columns {
		part := float64(flow[k]) / float64(col.bytes)
		if score := float64(col.picos) * min(part, 1-part); part > 0 && part < 1 && (n.branch < 0 || score > most) {
			n.branch, most = from[k], score
		}
	}
	return int64(len(left) + len(columns))
}

// worth is the exact value of prices for the demand that is left: what it costs at them, less what whole gaps, each cut to the demand of each row, are worth beyond
// their time; rounded up, since times are whole.
func (c *cover) worth(left []int64, columns []column, from []int32, prices []int64, unit int64) int64 {
	var gain, loss wide
	for r, d := range left {
		gain.add(uint64(prices[r]), uint64(d))
	}
	for k, col := range columns {
		var sum, cost wide
		bytes := c.columns[from[k]].bytes
		for r := col.from; r < col.to; r++ {
			if prices[r] > 0 {
				sum.add(uint64(prices[r]), uint64(min(bytes, left[r])))
			}
		}
		cost.add(uint64(col.picos), uint64(unit))
		if sum.sub(cost) {
			loss.plus(sum)
		}
	}
	if !gain.sub(loss) {
		return 0
	}
	gain.plus(wide{lo: uint64(unit) - 1})
	if gain.hi >= uint64(unit) {
		return math.MaxInt64 / 4
	}
	q, _ := bits.Div64(gain.hi, gain.lo, uint64(unit))
	return int64(min(q, math.MaxInt64/4))
}

// wide is an unsigned number of 128 bits. Prices are below 2^46 and bytes of a problem together below 2^57, so no sum of products overflows.
type wide struct{ hi, lo uint64 }

func (w *wide) add(a, b uint64) {
	hi, lo := bits.Mul64(a, b)
	w.plus(wide{hi, lo})
}

func (w *wide) plus(x wide) {
	var carry uint64
	w.lo, carry = bits.Add64(w.lo, x.lo, 0)
	w.hi, _ = bits.Add64(w.hi, x.hi, carry)
}

// sub subtracts x if that leaves more than nothing; if not, it is false and w is spoilt.
func (w *wide) sub(x wide) bool {
	var borrow uint64
	w.lo, borrow = bits.Sub64(w.lo, x.lo, 0)
	w.hi, borrow = bits.Sub64(w.hi, x.hi, borrow)
	return borrow == 0 && w.hi|w.lo != 0
}
