package cpu

import (
	"slices"

	"aitk/ir"
	"aitk/runtime"
)

// maxLists is how many tensors a space can address at once.
const maxLists = 4

// space is the set of indices that a kernel walks over, with what a step along each axis means in each of several tensors: 0 where a
// tensor is stretched, a permuted or negative stride where it is seen another way. Axes that lie in all tensors as one are merged, so that a
// same-shape operation is a single long run whatever its rank.
type space struct {
	n       int   // indices in all
	run     int   // extent of the innermost axis, whose indices are visited in one go
	dims    []int // the other axes, outermost first
	lists   int
	first   [maxLists]int   // element of each tensor at the first index
	step    [maxLists]int   // what one step along the run means
	strides [maxLists][]int // and along the other axes
}

// newSpace merges the axes of a shape. Each list of strides has one entry per axis.
func newSpace(shape ir.Shape, lists ...[]int) *space {
	s := &space{n: int(shape.Elems()), lists: len(lists), run: 1}
	var dims []int
	strides := make([][]int, len(lists))
	for a, extent := range shape {
		d := int(extent)
		if d == 1 {
			continue
		}
		last := len(dims) - 1
		joins := last >= 0
		for k := range lists {
			joins = joins && strides[k][last] == lists[k][a]*d
		}
		if joins {
			dims[last] *= d
		} else {
			dims = append(dims, d)
		}
		for k := range lists {
			if joins {
				strides[k][last] = lists[k][a]
			} else {
				strides[k] = append(strides[k], lists[k][a])
			}
		}
	}
	if last := len(dims) - 1; last >= 0 {
		s.run = dims[last]
		s.dims = dims[:last]
		for k := range lists {
			s.step[k] = strides[k][last]
			s.strides[k] = strides[k][:last]
		}
	}
	return s
}

// rowMajor is, for each axis, how many elements lie between neighbours along it.
func rowMajor(s ir.Shape) []int {
	strides := make([]int, len(s))
	step := 1
	for a, d := range slices.Backward(s) {
		strides[a] = step
		step *= int(d)
	}
	return strides
}

// stretched is rowMajor of s as seen from the shape out to which it broadcasts.
func stretched(s, out ir.Shape) []int {
	own := rowMajor(s)
	strides := make([]int, len(out))
	lead := len(out) - len(s)
	for a := range s {
		if s[a] == out[lead+a] {
			strides[lead+a] = own[a]
		}
	}
	return strides
}

// at is where each tensor's element of run r lies.
func (s *space) at(r int) [maxLists]int {
	at := s.first
	for a := len(s.dims) - 1; a >= 0; a-- {
		i := r % s.dims[a]
		r /= s.dims[a]
		for k := range s.lists {
			at[k] += i * s.strides[k][a]
		}
	}
	return at
}

// walk visits the indices lo to hi in order, as pieces of runs: body gets the length of a piece and where it begins in each tensor.
func (s *space) walk(lo, hi int, body func(n int, at [maxLists]int)) {
	if lo >= hi {
		return
	}
	r, skip := lo/s.run, lo%s.run
	base := s.at(r)
	last := len(s.dims) - 1
	for {
		at := base
		for k := range s.lists {
			at[k] += skip * s.step[k]
		}
		n := min(s.run-skip, hi-lo)
		body(n, at)
		if lo += n; lo >= hi {
			return
		}
		r, skip = r+1, 0
		if r%s.dims[last] == 0 {
			base = s.at(r)
			continue
		}
		for k := range s.lists {
			base[k] += s.strides[k][last]
		}
	}
}

// over makes a kernel whose tiles walk over parts of the space.
func (s *space) over(b *builder, body func(w *worker, n int, at [maxLists]int)) runtime.Kernel {
	return b.ranges(s.n, rangeElems, func(w *worker, lo, hi int) error {
		s.walk(lo, hi, func(n int, at [maxLists]int) { body(w, n, at) })
		return nil
	})
}

// blocks is over in pieces of at most blockElems.
func (s *space) blocks(b *builder, body func(w *worker, n int, at [maxLists]int)) runtime.Kernel {
	return s.over(b, func(w *worker, n int, at [maxLists]int) {
		for n > blockElems {
			body(w, blockElems, at)
			for k := range s.lists {
				at[k] += blockElems * s.step[k]
			}
			n -= blockElems
		}
		body(w, n, at)
	})
}
