package check

import (
	"cmp"
	"slices"

	"aitk/ir"
	"aitk/ir/plan"
)

// arenas checks where buffers lie, and gives each a region: one for each arena, one for each buffer of a space without an arena.
func (c *checker) arenas() {
	p := c.p
	c.regions = int(ir.NumSpaces)
	c.regionOf = make([]int32, len(p.Buffers))
	highest := [ir.NumSpaces]int64{}
	highestBuffer := [ir.NumSpaces]plan.BufferID{}
	for s := range highestBuffer {
		highestBuffer[s] = plan.NoBuffer
	}
	for i := range p.Buffers {
		b, id := &p.Buffers[i], plan.BufferID(i)
		c.bufferSize(id)
		space := b.Type.Space
		a := p.Arena(space)
		if a == nil {
			if space != ir.Disk {
				c.add(Bounds, "%s: the plan has no arena in space %s", c.buf(id), space)
			}
			c.regionOf[i] = int32(c.regions)
			c.regions++
			continue
		}
		c.regionOf[i] = int32(space)
		if b.Offset%a.Align != 0 {
			c.add(Bounds, "%s is not aligned to the %d bytes of the arena", c.buf(id), a.Align)
		}
		if end := b.Offset + b.Bytes; end > a.Bytes {
			c.add(Bounds, "%s ends outside the arena of %d bytes", c.buf(id), a.Bytes)
		} else if end > highest[space] {
			highest[space], highestBuffer[space] = end, id
		}
	}
	for i := range p.Arenas {
		a := &p.Arenas[i]
		if a.BudgetBytes >= 0 && a.Bytes > a.BudgetBytes {
			c.add(Bounds, "arena %s of %d bytes is larger than its budget of %d", a.Space, a.Bytes, a.BudgetBytes)
		}
		if h := highest[a.Space]; h < a.Bytes {
			by := "it holds no buffer"
			if highestBuffer[a.Space] != plan.NoBuffer {
				by = "its highest is " + c.buf(highestBuffer[a.Space])
			}
			c.add(Bounds, "arena %s has %d bytes, of which %d are ever used; %s", a.Space, a.Bytes, h, by)
		}
	}
}

// bufferSize compares a buffer's bytes with its type and its symbol.
func (c *checker) bufferSize(id plan.BufferID) {
	b := &c.p.Buffers[id]
	if n := b.Type.Bytes(); n > b.Bytes {
		c.add(Types, "%s: %v takes %d bytes", c.buf(id), b.Type, n)
	}
	if b.Holds == plan.NoSymbol {
		return
	}
	n := c.p.Symbols[b.Holds].Bytes
	if b.Category == plan.CatStaging {
		if b.Type.Bytes() > n {
			c.add(Types, "%s: holds at most %d bytes of %s, but its type is %v", c.buf(id), n, c.sym(b.Holds), b.Type)
		}
	} else if b.Type.Bytes() != n {
		c.add(Types, "%s: type %v does not take the %d bytes of %s", c.buf(id), b.Type, n, c.sym(b.Holds))
	}
}

// spans checks, arena by arena and program by program, that live buffers share no bytes. The sweep keeps the live buffers sorted by
// offset: while they are disjoint, a new one can only collide with its two neighbours.
func (c *checker) spans() {
	type edge struct {
		at   int32
		open bool
		b    plan.BufferID
	}
	edges := make([][]edge, len(c.p.Programs)*int(ir.NumSpaces))
	for i := range c.p.Buffers {
		b := &c.p.Buffers[i]
		if c.regionOf[i] >= int32(ir.NumSpaces) || b.Bytes == 0 {
			continue
		}
		for _, s := range b.Live {
			if s.Start == s.End { // an operand that the first instruction overwrites
				continue
			}
			k := int(s.Program)*int(ir.NumSpaces) + int(b.Type.Space)
			edges[k] = append(edges[k], edge{s.Start, true, plan.BufferID(i)}, edge{s.End, false, plan.BufferID(i)})
		}
	}
	for k, list := range edges {
		slices.SortFunc(list, func(x, y edge) int {
			if d := cmp.Compare(x.at, y.at); d != 0 {
				return d
			}
			if x.open != y.open {
				if y.open {
					return -1
				}
				return 1
			}
			return cmp.Compare(x.b, y.b)
		})
		prog := int32(k / int(ir.NumSpaces))
		var live []plan.BufferID
		find := func(b plan.BufferID) (int, bool) {
			return slices.BinarySearchFunc(live, b, func(x, y plan.BufferID) int {
				return cmp.Or(cmp.Compare(c.p.Buffers[x].Offset, c.p.Buffers[y].Offset), cmp.Compare(x, y))
			})
		}
		for _, e := range list {
			i, found := find(e.b)
			if !e.open {
				if found {
					live = slices.Delete(live, i, i+1)
				}
				continue
			}
			if i > 0 {
				c.collide(prog, e.at, live[i-1], e.b)
			}
			if i < len(live) {
				c.collide(prog, e.at, e.b, live[i])
			}
			if !found {
				live = slices.Insert(live, i, e.b)
			}
			if c.full() {
				return
			}
		}
	}
}

// collide reports a and b, a not above b, if they share bytes.
func (c *checker) collide(prog, pc int32, a, b plan.BufferID) {
	x, y := &c.p.Buffers[a], &c.p.Buffers[b]
	if a != b && x.Offset+x.Bytes > y.Offset {
		c.add(Spans, "%s and %s overlap while both are live at %s", c.buf(a), c.buf(b), c.at(prog, pc))
	}
}

// liveAt tells whether a buffer is live at an instruction.
func liveAt(b *plan.Buffer, prog, pc int32) bool {
	_, ok := spanAt(b, prog, pc)
	return ok
}

// spanAt finds the span that contains pc, or else the first one that begins after it.
func spanAt(b *plan.Buffer, prog, pc int32) (int, bool) {
	i, _ := slices.BinarySearchFunc(b.Live, pc, func(s plan.Span, pc int32) int {
		if s.Program != prog {
			return cmp.Compare(s.Program, prog)
		}
		if s.End <= pc {
			return -1
		}
		if s.Start > pc {
			return 1
		}
		return 0
	})
	return i, i < len(b.Live) && b.Live[i].Program == prog && b.Live[i].Start <= pc && pc < b.Live[i].End
}

// endsAt tells whether a span of the buffer ends exactly at pc.
func endsAt(b *plan.Buffer, prog, pc int32) bool {
	i, ok := spanAt(b, prog, pc)
	return !ok && i > 0 && b.Live[i-1].Program == prog && b.Live[i-1].End == pc
}

// startsAt tells whether a span of the buffer begins exactly at pc.
func startsAt(b *plan.Buffer, prog, pc int32) bool {
	i, ok := spanAt(b, prog, pc)
	return ok && b.Live[i].Start == pc
}
