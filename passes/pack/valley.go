package pack

import (
	"math/bits"
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
//
// A pass may look ahead: into the valley goes the best-ranked item that covers its tightest section, the one under which most bytes still wait,
// so that what is wasted falls on sections that have room to spare. All sections of a valley have the same floor, so the tightest one is where
// floor and waiting bytes together are closest to the arena's height: the rule of choice of the exact search, without its backtracking.

// ring is what every pass over a problem in one direction of time shares.
type ring struct {
	items     []item
	sections  int32
	load      []int64 // by section
	loss      int64   // the most that rounding adds to an item
	order     []int32 // item of leaf: by start
	leaf      []int32 // leaf of item
	firstLeaf []int32 // by section: the first leaf that starts there or later
	size      int     // of the tree
}

func newRing(p *problem) *ring {
	n := len(p.items)
	g := &ring{items: p.items, sections: p.sections, load: p.load, order: make([]int32, n), leaf: make([]int32, n), firstLeaf: make([]int32, p.sections+1), size: 1}
	for i := range p.items {
		g.firstLeaf[p.items[i].start]++
		g.loss = max(g.loss, p.items[i].bytes-p.items[i].raw)
	}
	sum := int32(0)
	for t := range g.firstLeaf {
		g.firstLeaf[t], sum = sum, sum+g.firstLeaf[t]
	}
	next := slices.Clone(g.firstLeaf)
	for i := range p.items {
		l := next[p.items[i].start]
		next[p.items[i].start]++
		g.order[l], g.leaf[i] = int32(i), l
	}
	for g.size < n {
		g.size *= 2
	}
	return g
}

// run is a stretch of the ring: sections [start, end), end may pass the turn.
type run struct {
	floor      int64
	start, end int32
	prev, next int32
	seq        int32 // queue entries with an older number are stale
}

// valleys is the state of a pass, reused by the next one.
type valleys struct {
	*ring
	keys    []int32
	runs    []run
	free    []int32 // runs to use again
	live    int     // runs in the ring
	queue   []entry // heap by floor, then start
	tree    []best
	offsets []int64
	waiting loads
	ahead   bool // the pass looks ahead
}

// best is, of the unplaced items below a node of the tree, the best rank, the least end and the largest one.
type best struct{ rank, end, last int32 }

// none is below a node without items.
func none() best { return best{never, never, 0} }

const never = int32(1) << 30

// pass places every item, or gives up with nil when one ends above the limit or, with a look ahead, must. The result is overwritten by the next pass.
// Needs: p.isArcs.
func (v *valleys) pass(keys []int32, ahead bool, limit int64) []int64 {
	v.keys, v.ahead = keys, ahead
	if ahead {
		v.waiting.fill(v.load)
	}
	if v.tree == nil {
		v.tree, v.offsets = make([]best, 2*v.size), make([]int64, len(v.items))
	}
	v.plant()
	v.runs, v.free, v.queue, v.live = append(v.runs[:0], run{start: 0, end: v.sections}), v.free[:0], v.queue[:0], 1
	v.push(0)
	for left := len(v.items); left > 0; {
		e := v.pop()
		r := &v.runs[e.run]
		if r.seq != e.seq {
			continue
		}
		tight, most := int32(-1), int64(0)
		if ahead {
			if tight, most = v.tightest(r); r.floor+most-v.loss > limit {
				return nil
			}
		}
		i := v.find(r, tight)
		if i < 0 {
			v.raise(e.run)
			continue
		}
		v.remove(i)
		it := &v.items[i]
		if ahead {
			v.waiting.take(it.start, min(it.end, v.sections), it.bytes)
			if it.end > v.sections {
				v.waiting.take(0, it.end-v.sections, it.bytes)
			}
		}
		at := r.floor
		if it.align > 1 {
			at = alignUp(at, it.align)
		}
		if at+it.raw > limit {
			return nil
		}
		v.offsets[i] = at
		v.place(e.run, it, at+it.bytes)
		left--
	}
	return v.offsets
}

// tightest is the section of r over which most bytes wait, counted as r counts, and those bytes.
func (v *valleys) tightest(r *run) (int32, int64) {
	s := v.sections
	if r.end <= s {
		return v.waiting.most(r.start, r.end)
	}
	t, most := v.waiting.most(r.start, s)
	if other, more := v.waiting.most(0, r.end-s); more > most {
		t, most = other+s, more
	}
	return t, most
}

// find is the best-ranked unplaced item inside r, of those that cover the section if there are any, or -1. Section -1: no matter which.
func (v *valleys) find(r *run, section int32) int32 {
	if section >= 0 {
		if i := v.inside(r, section); i >= 0 {
			return i
		}
	}
	return v.inside(r, -1)
}

// inside is the best-ranked unplaced item inside r that covers the section, or -1. Section -1: no matter which.
func (v *valleys) inside(r *run, section int32) int32 {
	s := v.sections
	if v.live == 1 {
		i, rank := v.best(0, s, 2*s, section)
		if section >= 0 { // an item may also reach the section past the turn
			if j, other := v.best(0, s, 2*s, section+s); other < rank {
				i = j
			}
		}
		return i
	}
	a, e := r.start, r.end
	i, rank := v.best(a, min(s, e), e, section)
	if e > s { // the run passes the turn: items that start after it count from the turn again
		if j, other := v.best(0, s, e-s, max(section-s, -1)); other < rank && (section < 0 || section >= s) {
			i = j
		}
	}
	return i
}

// place raises the part of run k that it covers and splits off the rest.
func (v *valleys) place(k int32, it *item, top int64) {
	s := v.sections
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
	s := v.sections
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
	d.seq++
	v.free = append(v.free, n)
	v.live--
}

func (v *valleys) add(r run) int32 {
	v.live++
	if n := len(v.free); n > 0 {
		k := v.free[n-1]
		v.free = v.free[:n-1]
		r.seq = v.runs[k].seq + 1
		v.runs[k] = r
		return k
	}
	v.runs = append(v.runs, r)
	return int32(len(v.runs) - 1)
}

// entry is a run in the queue.
type entry struct {
	floor    int64
	start    int32
	run, seq int32
}

func (e *entry) before(o *entry) bool {
	return e.floor < o.floor || e.floor == o.floor && e.start < o.start
}

func (v *valleys) push(k int32) {
	r := &v.runs[k]
	v.queue = append(v.queue, entry{r.floor, r.start, k, r.seq})
	q := v.queue
	i := len(q) - 1
	for i > 0 && q[i].before(&q[(i-1)/2]) {
		q[i], q[(i-1)/2] = q[(i-1)/2], q[i]
		i = (i - 1) / 2
	}
}

func (v *valleys) pop() entry {
	q := v.queue
	e, n := q[0], len(q)-1
	q[0] = q[n]
	v.queue = q[:n]
	for i := 0; ; {
		c := 2*i + 1
		if c >= n {
			break
		}
		if c+1 < n && q[c+1].before(&q[c]) {
			c++
		}
		if !q[c].before(&q[i]) {
			break
		}
		q[i], q[c] = q[c], q[i]
		i = c
	}
	return e
}

// plant fills the tree with all items.
func (v *valleys) plant() {
	n := len(v.order)
	for l, i := range v.order {
		v.tree[v.size+l] = best{v.keys[i], v.items[i].end, v.items[i].end}
	}
	for l := v.size + n; l < 2*v.size; l++ {
		v.tree[l] = none()
	}
	for k := v.size - 1; k > 0; k-- {
		v.pull(k)
	}
}

func (v *valleys) pull(k int) {
	a, b := v.tree[2*k], v.tree[2*k+1]
	v.tree[k] = best{min(a.rank, b.rank), min(a.end, b.end), max(a.last, b.last)}
}

func (v *valleys) remove(i int32) {
	k := v.size + int(v.leaf[i])
	v.tree[k] = none()
	for k /= 2; k > 0; k /= 2 {
		v.pull(k)
	}
}

// best answers: of the unplaced items with start in [lo, hi) and end <= limit that cover a section, which ranks best? Section -1: no matter which.
// -1 and never: none.
func (v *valleys) best(lo, hi, limit, section int32) (int32, int32) {
	hi = max(min(hi, limit), lo) // what starts at the limit or later ends after it
	if section >= 0 {
		hi = max(min(hi, section+1), lo)
	}
	a, b := int(v.firstLeaf[lo]), int(v.firstLeaf[hi])
	rank, at := never, int32(-1)
	if b-a <= 8 { // most valleys are small
		for l := a; l < b; l++ {
			if t := v.tree[v.size+l]; t.rank < rank && t.end <= limit && t.end > section {
				rank, at = t.rank, v.order[l]
			}
		}
		return at, rank
	}
	// Down from the lowest node over the whole range.
	up := bits.Len(uint(a ^ (b - 1)))
	low := a >> up << up
	type node struct{ k, l, r int }
	var stack [64]node
	stack[0] = node{(v.size + a) >> up, low, low + 1<<up}
	for n := 1; n > 0; {
		n--
		d := stack[n]
		t := &v.tree[d.k]
		if d.r <= a || b <= d.l || t.rank >= rank || t.end > limit || t.last <= section {
			continue
		}
		if d.r-d.l == 1 {
			rank, at = t.rank, v.order[d.l]
			continue
		}
		m := (d.l + d.r) / 2
		left, right := node{2 * d.k, d.l, m}, node{2*d.k + 1, m, d.r}
		if v.tree[right.k].rank < v.tree[left.k].rank { // the better rank last, so that it comes next and prunes the rest
			stack[n], stack[n+1] = left, right
		} else {
			stack[n], stack[n+1] = right, left
		}
		n += 2
	}
	return at, rank
}
