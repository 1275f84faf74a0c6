// Package pack places buffers of known lifetimes at offsets of one arena (static dynamic-storage allocation). It is pure: it knows neither
// graph nor plan. Values that must share a place (in-place pairs, a parameter and its new content) come as one buffer with the union of
// their spans.
//
// Time is a circle: a training step begins where it ended, so a parameter that leaves in the middle of the step and comes back is one
// arc across the turn. Two heuristics run over several orders, the best placement wins, and the search stops at the lower bound:
// the valley skyline (valley.go, any size) and first fit (firstfit.go, up to a few thousand buffers, any spans).
package pack

import (
	"fmt"
	"math"
	"slices"
)

// Span is a half-open stretch of time.
type Span struct{ Start, End int64 }

// Buffer asks for Bytes during all its spans, at one offset.
type Buffer struct {
	Bytes  int64
	Align  int64  // power of two; 0: 1
	Spans  []Span // sorted, disjoint, not empty
	Fixed  bool   // Offset is given
	Offset int64  // of a fixed buffer
}

// Result is a placement.
type Result struct {
	Offsets    []int64
	ArenaBytes int64  // highest end
	BoundBytes int64  // most live bytes at one time: no placement is smaller
	Method     string // heuristic and order that found it
}

// Options steers the search. The zero value is the default; the same options give the same placement on every machine.
type Options struct {
	Tries int // random orders tried after the fixed ones; 0: a default by size; < 0: none
}

// Pack places the buffers. It returns an error for malformed buffers or fixed ones that overlap.
func Pack(buffers []Buffer, o Options) (Result, error) {
	if err := validate(buffers); err != nil {
		return Result{}, err
	}
	p := newProblem(buffers)
	best := Result{ArenaBytes: math.MaxInt64, BoundBytes: p.bound()}
	if len(p.items) == 0 {
		best.ArenaBytes = 0
		best.Offsets = make([]int64, len(buffers))
		return best, nil
	}
	try := func(method string, offsets []int64) {
		if offsets == nil {
			return
		}
		if top := arena(buffers, offsets); top < best.ArenaBytes {
			best.ArenaBytes, best.Offsets, best.Method = top, offsets, method
		}
	}
	tries := o.Tries
	if tries == 0 {
		tries = min(200, 200_000/len(p.items))
	}
	back := p.mirror()
	backward := back.ranks(max(tries, 0))
	for k, r := range p.ranks(max(tries, 0)) {
		if p.arcs() {
			try("valley/"+r.name, p.valley(r.keys))
			if best.ArenaBytes > best.BoundBytes {
				try("valley-backward/"+r.name, back.valley(backward[k].keys))
			}
		}
		if best.ArenaBytes > best.BoundBytes && len(p.items) <= firstFitLimit && !(r.random && p.arcs()) {
			try("first-fit/"+r.name, p.firstFit(r.keys))
		}
		if best.ArenaBytes <= best.BoundBytes {
			break
		}
	}
	if best.Offsets == nil {
		try("first-fit/size", p.firstFit(p.sizeKeys()))
	}
	return best, Validate(buffers, best.Offsets)
}

// Validate checks a placement on its own terms: alignment, fixed offsets, and that no two buffers that are live together share a byte.
func Validate(buffers []Buffer, offsets []int64) error {
	if len(offsets) != len(buffers) {
		return fmt.Errorf("%d offsets for %d buffers", len(offsets), len(buffers))
	}
	type event struct {
		at    int64
		start bool
		i     int
	}
	var events []event
	for i, b := range buffers {
		if offsets[i] < 0 || b.Align > 1 && offsets[i]%b.Align != 0 || b.Fixed && offsets[i] != b.Offset {
			return fmt.Errorf("buffer %d lies at %d, wanted alignment %d, fixed %v at %d", i, offsets[i], b.Align, b.Fixed, b.Offset)
		}
		if b.Bytes == 0 {
			continue
		}
		for _, s := range b.Spans {
			events = append(events, event{s.Start, true, i}, event{s.End, false, i})
		}
	}
	slices.SortFunc(events, func(a, b event) int {
		switch {
		case a.at != b.at:
			return cmpInt(a.at, b.at)
		case a.start != b.start && b.start:
			return -1
		case a.start != b.start:
			return 1
		}
		return a.i - b.i
	})
	var live []int // by offset
	find := func(i int) (int, bool) {
		return slices.BinarySearchFunc(live, i, func(a, b int) int {
			if offsets[a] != offsets[b] {
				return cmpInt(offsets[a], offsets[b])
			}
			return a - b
		})
	}
	for _, e := range events {
		k, found := find(e.i)
		if !e.start {
			if found {
				live = slices.Delete(live, k, k+1)
			}
			continue
		}
		if k > 0 {
			if j := live[k-1]; offsets[j]+buffers[j].Bytes > offsets[e.i] {
				return fmt.Errorf("buffers %d and %d overlap at time %d", j, e.i, e.at)
			}
		}
		if k < len(live) {
			if j := live[k]; offsets[e.i]+buffers[e.i].Bytes > offsets[j] {
				return fmt.Errorf("buffers %d and %d overlap at time %d", e.i, j, e.at)
			}
		}
		live = slices.Insert(live, k, e.i)
	}
	return nil
}

func arena(buffers []Buffer, offsets []int64) int64 {
	top := int64(0)
	for i, b := range buffers {
		top = max(top, offsets[i]+b.Bytes)
	}
	return top
}

func validate(buffers []Buffer) error {
	total := int64(0)
	for i, b := range buffers {
		if b.Bytes < 0 || b.Align < 0 || b.Align&(b.Align-1) != 0 || b.Fixed && (b.Offset < 0 || b.Align > 1 && b.Offset%b.Align != 0) {
			return fmt.Errorf("buffer %d: %d bytes, alignment %d, offset %d", i, b.Bytes, b.Align, b.Offset)
		}
		if b.Bytes > math.MaxInt64/4-total || b.Fixed && b.Offset > math.MaxInt64/4 {
			return fmt.Errorf("buffer %d: sizes overflow", i)
		}
		total += b.Bytes + b.Align
		if len(b.Spans) == 0 {
			return fmt.Errorf("buffer %d has no span", i)
		}
		for k, s := range b.Spans {
			if s.Start >= s.End || k > 0 && b.Spans[k-1].End > s.Start {
				return fmt.Errorf("buffer %d: span %d is [%d,%d)", i, k, s.Start, s.End)
			}
		}
	}
	return nil
}

func cmpInt(a, b int64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}
