package pack

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
)

// rectangle is what a buffer takes: bytes [low, high) during [start, end).
type rectangle struct {
	low, high  int64
	start, end int64
	buffer     int32
	group      int32
}

// mayMeet tells whether two rectangles may overlap: those of one group may.
func (r *rectangle) mayMeet(o *rectangle) bool { return r.group > 0 && r.group == o.group }

// Validate checks a placement on its own terms, sharing no code with the search: alignment, fixed offsets, one offset per group, and that no two
// buffers that are live together share a byte, except within a group. O(n log n).
//
// The rectangles (time x bytes) enter a tree over their births in the order of their lowest byte. The tree holds, for every birth, the
// highest end over it so far. Rectangles sorted so overlap nothing that came before exactly when that end is at or under their own lowest
// byte; two that are live together are live at the birth of one of them. Validate does not check that the arena is small.
func Validate(buffers []Buffer, offsets []int64) error {
	if len(offsets) != len(buffers) {
		return fmt.Errorf("%d offsets for %d buffers", len(offsets), len(buffers))
	}
	all := make([]rectangle, 0, len(buffers))
	lead := map[int32]int{} // first buffer of a group
	for i, b := range buffers {
		if offsets[i] < 0 || b.Align > 1 && offsets[i]%b.Align != 0 || b.Fixed && offsets[i] != b.Offset {
			return fmt.Errorf("buffer %d lies at %d, wanted alignment %d, fixed %v at %d", i, offsets[i], b.Align, b.Fixed, b.Offset)
		}
		if offsets[i] > math.MaxInt64-b.Bytes {
			return fmt.Errorf("buffer %d of %d bytes lies at %d: its end overflows", i, b.Bytes, offsets[i])
		}
		if b.Group > 0 {
			k, seen := lead[b.Group]
			if !seen {
				lead[b.Group] = i
			} else if offsets[i] != offsets[k] {
				return fmt.Errorf("buffers %d and %d of group %d lie at %d and %d", k, i, b.Group, offsets[k], offsets[i])
			}
		}
		if b.Bytes > 0 {
			for _, s := range b.Spans {
				all = append(all, rectangle{offsets[i], offsets[i] + b.Bytes, s.Start, s.End, int32(i), b.Group})
			}
		}
		for _, w := range b.Windows {
			if w.Low < w.High {
				all = append(all, rectangle{offsets[i] + w.Low, offsets[i] + w.High, w.Start, w.End, int32(i), b.Group})
			}
		}
	}
	births := make([]int64, len(all))
	for k, r := range all {
		births[k] = r.start
	}
	slices.Sort(births)
	births = slices.Compact(births)
	slices.SortFunc(all, func(a, b rectangle) int {
		return cmp.Or(cmp.Compare(a.low, b.low), cmp.Compare(a.start, b.start), cmp.Compare(a.buffer, b.buffer))
	})
	tree := newEndTree(all, len(births))
	for k := range all {
		r := &all[k]
		a, _ := slices.BinarySearch(births, r.start)
		e, _ := slices.BinarySearch(births, r.end)
		if o := tree.highest(a, e, r); o != nil && o.high > r.low {
			return fmt.Errorf("buffers %d and %d overlap: bytes [%d,%d) in [%d,%d) and bytes [%d,%d) in [%d,%d)", o.buffer, r.buffer,
				o.low, o.high, o.start, o.end, r.low, r.high, r.start, r.end)
		}
		tree.raise(a, e, int32(k))
	}
	return nil
}

// endTree holds, for every stretch of births, which rectangle ends highest so far, and which does of those that may not meet that one, so that
// a group can look past itself.
type endTree struct {
	all  []rectangle
	size int
	best [][2]int32 // at any birth of this node: numbers in all, plus one
	over [][2]int32 // over all births of this node
}

func newEndTree(all []rectangle, births int) *endTree {
	t := &endTree{all: all, size: 1}
	for t.size < births {
		t.size *= 2
	}
	t.best, t.over = make([][2]int32, 2*t.size), make([][2]int32, 2*t.size)
	return t
}

// add puts rectangle k among the two highest.
func (t *endTree) add(e *[2]int32, k int32) {
	r := &t.all[k]
	switch {
	case e[0] == 0:
		e[0] = k + 1
	case r.mayMeet(&t.all[e[0]-1]):
		if r.high > t.all[e[0]-1].high {
			e[0] = k + 1
		}
	case r.high > t.all[e[0]-1].high:
		e[1], e[0] = e[0], k+1
	case e[1] == 0 || r.high > t.all[e[1]-1].high:
		e[1] = k + 1
	}
}

func (t *endTree) raise(a, e int, k int32) {
	var visit func(n, l, r int)
	visit = func(n, l, r int) {
		if r <= a || e <= l {
			return
		}
		t.add(&t.best[n], k)
		if a <= l && r <= e {
			t.add(&t.over[n], k)
			return
		}
		m := (l + r) / 2
		visit(2*n, l, m)
		visit(2*n+1, m, r)
	}
	visit(1, 0, t.size)
}

// highest is the rectangle over births [a, e) that ends highest and may not meet r, or nil.
func (t *endTree) highest(a, e int, r *rectangle) *rectangle {
	var top *rectangle
	look := func(pair *[2]int32) {
		for _, k := range pair {
			if k > 0 && !r.mayMeet(&t.all[k-1]) && (top == nil || t.all[k-1].high > top.high) {
				top = &t.all[k-1]
			}
		}
	}
	var visit func(n, l, r int)
	visit = func(n, l, r int) {
		if r <= a || e <= l {
			return
		}
		if a <= l && r <= e {
			look(&t.best[n])
			return
		}
		look(&t.over[n])
		m := (l + r) / 2
		visit(2*n, l, m)
		visit(2*n+1, m, r)
	}
	visit(1, 0, t.size)
	return top
}

// sizeLimit bounds the sum of all sizes, so that no sum in the search overflows.
const sizeLimit = math.MaxInt64 / 4

// check lists what is wrong with a problem.
func check(problem Problem) error {
	var errs []error
	wrong := func(i int, format string, args ...any) {
		if len(errs) < 20 {
			errs = append(errs, fmt.Errorf("buffer %d: "+format, append([]any{i}, args...)...))
		}
	}
	if problem.CapacityBytes < 0 {
		errs = append(errs, fmt.Errorf("capacity of %d bytes", problem.CapacityBytes))
	}
	total := int64(0)
	fixed := map[int32]int64{}
	for i, b := range problem.Buffers {
		if b.Bytes < 0 || b.Align < 0 || b.Align&(b.Align-1) != 0 || b.Fixed && (b.Offset < 0 || b.Align > 1 && b.Offset%b.Align != 0) {
			wrong(i, "%d bytes, alignment %d (a power of two is wanted), offset %d", b.Bytes, b.Align, b.Offset)
			continue
		}
		if b.Align > sizeLimit/4 || b.Bytes > sizeLimit-total-b.Align || b.Fixed && b.Offset > sizeLimit {
			wrong(i, "sizes overflow: all sizes and alignments together may be %d bytes", int64(sizeLimit))
			continue
		}
		total += b.Bytes + b.Align
		if b.Fixed && b.Group > 0 {
			if at, seen := fixed[b.Group]; seen && at != b.Offset {
				wrong(i, "fixed at %d, and another of group %d at %d", b.Offset, b.Group, at)
			}
			fixed[b.Group] = b.Offset
		}
		for k, s := range b.Spans {
			if s.Start >= s.End || k > 0 && b.Spans[k-1].End > s.Start {
				wrong(i, "span %d is [%d,%d)", k, s.Start, s.End)
			}
		}
		for k, w := range b.Windows {
			if w.Start >= w.End || k > 0 && b.Windows[k-1].End > w.Start || w.Low < 0 || w.Low > w.High || w.High > b.Bytes {
				wrong(i, "window %d is bytes [%d,%d) in [%d,%d)", k, w.Low, w.High, w.Start, w.End)
			}
		}
		for a, c := 0, 0; a < len(b.Spans) && c < len(b.Windows); {
			switch s, w := b.Spans[a], b.Windows[c]; {
			case s.End <= w.Start:
				a++
			case w.End <= s.Start:
				c++
			default:
				wrong(i, "window [%d,%d) meets span [%d,%d)", w.Start, w.End, s.Start, s.End)
				a++
			}
		}
	}
	return errors.Join(errs...)
}
