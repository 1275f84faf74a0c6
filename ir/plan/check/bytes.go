package check

import (
	"math"
	"slices"
	"sort"

	"aitk/ir/plan"
)

// segment is a stretch of a region whose bytes have one history. Events are numbered in the order of replay from 1; 0 stands for what
// was there, or was done, before anything that could race.
type segment struct {
	start, end int64
	part       int64 // which byte of the symbol the first byte holds
	sym        plan.SymbolID
	run        int32 // content counts in this run alone; the next run must make its own
	write      int32
	read       [plan.NumLanes]int32 // last reader by lane, since the write
}

// region is the bytes of one arena, or of one buffer that shares its bytes with none: segments without gaps, sorted.
type region struct{ segs []segment }

func newRegion() *region {
	return &region{segs: []segment{{end: math.MaxInt64, sym: plan.NoSymbol}}}
}

// stretch returns the segments of exactly [start, end), cutting at both ends. It is empty if the stretch is.
func (r *region) stretch(start, end int64) []segment {
	lo, hi := r.bounds(start, end)
	return r.segs[lo:hi]
}

func (r *region) bounds(start, end int64) (lo, hi int) {
	if start >= end {
		return 0, 0
	}
	lo = r.cut(start)
	return lo, r.cut(end)
}

// cut makes a segment begin at pos and returns its index.
func (r *region) cut(pos int64) int {
	i := sort.Search(len(r.segs), func(i int) bool { return r.segs[i].end > pos })
	if i == len(r.segs) || r.segs[i].start == pos {
		return i
	}
	head := r.segs[i]
	head.end = pos
	r.segs = slices.Insert(r.segs, i, head)
	tail := &r.segs[i+1]
	tail.part += pos - tail.start
	tail.start = pos
	return i + 1
}

// set gives [start, end) one new history.
func (r *region) set(s segment) {
	if lo, hi := r.bounds(s.start, s.end); lo < hi {
		r.segs = slices.Replace(r.segs, lo, hi, s)
	}
}

// relabel names the content of [start, end) anew and keeps who wrote and read it.
func (r *region) relabel(start, end int64, sym plan.SymbolID, run int32) {
	segs := r.stretch(start, end)
	for i := range segs {
		segs[i].sym, segs[i].part, segs[i].run = sym, segs[i].start-start, run
	}
}
