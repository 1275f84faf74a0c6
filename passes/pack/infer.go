package pack

// What a node of the exact search finds out before it branches (exact.go).

// findRuns cuts [lo, hi) into runs of one floor. Nothing unplaced crosses the two ends, so they count as walls.
func (x *exact) findRuns(lo, hi int32) {
	x.runs = x.runs[:0]
	for t := lo; t < hi; t++ {
		if n := len(x.runs); n > 0 && x.runs[n-1].floor == x.floor[t] {
			x.runs[n-1].end = t + 1
		} else {
			x.runs = append(x.runs, stretch{start: t, end: t + 1, floor: x.floor[t], edge: infinite, smallest: infinite, next: infinite})
		}
		x.runOf[t] = int32(len(x.runs) - 1)
		x.lift[t], x.rest[t], x.count[t] = infinite, infinite, 0
	}
	for k := range x.runs {
		r := &x.runs[k]
		r.valley = true
		if k > 0 {
			r.valley, r.edge = x.runs[k-1].floor > r.floor, x.runs[k-1].floor
		}
		if k+1 < len(x.runs) {
			r.valley, r.edge = r.valley && x.runs[k+1].floor > r.floor, min(r.edge, x.runs[k+1].floor)
		}
	}
}

// classify finds how each item stands to the runs under it, and its least offset. It fails if a fixed item lies under the skyline. Needs: findRuns.
func (x *exact) classify(list []int32) bool {
	for _, i := range list {
		it := &x.items[i]
		high, low := int64(-1), int64(infinite)
		for _, q := range it.parts {
			for k := x.runOf[q.start]; k <= x.runOf[q.end-1]; k++ {
				high, low = max(high, x.runs[k].floor), min(low, x.runs[k].floor)
			}
		}
		if it.at >= 0 && it.at < high {
			for t := it.start; t < it.end; t++ {
				if x.floor[t] > it.at {
					x.weight[t]++
				}
			}
			return false
		}
		least := max(alignUp(high, it.align), it.at)
		x.least[i] = least
		switch {
		case low < high:
			x.state[i] = crosses
			if len(it.parts) > 1 {
				x.wait(it, high, least)
			}
		case least > high:
			x.state[i] = above
			x.each(it, func(r *stretch) { r.next = min(r.next, least) })
		case x.anyBlocked(it):
			x.state[i] = refused
		default:
			x.state[i] = open
			x.each(it, func(r *stretch) { r.open, r.smallest = r.open+1, min(r.smallest, it.bytes) })
			for _, q := range it.parts {
				for t := q.start; t < q.end; t++ {
					x.count[t]++
				}
			}
		}
	}
	return true
}

// each visits the runs under an item.
func (x *exact) each(it *solid, visit func(r *stretch)) {
	for _, q := range it.parts {
		for k := x.runOf[q.start]; k <= x.runOf[q.end-1]; k++ {
			visit(&x.runs[k])
		}
	}
}

// wait notes an item of several parts over floors of several heights. It may be wholly inside a valley as far as that goes: there it lies on
// the floor after the lower valleys elsewhere are raised, or at its least offset.
func (x *exact) wait(it *solid, high, least int64) {
	x.each(it, func(r *stretch) {
		r.next = min(r.next, max(least, r.floor+1))
		r.waits = r.waits || r.floor == high
	})
}

func (x *exact) anyBlocked(it *solid) bool {
	for _, q := range it.parts {
		for t := q.start; t < q.end; t++ {
			if x.blocked[t] {
				return true
			}
		}
	}
	return false
}

// infer lifts every section to the least offset of an item over it, and fails where that and the unplaced load exceed the room. Needs: classify.
func (x *exact) infer(lo, hi int32, list []int32) bool {
	for _, i := range list {
		it := &x.items[i]
		least := x.least[i]
		if x.state[i] == refused {
			if len(it.parts) == 1 {
				least = x.runs[x.runOf[it.start]].bump()
			} else {
				least++
			}
			least = alignUp(least, it.align)
			x.least[i] = least
			if it.at >= 0 && least > it.at {
				return false
			}
		}
		if least+it.raw > x.capacity {
			for t := it.start; t < it.end; t++ {
				x.weight[t]++
			}
			return false
		}
		isOpen := x.state[i] == open
		for _, q := range it.parts {
			for t := q.start; t < q.end; t++ {
				x.lift[t] = min(x.lift[t], least)
				if !isOpen {
					x.rest[t] = min(x.rest[t], least)
				}
			}
		}
	}
	for t := lo; t < hi; t++ {
		if x.load[t] > 0 && x.lift[t]+x.load[t] > x.room[t] {
			x.weight[t]++
			return false
		}
	}
	return true
}

// raise lifts the valleys into which nothing can go. Needs: infer.
func (x *exact) raise(list []int32) (raised, ok bool) {
	for k := range x.runs {
		r := &x.runs[k]
		if !r.valley || r.waits || r.open > 0 {
			continue
		}
		target := min(r.edge, r.next)
		if target >= infinite {
			return false, false // all that is left here was refused
		}
		for t := r.start; t < r.end; t++ {
			if x.load[t] > 0 && target+x.load[t] > x.room[t] {
				x.weight[t]++
				return false, false
			}
		}
		for _, i := range list {
			if it := &x.items[i]; x.state[i] == refused && len(it.parts) == 1 && x.runOf[it.start] == int32(k) && r.floor+it.bytes <= target {
				return false, false // dominated: it would lie in the wasted room
			}
		}
		for t := r.start; t < r.end; t++ {
			x.log = append(x.log, change{x.floor[t], t, x.blocked[t]})
			x.floor[t], x.blocked[t] = target, false
		}
		raised = true
	}
	return raised, true
}

// choose picks the section to branch on, -1 if there is none, and tells whether the room allows to leave it uncovered. Needs: infer.
func (x *exact) choose() (at int32, spare bool) {
	at = -1
	var best, bestSlack float64
	bottom := int64(infinite)
	if x.rule == lowest {
		for k := range x.runs {
			if r := &x.runs[k]; r.valley && !r.waits && r.open > 0 {
				bottom = min(bottom, r.floor)
			}
		}
	}
	for k := range x.runs {
		r := &x.runs[k]
		if !r.valley || r.waits || r.open == 0 || r.floor > bottom {
			continue
		}
		for t := r.start; t < r.end; t++ {
			if x.count[t] == 0 {
				continue
			}
			bump := r.bump()
			if x.count[t] == r.open { // nothing but what covers the section could hold another item up
				bump = min(r.next, r.edge)
			}
			uncovered := min(x.rest[t], bump)
			room := uncovered+x.load[t] <= x.room[t]
			n := float64(x.count[t])
			if room {
				n++
			}
			value := n / x.weight[t]
			if x.rule == fewestLow {
				value *= float64(r.floor) + float64(x.capacity)/8
			}
			if n == 1 {
				value = 0
			}
			slack := float64(x.room[t] - r.floor - x.load[t])
			if at < 0 || value < best || value == best && slack < bestSlack {
				at, spare, best, bestSlack = t, room, value, slack
			}
		}
	}
	return at, spare
}

func (x *exact) covers(i, t int32) bool {
	for _, q := range x.items[i].parts {
		if q.start <= t && t < q.end {
			return true
		}
	}
	return false
}

// place puts item i on the floor and tells whether the rest still has room over it.
func (x *exact) place(i int32, floor int64) bool {
	it := &x.items[i]
	it.placed, it.offset = true, floor
	x.placed = append(x.placed, i)
	ok := floor+it.raw <= x.capacity
	for _, q := range it.parts {
		top := floor + q.bytes
		for t := q.start; t < q.end; t++ {
			x.log = append(x.log, change{x.floor[t], t, x.blocked[t]})
			x.floor[t], x.blocked[t] = top, false
			if x.load[t] -= q.bytes; x.load[t] > 0 && top+x.load[t] > x.room[t] {
				x.weight[t]++
				ok = false
			}
		}
	}
	return ok
}

// bare tells whether nothing is left to place over item i, which was free to lie anywhere: then its place is as good as any other.
func (x *exact) bare(i int32) bool {
	it := &x.items[i]
	if it.at >= 0 {
		return false
	}
	for _, q := range it.parts {
		for t := q.start; t < q.end; t++ {
			if x.load[t] > 0 {
				return false
			}
		}
	}
	return true
}

// undo restores the sections and items to what they were when log and placed were so long.
func (x *exact) undo(logged, placed int) {
	for k := len(x.log) - 1; k >= logged; k-- {
		c := &x.log[k]
		x.floor[c.section], x.blocked[c.section] = c.floor, c.blocked
	}
	x.log = x.log[:logged]
	for _, i := range x.placed[placed:] {
		it := &x.items[i]
		it.placed = false
		for _, q := range it.parts {
			for t := q.start; t < q.end; t++ {
				x.load[t] += q.bytes
			}
		}
	}
	x.placed = x.placed[:placed]
}
