package pack

import (
	"container/heap"
	"slices"
)

// The valley skyline. The skyline is a ring of runs of sections, each with a floor: the height up to which its sections are filled. The
// lowest run is a valley. Into it goes the best-ranked item that lies wholly inside it, at that floor; if none does, the valley is
// raised to its lower neighbour and merged with it. Only raising wastes space. Every item is placed once and every raise removes a
// run, so there are O(n) steps; each looks up an item in a tree over start points.
//
//	floor 3 |##|        |##|          |##|        |##|
//	floor 2 |##|        |##|    ->    |##|aaa|    |##|   item a covers a part of the valley: two runs now
//	floor 1 |##|________|##|          |##|aaa|____|##|

// run is a stretch of the ring: sections [start, end), end may pass the turn.
type run struct {
	start, end int32
	floor      int64
	prev, next int32
	seq        int32 // heap entries with an older number are stale
	dead       bool
}

type valleys struct {
	p       *problem
	runs    []run
	queue   runHeap
	tree    *startTree
	offsets []int64
	live    int // runs in the ring
}

// valley places every item; needs: p.isArcs.
func (p *problem) valley(keys []int32) []int64 {
	v := &valleys{p: p, offsets: make([]int64, len(p.items)), tree: newStartTree(p.items, keys)}
	v.runs = append(v.runs, run{start: 0, end: p.sections})
	v.live = 1
	v.push(0)
	for left := len(p.items); left > 0; {
		e := heap.Pop(&v.queue).(runEntry)
		r := &v.runs[e.run]
		if r.dead || r.seq != e.seq {
			continue
		}
		i := v.find(r)
		if i < 0 {
			v.raise(e.run)
			continue
		}
		v.tree.remove(i)
		at := alignUp(r.floor, p.items[i].align)
		v.offsets[i] = at
		v.place(e.run, &p.items[i], at+p.items[i].bytes)
		left--
	}
	return v.offsets
}

// find is the best-ranked unplaced item inside r, or -1.
func (v *valleys) find(r *run) int32 {
	s := v.p.sections
	if v.live == 1 {
		return v.tree.best(0, s, 2*s)
	}
	a, e := r.start, r.end
	i := v.tree.best(a, s, e)
	if e > s { // the run passes the turn: items that start after it count from the turn again
		if j := v.tree.best(0, s, e-s); j >= 0 && (i < 0 || v.tree.keys[j] < v.tree.keys[i]) {
			i = j
		}
	}
	return i
}

// place raises the part of run k that it covers and splits off the rest.
func (v *valleys) place(k int32, it *item, top int64) {
	s := v.p.sections
	a, e := it.start, it.end
	r := v.runs[k]
	if v.live == 1 { // the whole ring: cut it at the item
		if e-a == s {
			v.runs[k] = run{start: 0, end: s, floor: top, prev: k, next: k, seq: r.seq + 1}
			v.push(k)
			return
		}
		rest := v.add(run{start: e % s, end: e%s + s - (e - a), floor: r.floor, prev: k, next: k})
		v.runs[k] = run{start: a, end: e, floor: top, prev: rest, next: rest, seq: r.seq + 1}
		v.push(k)
		v.push(rest)
		return
	}
	if a < r.start { // the item counts from the turn that the run has passed
		a, e = a+s, e+s
	}
	left, right := r.prev, r.next
	if a > r.start {
		left = v.add(run{start: r.start, end: a, floor: r.floor, prev: r.prev, next: k})
		v.runs[r.prev].next = left
	}
	if e < r.end {
		right = v.add(run{start: e % s, end: e%s + r.end - e, floor: r.floor, prev: k, next: r.next})
		v.runs[r.next].prev = right
	}
	v.runs[k].start, v.runs[k].end, v.runs[k].floor = a%s, a%s+e-a, top
	if a > r.start {
		v.runs[k].prev = left
	}
	if e < r.end {
		v.runs[k].next = right
	}
	v.runs[k].seq++
	if a > r.start {
		v.push(left)
	}
	if e < r.end {
		v.push(right)
	}
	v.mergeEqual(k)
}

// raise lifts run k to its lower neighbour and merges them.
func (v *valleys) raise(k int32) {
	r := &v.runs[k]
	r.floor = min(v.runs[r.prev].floor, v.runs[r.next].floor)
	v.mergeEqual(k)
}

// mergeEqual joins run k with neighbours of the same floor and queues it.
func (v *valleys) mergeEqual(k int32) {
	r := &v.runs[k]
	s := v.p.sections
	if n := r.next; n != k && v.runs[n].floor == r.floor {
		r.end = r.end + v.runs[n].end - v.runs[n].start
		v.drop(n)
	}
	if n := r.prev; n != k && v.runs[n].floor == r.floor {
		size := r.end - r.start
		r.start = v.runs[n].start
		r.end = v.runs[n].end + size
		v.drop(n)
	}
	if v.live == 1 {
		r.start, r.end = 0, s
	}
	r.seq++
	v.push(k)
}

func (v *valleys) drop(n int32) {
	d := &v.runs[n]
	v.runs[d.prev].next = d.next
	v.runs[d.next].prev = d.prev
	d.dead = true
	v.live--
}

func (v *valleys) add(r run) int32 {
	v.runs = append(v.runs, r)
	v.live++
	return int32(len(v.runs) - 1)
}

func (v *valleys) push(k int32) {
	heap.Push(&v.queue, runEntry{v.runs[k].floor, v.runs[k].start, k, v.runs[k].seq})
}

type runEntry struct {
	floor    int64
	start    int32
	run, seq int32
}

type runHeap []runEntry

func (h runHeap) Len() int { return len(h) }
func (h runHeap) Less(i, j int) bool {
	if h[i].floor != h[j].floor {
		return h[i].floor < h[j].floor
	}
	return h[i].start < h[j].start
}
func (h runHeap) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *runHeap) Push(x any)   { *h = append(*h, x.(runEntry)) }
func (h *runHeap) Pop() any {
	old := *h
	x := old[len(old)-1]
	*h = old[:len(old)-1]
	return x
}

// startTree answers: of the unplaced items with start in [lo, hi) and end <= limit, which ranks best? A tree over items by start, each
// node with the best rank and the least end of its unplaced items.
type startTree struct {
	items  []item
	keys   []int32
	order  []int32 // item of leaf
	leaf   []int32 // leaf of item
	starts []int32 // start of leaf
	size   int
	rank   []int32
	end    []int32
}

const never = int32(1) << 30

func newStartTree(items []item, keys []int32) *startTree {
	n := len(items)
	t := &startTree{items: items, keys: keys, order: make([]int32, n), leaf: make([]int32, n), starts: make([]int32, n), size: 1}
	for i := range t.order {
		t.order[i] = int32(i)
	}
	slices.SortFunc(t.order, func(a, b int32) int {
		if d := items[a].start - items[b].start; d != 0 {
			return int(d)
		}
		return int(keys[a] - keys[b])
	})
	for t.size < n {
		t.size *= 2
	}
	t.rank, t.end = make([]int32, 2*t.size), make([]int32, 2*t.size)
	for i := range t.rank {
		t.rank[i], t.end[i] = never, never
	}
	for l, i := range t.order {
		t.leaf[i], t.starts[l] = int32(l), items[i].start
		t.rank[t.size+l], t.end[t.size+l] = keys[i], items[i].end
	}
	for k := t.size - 1; k > 0; k-- {
		t.pull(k)
	}
	return t
}

func (t *startTree) pull(k int) {
	t.rank[k] = min(t.rank[2*k], t.rank[2*k+1])
	t.end[k] = min(t.end[2*k], t.end[2*k+1])
}

func (t *startTree) remove(i int32) {
	k := t.size + int(t.leaf[i])
	t.rank[k], t.end[k] = never, never
	for k /= 2; k > 0; k /= 2 {
		t.pull(k)
	}
}

func (t *startTree) best(lo, hi, limit int32) int32 {
	a, _ := slices.BinarySearch(t.starts, lo)
	b, _ := slices.BinarySearch(t.starts, hi)
	best, at := never, int32(-1)
	var visit func(k, l, r int)
	visit = func(k, l, r int) {
		if r <= a || b <= l || t.rank[k] >= best || t.end[k] > limit {
			return
		}
		if r-l == 1 {
			best, at = t.rank[k], t.order[l]
			return
		}
		m := (l + r) / 2
		first, second := 2*k, 2*k+1
		if t.rank[second] < t.rank[first] { // better ranks first, so that the rest is pruned
			visit(second, m, r)
			visit(first, l, m)
			return
		}
		visit(first, l, m)
		visit(second, m, r)
	}
	visit(1, 0, t.size)
	return at
}
