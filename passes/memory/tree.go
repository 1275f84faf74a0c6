package memory

// peakTree holds one figure per stage (live bytes) under range additions and maxima, in O(log n). It is the usual bottom-up tree in which
// a node's figure includes what was added to it as a whole, and excludes what was added to its ancestors: nothing is ever pushed down.
type peakTree struct {
	size int     // leaves, a power of two
	n    int     // stages
	top  []int64 // by node: maximum below it, ancestors' additions excluded
	all  []int64 // by node: added to everything below it
}

const absent = int64(-1) << 61 // figure of the leaves beyond the last stage

func newPeakTree(n int) peakTree {
	size := 1
	for size < n {
		size *= 2
	}
	t := peakTree{size: size, n: n, top: make([]int64, 2*size), all: make([]int64, 2*size)}
	for i := n; i < size; i++ {
		t.top[size+i] = absent
	}
	for i := size - 1; i > 0; i-- {
		t.top[i] = max(t.top[2*i], t.top[2*i+1])
	}
	return t
}

// add adds bytes to the stages of [from, to); an empty range is allowed.
func (t *peakTree) add(from, to int32, bytes int64) {
	if from >= to || bytes == 0 {
		return
	}
	l, r := int(from)+t.size, int(to)+t.size
	l0, r0 := l, r-1
	for l < r {
		if l&1 == 1 {
			t.top[l] += bytes
			t.all[l] += bytes
			l++
		}
		if r&1 == 1 {
			r--
			t.top[r] += bytes
			t.all[r] += bytes
		}
		l >>= 1
		r >>= 1
	}
	t.rebuild(l0)
	if r0>>1 != l0>>1 {
		t.rebuild(r0)
	}
}

func (t *peakTree) rebuild(i int) {
	for i >>= 1; i > 0; i >>= 1 {
		t.top[i] = max(t.top[2*i], t.top[2*i+1]) + t.all[i]
	}
}

// peak is the maximum over all stages.
func (t *peakTree) peak() int64 {
	if t.n == 0 {
		return 0
	}
	return t.top[1]
}

// argmax is the first stage of the maximum.
func (t *peakTree) argmax() int32 {
	i := 1
	for i < t.size {
		i *= 2
		if t.top[i+1] > t.top[i] {
			i++
		}
	}
	return int32(i - t.size)
}

// at is the figure of one stage.
func (t *peakTree) at(stage int32) int64 {
	i := int(stage) + t.size
	sum := t.top[i]
	for i >>= 1; i > 0; i >>= 1 {
		sum += t.all[i]
	}
	return sum
}

// most is the maximum over [from, to), or absent if that is empty.
func (t *peakTree) most(from, to int32) int64 {
	if from >= to {
		return absent
	}
	return t.mostBelow(1, 0, t.size, int(from), int(to))
}

func (t *peakTree) mostBelow(i, lo, hi, from, to int) int64 {
	if from <= lo && hi <= to {
		return t.top[i]
	}
	mid := (lo + hi) / 2
	best := absent
	if from < mid {
		best = t.mostBelow(2*i, lo, mid, from, to)
	}
	if to > mid {
		best = max(best, t.mostBelow(2*i+1, mid, hi, from, to))
	}
	return best + t.all[i]
}

// over is the sum of what the stages exceed budget by.
func (t *peakTree) over(budget int64) int64 {
	if t.n == 0 || t.top[1] <= budget {
		return 0
	}
	return t.overBelow(1, 0, budget)
}

func (t *peakTree) overBelow(i int, added, budget int64) int64 {
	if t.top[i]+added <= budget {
		return 0
	}
	if i >= t.size {
		return t.top[i] + added - budget
	}
	added += t.all[i]
	return t.overBelow(2*i, added, budget) + t.overBelow(2*i+1, added, budget)
}

// firstOver is the first stage at or after from that exceeds budget, or n.
func (t *peakTree) firstOver(from int32, budget int64) int32 {
	if t.n == 0 {
		return 0
	}
	if s := t.firstOverBelow(1, 0, 0, t.size, int(from), budget); s >= 0 {
		return int32(s)
	}
	return int32(t.n)
}

func (t *peakTree) firstOverBelow(i int, added int64, lo, hi, from int, budget int64) int {
	if hi <= from || t.top[i]+added <= budget {
		return -1
	}
	if i >= t.size {
		return lo
	}
	added += t.all[i]
	mid := (lo + hi) / 2
	if s := t.firstOverBelow(2*i, added, lo, mid, from, budget); s >= 0 {
		return s
	}
	return t.firstOverBelow(2*i+1, added, mid, hi, from, budget)
}
