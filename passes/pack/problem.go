package pack

import "slices"

// item is a buffer on compressed time: sections between neighbouring births and deaths, numbered from 0.
type item struct {
	buffer     int   // index into the caller's slice
	bytes      int64 // rounded up to the unit
	start, end int32 // arc [start, end) in sections; end may pass the turn, end-start <= sections
	spans      [][2]int32
}

type problem struct {
	buffers  []Buffer
	items    []item
	unit     int64 // largest alignment; every size is rounded up to it, so every sum of sizes is aligned
	sections int32
	load     []int64 // live bytes by section
	onlyArcs bool
}

func newProblem(buffers []Buffer) *problem {
	p := &problem{buffers: buffers, unit: 1, onlyArcs: true}
	var times []int64
	for _, b := range buffers {
		p.unit = max(p.unit, b.Align)
		for _, s := range b.Spans {
			times = append(times, s.Start, s.End)
		}
	}
	slices.Sort(times)
	times = slices.Compact(times)
	section := func(t int64) int32 {
		k, _ := slices.BinarySearch(times, t)
		return int32(k)
	}
	p.sections = int32(max(len(times)-1, 0))
	p.load = make([]int64, p.sections)
	for i, b := range buffers {
		if b.Bytes == 0 {
			continue
		}
		it := item{buffer: i, bytes: (b.Bytes + p.unit - 1) / p.unit * p.unit}
		for _, s := range b.Spans {
			a, e := section(s.Start), section(s.End)
			if n := len(it.spans); n > 0 && it.spans[n-1][1] == a {
				it.spans[n-1][1] = e
			} else {
				it.spans = append(it.spans, [2]int32{a, e})
			}
			p.load[a] += it.bytes
			if e < p.sections {
				p.load[e] -= it.bytes
			}
		}
		it.start, it.end = it.spans[0][0], it.spans[0][1]
		switch n := len(it.spans); {
		case n == 2 && it.start == 0 && it.spans[1][1] == p.sections:
			it.start, it.end = it.spans[1][0], p.sections+it.spans[0][1]
		case n > 1:
			p.onlyArcs = false
		}
		if b.Fixed {
			p.onlyArcs = false
		}
		p.items = append(p.items, it)
	}
	for k := int32(1); k < p.sections; k++ {
		p.load[k] += p.load[k-1]
	}
	return p
}

// arcs tells whether every buffer is one arc of the circle and none is fixed, as the valley heuristic needs.
func (p *problem) arcs() bool { return p.onlyArcs }

// bound is LOAD at the fullest section: the sum of the live sizes, rounded up to the unit where all buffers have the same alignment, less
// the rounding loss that the topmost of them need not pay.
func (p *problem) bound() int64 {
	if len(p.items) == 0 {
		return 0
	}
	uniform := true
	for _, it := range p.items {
		uniform = uniform && max(p.buffers[it.buffer].Align, 1) == p.unit
	}
	size := func(it item) int64 {
		if uniform {
			return it.bytes
		}
		return p.buffers[it.buffer].Bytes
	}
	load := make([]int64, p.sections+1)
	for _, it := range p.items {
		for _, s := range it.spans {
			load[s[0]] += size(it)
			load[s[1]] -= size(it)
		}
	}
	at, most, sum := int32(0), int64(0), int64(0)
	for k := range p.sections {
		if sum += load[k]; sum > most {
			at, most = k, sum
		}
	}
	loss := int64(0)
	for _, it := range p.items {
		for _, s := range it.spans {
			if s[0] <= at && at < s[1] {
				loss = max(loss, size(it)-p.buffers[it.buffer].Bytes)
			}
		}
	}
	return most - loss
}

// mirror turns time around. Orders that look at births and deaths find other placements there.
func (p *problem) mirror() *problem {
	m := *p
	m.items = slices.Clone(p.items)
	m.load = slices.Clone(p.load)
	slices.Reverse(m.load)
	for i := range m.items {
		it := &m.items[i]
		life := it.end - it.start
		it.start = ((p.sections-it.end)%p.sections + p.sections) % p.sections
		it.end = it.start + life
		spans := make([][2]int32, len(it.spans))
		for k, s := range it.spans {
			spans[len(spans)-1-k] = [2]int32{p.sections - s[1], p.sections - s[0]}
		}
		it.spans = spans
	}
	return &m
}
