package passes

import (
	"slices"

	"aitk/ir"
	"aitk/ir/plan"
)

// hazards emits instructions with the waits that order them: whatever touches bytes that another lane touched before, and one of the two
// writes, waits for it, unless an earlier wait already implies the order. Knowledge is a vector clock per lane: the last instruction of
// every lane that is known to have finished.
//
//	emit(copy d2h a -> h)           0  d2h copy            reads a
//	emit(exec b -> c)               1  exec                other bytes: no wait
//	emit(exec c -> a)       ->      2  compute waits on 0  it writes what 0 reads
//	                                3  exec
//	emit(exec b -> a)               4  exec                2 said already that 0 has finished
//
// Usage: emit for all instructions, join, then cycle for a list that may follow itself. After cycle the clocks are void.
type hazards struct {
	instrs []plan.Instr
	known  [plan.NumLanes]clock    // by lane
	after  []clock                 // by instruction: what its lane knew when it was issued, itself included
	last   clock                   // by lane: its last instruction that is no wait
	bytes  [ir.NumSpaces][]stretch // sorted, disjoint
}

// clock holds an instruction number for each lane; -1: none.
type clock [plan.NumLanes]int32

// stretch is a range of bytes with the last write and the last read of it by each lane. Both stay when another lane writes: that lane has
// waited for them, so they ask for no order that is not there.
type stretch struct {
	start, end  int64
	wrote, read clock
}

func never() clock {
	var c clock
	for i := range c {
		c[i] = -1
	}
	return c
}

func newHazards() *hazards {
	h := &hazards{last: never()}
	for i := range h.known {
		h.known[i] = never()
	}
	return h
}

// access is a range of bytes that an instruction reads or writes.
type access struct {
	space      ir.Space
	start, end int64
	write      bool
}

// emit appends an instruction with the waits that it needs and returns its number.
func (h *hazards) emit(in plan.Instr, touches []access) int32 {
	lane := plan.LaneOf(in)
	need := never()
	for _, a := range touches {
		for _, s := range h.split(a) {
			for m := range need {
				need[m] = max(need[m], s.wrote[m])
				if a.write {
					need[m] = max(need[m], s.read[m])
				}
			}
		}
	}
	for m := range need {
		if plan.Lane(m) != lane {
			h.wait(lane, need[m], plan.Lane(m))
		}
	}
	pc := h.append(in)
	for _, a := range touches {
		at := h.split(a)
		for i := range at {
			if a.write {
				at[i].wrote[lane] = pc
			} else {
				at[i].read[lane] = pc
			}
		}
	}
	return pc
}

// wait makes lane wait for instruction on of lane m, unless it is known to have finished.
func (h *hazards) wait(lane plan.Lane, on int32, m plan.Lane) {
	if on < 0 || h.known[lane][m] >= on {
		return
	}
	for k, c := range h.after[on] {
		h.known[lane][k] = max(h.known[lane][k], c)
	}
	h.append(&plan.Wait{Lane: lane, On: on})
}

// append adds an instruction without looking at bytes and returns its number.
func (h *hazards) append(in plan.Instr) int32 {
	pc := int32(len(h.instrs))
	lane := plan.LaneOf(in)
	h.instrs = append(h.instrs, in)
	h.known[lane][lane] = pc
	h.after = append(h.after, h.known[lane])
	if _, wait := in.(*plan.Wait); !wait {
		h.last[lane] = pc
	}
	return pc
}

// join makes the compute lane wait for all others.
func (h *hazards) join() {
	for m := range h.last {
		if plan.Lane(m) != plan.Compute {
			h.wait(plan.Compute, h.last[m], plan.Lane(m))
		}
	}
}

// cycle makes the list safe to follow itself without a barrier: in front of all, every other lane waits for what each lane did last in the
// run before. (The compute lane has joined them.) It returns by how much the instruction numbers moved.
func (h *hazards) cycle() int32 {
	var front []plan.Instr
	for m := range h.last {
		if h.last[m] < 0 || plan.Lane(m) == plan.Compute {
			continue
		}
		for k, on := range h.last {
			if k != m && on >= 0 {
				front = append(front, &plan.Wait{Lane: plan.Lane(m), On: on, Back: 1})
			}
		}
	}
	moved := int32(len(front))
	h.instrs = append(front, h.instrs...)
	for _, in := range h.instrs {
		if w, ok := in.(*plan.Wait); ok {
			w.On += moved
		}
	}
	return moved
}

// find is the index of the first stretch that ends after start.
func (h *hazards) find(space ir.Space, start int64) int {
	i, _ := slices.BinarySearchFunc(h.bytes[space], start, func(s stretch, at int64) int {
		if s.end <= at {
			return -1
		}
		return 1
	})
	return i
}

// split makes stretch borders at the ends of a and returns the stretches that cover it, in place: the next split may move them.
func (h *hazards) split(a access) []stretch {
	b := h.bytes[a.space]
	if a.start >= a.end {
		return nil
	}
	i := h.find(a.space, a.start)
	if i < len(b) && b[i].start < a.start {
		left := b[i]
		left.end = a.start
		b[i].start = a.start
		b = slices.Insert(b, i, left)
		i++
	}
	at := a.start
	j := i
	for at < a.end {
		switch {
		case j == len(b) || b[j].start >= a.end: // nothing known up to the end
			b = slices.Insert(b, j, stretch{start: at, end: a.end, wrote: never(), read: never()})
			at = a.end
		case b[j].start > at: // a hole
			b = slices.Insert(b, j, stretch{start: at, end: b[j].start, wrote: never(), read: never()})
			at = b[j].end
		case b[j].end > a.end:
			right := b[j]
			right.start = a.end
			b[j].end = a.end
			b = slices.Insert(b, j+1, right)
			at = a.end
		default:
			at = b[j].end
		}
		j++
	}
	h.bytes[a.space] = b
	return b[i:j]
}
