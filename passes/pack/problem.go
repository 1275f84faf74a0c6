package pack

import (
	"cmp"
	"slices"
)

// item is a buffer, or a group of them, on compressed time: sections between neighbouring births and deaths, numbered from 0.
type item struct {
	bytes      int64 // the most of its parts
	raw        int64 // the same before rounding
	align      int64
	at         int64 // of a fixed item; -1: free
	start, end int32 // arc [start, end) in sections; end may pass the turn, end-start <= sections
	first, to  int32 // its parts are p.parts[first:to]
}

// part is a stretch of sections in which an item takes the bytes [0, bytes) from its offset.
type part struct {
	start, end int32
	bytes      int64 // rounded up to the grain
	used       int64 // what is in use for certain: not rounded, without what lies under a window
}

type problem struct {
	buffers  []Buffer
	items    []item
	parts    []part  // sorted by item, then start; those of an item are disjoint
	owner    []int32 // item of a buffer; -1: it takes no room
	lead     []int32 // first buffer of an item
	grain    int64   // least alignment: every size is rounded up to it, so that every sum of sizes is aligned where all ask for the same
	sections int32
	load     []int64 // live bytes by section, rounded
	isArcs   bool    // every item is one arc of the circle and none is fixed
	isExact  bool    // the items are the problem: no window begins above byte 0
	uniform  bool    // all alignments are the grain
}

func newProblem(buffers []Buffer) *problem {
	p := &problem{buffers: buffers, isArcs: true, isExact: true, uniform: true}
	p.number()
	p.compress()
	p.shape()
	return p
}

// number makes the items. Windows in which nothing is used are left out.
func (p *problem) number() {
	p.owner = make([]int32, len(p.buffers))
	of := map[int32]int32{}
	for i, b := range p.buffers {
		p.owner[i] = -1
		used := b.Bytes > 0 && len(b.Spans) > 0
		for _, w := range b.Windows {
			used = used || w.Low < w.High
		}
		if !used {
			continue
		}
		k, seen := of[b.Group]
		if b.Group <= 0 || !seen {
			k = int32(len(p.items))
			p.items = append(p.items, item{align: 1, at: -1})
			p.lead = append(p.lead, int32(i))
			if b.Group > 0 {
				of[b.Group] = k
			}
		}
		p.owner[i] = k
	}
	// An alignment or fixed offset binds the group even where the buffer that asks for it takes no room.
	for i, b := range p.buffers {
		k := p.owner[i]
		if b.Group > 0 && k < 0 {
			if j, seen := of[b.Group]; seen {
				k = j
			}
		}
		if k >= 0 {
			it := &p.items[k]
			it.align = max(it.align, b.Align)
			if b.Fixed {
				it.at = b.Offset
			}
		}
	}
	for k, it := range p.items {
		if k == 0 || it.align < p.grain {
			p.grain = it.align
		}
	}
	p.grain = max(p.grain, 1)
	for _, it := range p.items {
		p.uniform = p.uniform && it.align == p.grain
		p.isArcs = p.isArcs && it.at < 0
	}
}

// compress numbers the sections and gives every item its parts.
func (p *problem) compress() {
	times := make([]int64, 0, 2*len(p.items))
	for i, b := range p.buffers {
		if p.owner[i] < 0 {
			continue
		}
		if b.Bytes > 0 {
			for _, s := range b.Spans {
				times = append(times, s.Start, s.End)
			}
		}
		for _, w := range b.Windows {
			if w.Low < w.High {
				times = append(times, w.Start, w.End)
			}
		}
	}
	slices.Sort(times)
	times = slices.Compact(times)
	p.sections = int32(max(len(times)-1, 0))
	section := func(t int64) int32 {
		k, _ := slices.BinarySearch(times, t)
		return int32(k)
	}
	p.parts = make([]part, 0, len(p.items))
	var members map[int32][]int32 // of items that are groups, by item
	for i := range p.buffers {
		if k := p.owner[i]; k >= 0 && p.buffers[i].Group > 0 {
			if members == nil {
				members = map[int32][]int32{}
			}
			members[k] = append(members[k], int32(i))
		}
	}
	var own []part
	add := func(b *Buffer) {
		if b.Bytes > 0 {
			for _, s := range b.Spans {
				own = append(own, part{section(s.Start), section(s.End), b.Bytes, b.Bytes})
			}
		}
		for _, w := range b.Windows {
			if w.Low < w.High {
				own = append(own, part{section(w.Start), section(w.End), w.High, w.High - w.Low})
				p.isExact = p.isExact && w.Low == 0
			}
		}
	}
	for k := range p.items {
		own = own[:0]
		if m := members[int32(k)]; m != nil {
			for _, i := range m {
				add(&p.buffers[i])
			}
		} else {
			add(&p.buffers[p.lead[k]])
		}
		own = disjoint(own)
		it := &p.items[k]
		it.first = int32(len(p.parts))
		for _, q := range own {
			it.raw = max(it.raw, q.bytes)
			q.bytes = (q.bytes + p.grain - 1) / p.grain * p.grain
			it.bytes = max(it.bytes, q.bytes)
			if n := len(p.parts); n > int(it.first) && p.parts[n-1].end == q.start && p.parts[n-1].bytes == q.bytes && p.parts[n-1].used == q.used {
				p.parts[n-1].end = q.end
			} else {
				p.parts = append(p.parts, q)
			}
		}
		it.to = int32(len(p.parts))
	}
}

// disjoint cuts parts where they meet and keeps the larger.
func disjoint(parts []part) []part {
	slices.SortFunc(parts, func(a, b part) int { return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(a.end, b.end)) })
	meet := false
	for k := 1; k < len(parts); k++ {
		meet = meet || parts[k].start < parts[k-1].end
	}
	if !meet {
		return parts
	}
	var cuts []int32
	for _, q := range parts {
		cuts = append(cuts, q.start, q.end)
	}
	slices.Sort(cuts)
	cuts = slices.Compact(cuts)
	most := make([]part, len(cuts))
	for _, q := range parts {
		a, _ := slices.BinarySearch(cuts, q.start)
		for ; cuts[a] < q.end; a++ {
			most[a].bytes, most[a].used = max(most[a].bytes, q.bytes), max(most[a].used, q.used)
		}
	}
	out := parts[:0]
	for k, q := range most {
		if q.bytes > 0 {
			out = append(out, part{cuts[k], cuts[k+1], q.bytes, q.used})
		}
	}
	return out
}

// shape finds each item's arc and the load of each section.
func (p *problem) shape() {
	p.load = make([]int64, p.sections)
	for k := range p.items {
		it := &p.items[k]
		own := p.of(it)
		for _, q := range own {
			p.load[q.start] += q.bytes
			if q.end < p.sections {
				p.load[q.end] -= q.bytes
			}
		}
		n := len(own)
		it.start, it.end = own[0].start, own[n-1].end
		gaps, gap := 0, 0
		for j := 1; j < n; j++ {
			if own[j].start > own[j-1].end {
				gaps, gap = gaps+1, j
			}
		}
		switch {
		case gaps == 1 && it.start == 0 && it.end == p.sections:
			it.start, it.end = own[gap].start, p.sections+own[gap-1].end
		case gaps > 0:
			p.isArcs = false
		}
	}
	for k := int32(1); k < p.sections; k++ {
		p.load[k] += p.load[k-1]
	}
}

func (p *problem) of(it *item) []part { return p.parts[it.first:it.to] }

// arena is the highest end of a placement by item.
func (p *problem) arena(offsets []int64) int64 {
	top := int64(0)
	for i := range p.items {
		top = max(top, offsets[i]+p.items[i].raw)
	}
	return top
}

// spread turns offsets by item into offsets by buffer. Buffers that take no room lie where they are fixed, with their group, or at 0.
func (p *problem) spread(offsets []int64) []int64 {
	out := make([]int64, len(p.buffers))
	var group map[int32]int64
	for i, b := range p.buffers {
		if k := p.owner[i]; k >= 0 {
			out[i] = offsets[k]
		} else if b.Fixed {
			out[i] = b.Offset
		}
		if b.Group > 0 && (p.owner[i] >= 0 || b.Fixed) {
			if group == nil {
				group = map[int32]int64{}
			}
			group[b.Group] = out[i]
		}
	}
	for i, b := range p.buffers {
		if p.owner[i] < 0 && b.Group > 0 {
			out[i] = group[b.Group]
		}
	}
	return out
}

// bound is LOAD: the most bytes that are live at one time. Every offset is a multiple of the grain, so every size but that of the topmost one
// counts rounded up to it. A fixed buffer is never lower than its end.
func (p *problem) bound() int64 {
	most := int64(0)
	if p.isExact {
		loss := p.roundingLoss()
		for k, load := range p.load {
			most = max(most, load-loss[k])
		}
	}
	live := make([]int64, p.sections+1)
	for k := range p.items {
		it := &p.items[k]
		for _, q := range p.of(it) {
			live[q.start] += q.used
			live[q.end] -= q.used
			if it.at >= 0 && p.isExact {
				most = max(most, it.at+q.used)
			}
		}
	}
	sum := int64(0)
	for _, d := range live {
		sum += d
		most = max(most, sum)
	}
	return most
}

// roundingLoss is, by section, the most that rounding added to one live part: the topmost one need not pay it. The parts paint the sections,
// the largest loss first, and a painted section is skipped from then on.
func (p *problem) roundingLoss() []int64 {
	loss := make([]int64, p.sections)
	if p.grain == 1 {
		return loss
	}
	var order []int32
	for k, q := range p.parts {
		if q.bytes > q.used {
			order = append(order, int32(k))
		}
	}
	slices.SortFunc(order, func(a, b int32) int {
		return cmp.Compare(p.parts[b].bytes-p.parts[b].used, p.parts[a].bytes-p.parts[a].used)
	})
	next := make([]int32, p.sections+1) // the first section from here on that is not painted, with path halving
	for k := range next {
		next[k] = int32(k)
	}
	free := func(k int32) int32 {
		for next[k] != k {
			next[k] = next[next[k]]
			k = next[k]
		}
		return k
	}
	for _, k := range order {
		q := p.parts[k]
		for s := free(q.start); s < q.end; s = free(s) {
			loss[s], next[s] = q.bytes-q.used, s+1
		}
	}
	return loss
}

// mirror turns time around. Orders that look at births and deaths find other placements there. The parts stay those of p.
func (p *problem) mirror() *problem {
	m := *p
	m.items = slices.Clone(p.items)
	for i := range m.items {
		it := &m.items[i]
		life := it.end - it.start
		it.start = ((p.sections-it.end)%p.sections + p.sections) % p.sections
		it.end = it.start + life
	}
	m.load = slices.Clone(p.load)
	slices.Reverse(m.load)
	return &m
}
