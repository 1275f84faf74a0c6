package pack

import (
	"cmp"
	"context"
	"math"
	"slices"
)

// The exact search decides whether all items fit under a capacity. It is a depth-first search over the skyline, the height up to which every
// section is filled. Offsets may be thought of as dropped: every item lies on another, on the ground or where it is fixed. Hence, at a
// section of a valley, the lowest item still to come lies on the floor of the valley if it is wholly inside the valley, and not below the
// lower neighbour if it crosses an edge. So a node branches on one section: each candidate that covers it, at the floor; last, nothing
// covers it there, and the section is blocked until the valley is raised. That is complete, and free to take the tightest section.
//
//	floor 3 |##|           |##|     The valley has five sections. a and b cover the third one, c does not; d crosses the right edge.
//	floor 2 |##|           |##|     Branches at the third section: a at floor 1; b at floor 1; neither, which wastes the room from
//	floor 1 |##|_____._____|##|     floor 1 to the smallest top that c or the lower edge can make there.
//
// What prunes:
//   - section inference: the least offset that any unplaced item over a section can have, plus the unplaced load there, is within the capacity;
//   - dominance: a valley is not raised past the height of an item that was refused there and would fit into the wasted room, and of two
//     equal items only one is tried;
//   - hatless items: if nothing is left over an item that was just placed, no other place for it can help;
//   - parts of time that no unplaced item crosses are searched apart, the smallest first.
//
// Sections weigh more each time they fail, also over restarts, and the section with the fewest branches by weight is taken first. After
// MiniMalloc (Moffitt, ASPLOS 2023), which branches on items in order of offset; the choice of branch is after dom/wdeg (Boussemart et al., 2004).

// verdict is the answer of the exact search.
type verdict uint8

const (
	limit    verdict = iota // the nodes ran out, or the context ended
	fits                    // the items hold their offsets
	excluded                // no placement exists
)

// solid is an item in the exact search.
type solid struct {
	start, end int32 // from its first to its last section
	parts      []part
	bytes, raw int64 // of its highest part, rounded and not
	align, at  int64
	twin       int32 // the first item that is equal to it
	offset     int64
	placed     bool
}

// exact is the search for one stretch of time.
type exact struct {
	ctx      context.Context
	items    []solid
	slack    []int64 // by section: the rounding that the topmost item need not pay
	capacity int64
	room     []int64 // by section: capacity and slack
	floor    []int64
	blocked  []bool  // nothing covers the section at its floor
	load     []int64 // unplaced, by section
	weight   []float64
	rank     []int32 // by item: the order in which candidates are tried
	rule     rule

	nodes, last int64
	out         bool // of nodes

	log    []change
	placed []int32
	stack  []int32 // lists of the nodes above

	// Scratch of a node, which does not outlive a branch.
	runOf   []int32
	runs    []stretch
	lift    []int64 // by section: least offset of an unplaced item over it
	rest    []int64 // the same, without the open items
	count   []int32 // by section: open items
	crosses []int32
	least   []int64 // by item: its least offset
	state   []stance
}

// change is what undo needs to restore a section.
type change struct {
	floor   int64
	section int32
	blocked bool
}

// stretch is a run of sections of one floor.
type stretch struct {
	start, end int32
	floor      int64
	edge       int64 // the lower neighbour
	valley     bool  // both neighbours are higher
	waits      bool  // an item over it waits for a lower valley elsewhere
	open       int32 // open items
	smallest   int64 // bytes of the smallest of them
	next       int64 // least offset above the floor of an item that does not cross an edge
}

// bump is the least offset of an item that is refused at the floor of a valley: over another item, or over the raised valley.
func (r *stretch) bump() int64 { return min(r.floor+r.smallest, r.next, r.edge) }

// stance is how an item stands to the runs under it.
type stance uint8

const (
	crosses stance = iota // floors of several heights
	open                  // one floor: a candidate if that is a valley
	refused               // one floor, with a blocked section
	above                 // one floor, but aligned or fixed above it
)

// rule picks the section to branch on.
type rule uint8

const (
	fewest    rule = iota // branches by weight
	fewestLow             // the same times the height
	lowest                // in the lowest valley first
	numRules
)

const infinite = math.MaxInt64 / 2

func newExact(ctx context.Context, items []solid, slack []int64) *exact {
	sections := len(slack)
	x := &exact{ctx: ctx, items: items, slack: slack}
	for _, s := range []*[]int64{&x.room, &x.floor, &x.load, &x.lift, &x.rest} {
		*s = make([]int64, sections)
	}
	x.runOf, x.count, x.crosses = make([]int32, sections), make([]int32, sections), make([]int32, sections+1)
	x.blocked, x.weight = make([]bool, sections), make([]float64, sections)
	x.least, x.state = make([]int64, len(items)), make([]stance, len(items))
	for t := range x.weight {
		x.weight[t] = 1
	}
	return x
}

// run searches once, with at most so many nodes. Needs: rank, rule. Weights are kept from run to run.
func (x *exact) run(capacity, nodes int64) verdict {
	x.capacity, x.last, x.out = capacity, x.nodes+nodes, false
	x.log, x.placed, x.stack = x.log[:0], x.placed[:0], x.stack[:0]
	for t := range x.floor {
		x.floor[t], x.blocked[t], x.load[t], x.room[t] = 0, false, 0, capacity+x.slack[t]
	}
	all := make([]int32, len(x.items))
	for i := range x.items {
		all[i] = int32(i)
		x.items[i].placed = false
		for _, q := range x.items[i].parts {
			for t := q.start; t < q.end; t++ {
				x.load[t] += q.bytes
			}
		}
	}
	for t, load := range x.load {
		if load > x.room[t] {
			return excluded
		}
	}
	switch {
	case x.solve(all):
		return fits
	case x.out:
		return limit
	}
	return excluded
}

// solve places the items of a list, which share no section with other unplaced items. It leaves no trace if it fails.
func (x *exact) solve(list []int32) bool {
	logged, placed, from := len(x.log), len(x.placed), len(x.stack)
	x.stack = append(x.stack, list...)
	own := x.stack[from:]
	ok := x.descend(own)
	if !ok {
		x.undo(logged, placed)
	}
	x.stack = x.stack[:from]
	return ok
}

// descend makes forced moves, then branches. It may shorten the list in place and leaves it to solve to undo.
func (x *exact) descend(list []int32) bool {
	for {
		list = slices.DeleteFunc(list, func(i int32) bool { return x.items[i].placed })
		if len(list) == 0 {
			return true
		}
		if x.nodes++; x.nodes > x.last || x.nodes&1023 == 0 && x.ctx.Err() != nil {
			x.out = true
			return false
		}
		lo, hi, cuts := x.cut(list)
		if cuts {
			return x.solveParts(lo, hi, list)
		}
		x.findRuns(lo, hi)
		if !x.classify(list) || !x.infer(lo, hi, list) {
			return false
		}
		switch raised, ok := x.raise(list); {
		case !ok:
			return false
		case raised:
			continue
		}
		t, spare := x.choose()
		if t < 0 {
			return false
		}
		at := len(x.stack)
		for _, i := range list {
			if x.state[i] == open && x.covers(i, t) {
				x.stack = append(x.stack, i)
			}
		}
		candidates := x.stack[at:]
		slices.SortFunc(candidates, func(a, b int32) int { return cmp.Compare(x.rank[a], x.rank[b]) })
		if len(candidates) == 1 && !spare {
			if !x.place(candidates[0], x.floor[t]) {
				x.weight[t]++
				return false
			}
			x.stack = x.stack[:at]
			continue
		}
		for k, i := range candidates {
			if slices.ContainsFunc(candidates[:k], func(j int32) bool { return x.items[i].twin == x.items[j].twin }) {
				continue
			}
			logged, placed := len(x.log), len(x.placed)
			if x.place(i, x.floor[t]) {
				bare := x.bare(i)
				if x.solve(list) {
					return true
				}
				if x.out || bare {
					return false
				}
			}
			x.undo(logged, placed)
		}
		x.stack = x.stack[:at]
		x.weight[t]++
		if !spare {
			return false
		}
		x.log = append(x.log, change{x.floor[t], t, false})
		x.blocked[t] = true
	}
}

// cut finds the stretch of time of a list, and whether there is a boundary in it that no item crosses.
func (x *exact) cut(list []int32) (lo, hi int32, cuts bool) {
	lo, hi = int32(len(x.floor)), 0
	for _, i := range list {
		lo, hi = min(lo, x.items[i].start), max(hi, x.items[i].end)
	}
	clear(x.crosses[lo : hi+1])
	for _, i := range list {
		x.crosses[x.items[i].start+1]++
		x.crosses[x.items[i].end]--
	}
	sum := int32(0)
	for t := lo + 1; t < hi; t++ {
		if sum += x.crosses[t]; sum == 0 {
			return lo, hi, true
		}
	}
	return lo, hi, false
}

// solveParts searches the parts of time between the cuts one after the other, the one with the fewest items first. Needs: cut.
func (x *exact) solveParts(lo, hi int32, list []int32) bool {
	starts := []int32{lo}
	sum := int32(0)
	for t := lo + 1; t < hi; t++ {
		if sum += x.crosses[t]; sum == 0 {
			starts = append(starts, t)
		}
	}
	parts := make([][]int32, len(starts))
	for _, i := range list {
		k, exactly := slices.BinarySearch(starts, x.items[i].start)
		if !exactly {
			k--
		}
		parts[k] = append(parts[k], i)
	}
	slices.SortStableFunc(parts, func(a, b []int32) int { return cmp.Compare(len(a), len(b)) })
	for _, part := range parts {
		if len(part) > 0 && !x.solve(part) {
			return false
		}
	}
	return true
}
