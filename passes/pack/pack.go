// Package pack places buffers of known lifetimes at offsets of one arena (static dynamic-storage allocation). It is pure: it knows neither
// graph nor plan. Values that must share a place (in-place pairs, a parameter and its new content) come as one buffer with the union of
// their spans, or as buffers of one group.
//
// Time may be a circle: a training step begins where it ended, so a parameter that leaves in the middle of the step and comes back is one
// buffer with a span at either end, and the heuristics treat it as one arc across the turn.
package pack

import (
	"context"
	"math"
)

// Span is a half-open stretch of time, in any unit.
type Span struct{ Start, End int64 }

// Window is a stretch of time during which only the bytes [Low, High) of a buffer are in use.
type Window struct {
	Span
	Low, High int64
}

// Buffer asks for Bytes during all its spans, at one offset. A buffer without spans and windows, or of no bytes, takes no room.
type Buffer struct {
	Bytes   int64
	Align   int64    // power of two; 0: 1
	Spans   []Span   // sorted, disjoint, not empty; the time between two spans is a gap in which others may use the bytes
	Windows []Window // sorted, disjoint, apart from the spans
	Group   int32    // buffers of one group > 0 share one offset, and may be live together (aliases); 0: alone
	Fixed   bool     // Offset is given and kept
	Offset  int64    // of a fixed buffer
	Hinted  bool     // Hint is the offset that a former placement gave; it breaks ties and never costs a byte
	Hint    int64
}

// Problem is what to place. With a capacity, the first placement that fits ends the search; without, the arena is minimised.
type Problem struct {
	Buffers       []Buffer
	CapacityBytes int64 // > 0: the arena may not exceed it; 0: minimise
}

// Options bounds the search. The zero value is the default. The same options give the same placement on every machine and for any number
// of workers, as long as the context does not end the search.
type Options struct {
	Tries   int   // random orders tried by the heuristics after the fixed ones; 0: a default by size; < 0: none
	Nodes   int64 // nodes of the exact search; 0: a default by size; < 0: none
	Workers int   // goroutines; 0: one
	Enough  int64 // > 0: without a capacity, an arena that exceeds the bound by at most a share of 1/Enough ends it; 0: 1000 above 300,000 buffers, else the bound alone
}

// Status tells what a result proves.
type Status uint8

const (
	Feasible   Status = iota // placed, within the capacity if there is one; a smaller arena may exist
	Optimal                  // placed, and the arena equals the bound
	Infeasible               // the bound exceeds the capacity: no placement fits
	Undecided                // no placement within the capacity was found, and none was excluded
)

func (s Status) String() string {
	return [...]string{"feasible", "optimal", "infeasible", "undecided"}[s]
}

// Result is a placement with what is known about it. Offsets are the best found even where they exceed the capacity, so that a caller can say
// by how much.
type Result struct {
	Offsets    []int64 // by buffer
	ArenaBytes int64   // highest end
	BoundBytes int64   // certified: no placement is smaller
	BoundName  string  // "load": most bytes live at one time; "exhausted": the search excluded every arena below it
	Status     Status
	Method     string // what found the placement
	Nodes      int64  // of the exact search
	Passes     int    // of the heuristics
}

// Proven tells whether the question was settled: the arena is the smallest, or (with a capacity) a placement fits or none can.
func (r *Result) Proven(capacityBytes int64) bool {
	return r.Status == Optimal || r.Status == Infeasible || capacityBytes > 0 && r.Status == Feasible
}

// Pack places the buffers in the smallest arena that the default effort finds. It returns an error for malformed buffers or fixed ones that
// overlap.
func Pack(buffers []Buffer, o Options) (Result, error) {
	return Solve(context.Background(), Problem{Buffers: buffers}, o)
}

// Solve places the buffers of a problem. The context is an outer stop: when it ends, the best placement so far is returned, without an error.
// Malformed buffers, all of them listed, and fixed ones that overlap are errors; a capacity that is too small is a Status.
func Solve(ctx context.Context, problem Problem, o Options) (Result, error) {
	if err := check(problem); err != nil {
		return Result{}, err
	}
	p := newProblem(problem.Buffers)
	s := &search{ctx: ctx, p: p, options: o, capacity: problem.CapacityBytes}
	s.best.ArenaBytes = math.MaxInt64
	s.best.BoundBytes, s.best.BoundName = p.bound(), "load"
	s.target = max(s.capacity, s.best.BoundBytes)
	if o.Enough > 0 && s.capacity == 0 {
		s.target += s.best.BoundBytes / o.Enough
	}
	s.place()
	r := s.best
	r.Offsets = p.spread(s.items)
	switch {
	case r.ArenaBytes <= r.BoundBytes && (problem.CapacityBytes == 0 || r.ArenaBytes <= problem.CapacityBytes):
		r.Status = Optimal
	case problem.CapacityBytes > 0 && r.BoundBytes > problem.CapacityBytes:
		r.Status = Infeasible
	case problem.CapacityBytes > 0 && r.ArenaBytes > problem.CapacityBytes:
		r.Status = Undecided
	}
	return r, Validate(problem.Buffers, r.Offsets)
}

// search is the state of one Solve.
type search struct {
	ctx      context.Context
	p        *problem
	options  Options
	capacity int64
	target   int64   // an arena of this size or less ends the search
	best     Result  // without offsets
	items    []int64 // the best offsets, by item
}

// take keeps a placement, by item, if it beats the best one.
func (s *search) take(method string, offsets []int64) {
	if top := s.p.arena(offsets); top < s.best.ArenaBytes {
		s.best.ArenaBytes, s.best.Method, s.items = top, method, offsets
	}
}

// done tells whether there is a placement and no reason to look for another.
func (s *search) done() bool {
	return s.items != nil && (s.best.ArenaBytes <= s.target || s.ctx.Err() != nil)
}

// nodes is what the exact search may visit.
func (s *search) nodes() int64 {
	if s.options.Nodes != 0 {
		return s.options.Nodes
	}
	return min(50_000, 25_000_000/int64(len(s.p.items)+1))
}
