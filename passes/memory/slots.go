package memory

// slotTree is a peakTree over the slots of a sequence. Empty slots hold absent, whatever lives across them, so that peak, over and firstOver see events only. Both
// figures of a node lie side by side, since this is where annealing spends its time.
type slotTree struct {
	size  int // leaves, a power of two
	nodes []slotNode
}

type slotNode struct {
	top int64 // maximum below, ancestors' additions excluded
	all int64 // added to everything below
}

func newSlotTree(size int) slotTree {
	t := slotTree{size: size, nodes: make([]slotNode, 2*size)}
	for i := range t.nodes {
		t.nodes[i].top = absent
	}
	return t
}

// add adds bytes to the slots of [from, to); an empty range is allowed.
func (t *slotTree) add(from, to int32, bytes int64) {
	if from >= to {
		return
	}
	l, r := int(from)+t.size, int(to)+t.size-1
	nodes := t.nodes
	if l == r {
		nodes[l].top += bytes
		t.climb(l)
		return
	}
	// Both ends at once: nodes right of the left path and left of the right path are whole.
	nodes[l].top += bytes
	nodes[l].all += bytes
	nodes[r].top += bytes
	nodes[r].all += bytes
	for l>>1 != r>>1 {
		if l&1 == 0 {
			n := &nodes[l+1]
			n.top += bytes
			n.all += bytes
		}
		if r&1 == 1 {
			n := &nodes[r-1]
			n.top += bytes
			n.all += bytes
		}
		l >>= 1
		r >>= 1
		nodes[l].top = max(nodes[2*l].top, nodes[2*l+1].top) + nodes[l].all
		nodes[r].top = max(nodes[2*r].top, nodes[2*r+1].top) + nodes[r].all
	}
	t.climb(l)
}

// climb renews the maxima above node i.
func (t *slotTree) climb(i int) {
	nodes := t.nodes
	for i >>= 1; i > 0; i >>= 1 {
		n := &nodes[i]
		top := max(nodes[2*i].top, nodes[2*i+1].top) + n.all
		if top == n.top {
			return
		}
		n.top = top
	}
}

// peak is the most bytes at any event.
func (t *slotTree) peak() int64 { return max(0, t.nodes[1].top) }

// most is the maximum over the events of [from, to), far below 0 if there is none.
func (t *slotTree) most(from, to int32) int64 {
	if from >= to {
		return absent
	}
	return t.mostBelow(1, 0, t.size, int(from), int(to))
}

func (t *slotTree) mostBelow(i, lo, hi, from, to int) int64 {
	if from <= lo && hi <= to {
		return t.nodes[i].top
	}
	mid := (lo + hi) / 2
	best := absent
	if from < mid {
		best = t.mostBelow(2*i, lo, mid, from, to)
	}
	if to > mid {
		best = max(best, t.mostBelow(2*i+1, mid, hi, from, to))
	}
	return best + t.nodes[i].all
}

// over is the sum of what the events exceed budget by.
func (t *slotTree) over(budget int64) int64 {
	if t.nodes[1].top <= budget {
		return 0
	}
	return t.overBelow(1, budget)
}

// overBelow is over below node i, budget less what was added above it.
func (t *slotTree) overBelow(i int, budget int64) int64 {
	if i >= t.size {
		return t.nodes[i].top - budget
	}
	budget -= t.nodes[i].all
	var sum int64
	if t.nodes[2*i].top > budget {
		sum = t.overBelow(2*i, budget)
	}
	if t.nodes[2*i+1].top > budget {
		sum += t.overBelow(2*i+1, budget)
	}
	return sum
}

// firstOver is the first slot at or after from that exceeds budget, or -1.
func (t *slotTree) firstOver(from int32, budget int64) int32 {
	return t.firstOverBelow(1, 0, t.size, int(from), budget)
}

func (t *slotTree) firstOverBelow(i, lo, hi, from int, budget int64) int32 {
	if hi <= from || t.nodes[i].top <= budget {
		return -1
	}
	if i >= t.size {
		return int32(lo)
	}
	budget -= t.nodes[i].all
	mid := (lo + hi) / 2
	if s := t.firstOverBelow(2*i, lo, mid, from, budget); s >= 0 {
		return s
	}
	return t.firstOverBelow(2*i+1, mid, hi, from, budget)
}

// argmax is the first slot of the maximum.
func (t *slotTree) argmax() int32 {
	i := 1
	for i < t.size {
		i *= 2
		if t.nodes[i+1].top > t.nodes[i].top {
			i++
		}
	}
	return int32(i - t.size)
}
