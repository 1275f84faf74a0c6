// Package pack places buffers of known lifetimes at offsets of one arena (static dynamic-storage allocation). It is pure: it knows neither
// graph nor plan. Values that must share a place (in-place pairs, a parameter and its new content) come as one buffer with the union of
// their spans.
package pack

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
	ArenaBytes int64 // highest end
	BoundBytes int64 // most live bytes at one time: no placement is smaller
}
