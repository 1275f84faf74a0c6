package pack

import (
	"cmp"
	"slices"
)

// layout is what the exact search sees of a problem: the items that are live all the time on the ground, one over another, and over them
// stretches of time that share no item.
type layout struct {
	ground  []int32 // items
	base    int64   // where the rest begins
	rounded int64   // the most that rounding added to an item on the ground: so much may putting it there cost
	eras    []*era
}

// era is a stretch of time and the items in it.
type era struct {
	items  []int32 // of the problem
	solids []solid // the same, on sections of the era
	slack  []int64 // by section: the rounding that the topmost item need not pay
	bound  int64   // certified: no placement of the era alone is smaller
	height int64   // of the best placement
	best   []int64 // its offsets
	step   int64   // arenas differ by multiples of it
}

// fewItems is the number of items up to which rounding is searched to the last byte.
const fewItems = 50

// layout takes the problem apart. offsets is a placement of the whole, by item, or nil.
//
// An item that is live all the time can go to the ground: lift all that is below it by its size, if every alignment divides that. Only the
// one that rounding costs most may be of use at the top, where it need not be rounded; it stays with the others if they are few, else
// putting it on the ground costs that much. Time is cut where no item is live on both sides; a circle of time is turned first, so that the
// turn is where the fewest items pass. Of the sections only those count whose items are not all in a neighbouring one: the last ones
// before a death that follows a birth.
func (p *problem) layout(offsets []int64) *layout {
	l := &layout{}
	turn := int32(0)
	if p.isArcs {
		turn = p.bestTurn()
	}
	fixed, most := false, int64(1) // alignment
	for _, it := range p.items {
		fixed, most = fixed || it.at >= 0, max(most, it.align)
	}
	type placed struct {
		item  int32
		parts []part
	}
	var rest []placed
	for i := range p.items {
		it := &p.items[i]
		parts := p.turned(it, turn)
		if !fixed && it.bytes%most == 0 && len(parts) == 1 && parts[0].end-parts[0].start == p.sections {
			l.ground = append(l.ground, int32(i))
			l.base += it.bytes
			continue
		}
		rest = append(rest, placed{int32(i), parts})
	}
	if len(l.ground) > 0 {
		k := 0
		for j, i := range l.ground {
			if p.items[i].bytes-p.items[i].raw > p.items[l.ground[k]].bytes-p.items[l.ground[k]].raw {
				k = j
			}
		}
		it := &p.items[l.ground[k]]
		l.rounded = it.bytes - it.raw
		if l.rounded > 0 && len(rest) <= fewItems {
			rest = append(rest, placed{l.ground[k], p.turned(it, turn)})
			l.ground, l.base, l.rounded = slices.Delete(l.ground, k, k+1), l.base-it.bytes, 0
		}
	}
	keep := make([]int32, p.sections+1) // by section: how many that count lie before it
	births, deaths := make([]bool, p.sections+1), make([]bool, p.sections+1)
	for _, r := range rest {
		for _, q := range r.parts {
			births[q.start], deaths[q.end] = true, true
		}
	}
	born := false
	for t := range p.sections {
		born = born || births[t]
		keep[t+1] = keep[t]
		if born && deaths[t+1] {
			keep[t+1]++
			born = false
		}
	}
	slices.SortStableFunc(rest, func(a, b placed) int { return cmp.Compare(a.parts[0].start, b.parts[0].start) })
	end, from := int32(0), int32(0)
	for k, r := range rest {
		if k == 0 || keep[r.parts[0].start] >= end {
			l.eras = append(l.eras, &era{})
			from = keep[r.parts[0].start]
		}
		e := l.eras[len(l.eras)-1]
		it := &p.items[r.item]
		s := solid{bytes: it.bytes, raw: it.raw, align: it.align, at: it.at}
		for _, q := range r.parts {
			q.start, q.end = keep[q.start]-from, keep[q.end]-from
			s.parts = append(s.parts, q)
		}
		s.start, s.end = s.parts[0].start, s.parts[len(s.parts)-1].end
		end = max(end, s.end+from)
		e.items, e.solids = append(e.items, r.item), append(e.solids, s)
	}
	for _, e := range l.eras {
		e.measure()
		if offsets != nil {
			e.settle(p, offsets)
		}
	}
	return l
}

// bestTurn is the section before which the fewest arcs pass.
func (p *problem) bestTurn() int32 {
	passing := make([]int32, p.sections+1)
	for i := range p.items {
		it := &p.items[i]
		if it.end-it.start == p.sections {
			continue
		}
		// It passes the boundaries before start+1 .. end-1, counted around.
		a, e := it.start+1, it.end
		if a >= e {
			continue
		}
		a, e = a%p.sections, e%p.sections
		passing[a]++
		if a < e {
			passing[e]--
		} else {
			passing[p.sections]--
			passing[0]++
			passing[e]--
		}
	}
	best, least, sum := int32(0), int32(0), int32(0)
	for t := range p.sections {
		if sum += passing[t]; t == 0 || sum < least {
			best, least = t, sum
		}
	}
	return best
}

// turned are the parts of an item on time that begins at section turn.
func (p *problem) turned(it *item, turn int32) []part {
	own := p.of(it)
	if turn == 0 {
		return own
	}
	var out []part
	for _, q := range own {
		switch {
		case q.start >= turn:
			q.start, q.end = q.start-turn, q.end-turn
			out = append(out, q)
		case q.end <= turn:
			q.start, q.end = q.start-turn+p.sections, q.end-turn+p.sections
			out = append(out, q)
		default:
			left := q
			left.start, left.end = q.start-turn+p.sections, p.sections
			q.start, q.end = 0, q.end-turn
			out = append(out, q, left)
		}
	}
	slices.SortFunc(out, func(a, b part) int { return cmp.Compare(a.start, b.start) })
	merged := out[:1]
	for _, q := range out[1:] {
		if n := len(merged) - 1; merged[n].end == q.start && merged[n].bytes == q.bytes && merged[n].used == q.used {
			merged[n].end = q.end
		} else {
			merged = append(merged, q)
		}
	}
	return merged
}

// measure finds the load bound, the slack of each section, the step, and which items are equal.
func (e *era) measure() {
	sections := int32(0)
	for _, s := range e.solids {
		sections = max(sections, s.end)
	}
	e.slack = make([]int64, sections)
	load := make([]int64, sections)
	first := map[[5]int64]int32{}
	e.step = 0
	for i := range e.solids {
		s := &e.solids[i]
		s.twin = int32(i)
		for _, q := range s.parts {
			for t := q.start; t < q.end; t++ {
				load[t] += q.bytes
				e.slack[t] = max(e.slack[t], q.bytes-q.used)
			}
			e.step = gcd(e.step, q.bytes)
		}
		e.step = gcd(e.step, s.align)
		if s.at >= 0 {
			e.step = gcd(e.step, s.at)
			e.bound = max(e.bound, s.at+s.raw)
		} else if len(s.parts) == 1 {
			key := [5]int64{int64(s.start), int64(s.end), s.bytes, s.raw, s.align}
			if k, seen := first[key]; seen {
				s.twin = k
			} else {
				first[key] = int32(i)
			}
		}
	}
	for t := range load {
		e.bound = max(e.bound, load[t]-e.slack[t])
		if e.slack[t] > 0 {
			e.step = 1
		}
	}
}

// settle takes the era's part of a placement of the whole and drops it: in the order of their offsets, every item falls as far as it can.
func (e *era) settle(p *problem, offsets []int64) {
	order := make([]int32, len(e.items))
	for k := range order {
		order[k] = int32(k)
	}
	slices.SortStableFunc(order, func(a, b int32) int { return cmp.Compare(offsets[e.items[a]], offsets[e.items[b]]) })
	floor := make([]int64, len(e.slack))
	e.best, e.height = make([]int64, len(e.items)), 0
	for _, k := range order {
		s := &e.solids[k]
		at := int64(0)
		for _, q := range s.parts {
			for t := q.start; t < q.end; t++ {
				at = max(at, floor[t])
			}
		}
		at = max(alignUp(at, s.align), s.at)
		for _, q := range s.parts {
			for t := q.start; t < q.end; t++ {
				floor[t] = at + q.bytes
			}
		}
		e.best[k], e.height = at, max(e.height, at+s.raw)
	}
}

func gcd(a, b int64) int64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}
