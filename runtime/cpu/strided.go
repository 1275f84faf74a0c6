package cpu

import (
	"aitk/ir"
	"aitk/runtime"
)

// word is the storage of an element of some width: what kernels that move elements without looking at them work on.
type word interface {
	uint8 | uint16 | uint32 | uint64
}

// moveElems makes a kernel that copies elements from one slice to another; list 0 of the space is the destination, list 1 the source.
// Runs that are contiguous in both are copied as bytes, runs that repeat one element are filled, and where the source runs across the
// destination's rows blocks are transposed.
func (b *builder) moveElems(d ir.DType, s *space, dst, src runtime.Slice) runtime.Kernel {
	switch d.Bits() {
	case 8:
		return moveWords[uint8](b, s, dst, src)
	case 16:
		return moveWords[uint16](b, s, dst, src)
	case 32:
		return moveWords[uint32](b, s, dst, src)
	}
	return moveWords[uint64](b, s, dst, src)
}

func moveWords[T word](b *builder, s *space, dst, src runtime.Slice) runtime.Kernel {
	y, x := view[T](dst), view[T](src)
	across := s.crossing()
	switch {
	case across >= 0:
		return transposeBlocks(b, s, across, y, x)
	case s.step[0] == 1 && s.step[1] == 1:
		return s.over(b, func(_ *worker, n int, at [maxLists]int) { copy(y[at[0]:at[0]+n], x[at[1]:at[1]+n]) })
	case s.step[0] == 1 && s.step[1] == 0:
		return s.over(b, func(_ *worker, n int, at [maxLists]int) { fillWords(y[at[0]:at[0]+n], x[at[1]]) })
	}
	return s.over(b, func(_ *worker, n int, at [maxLists]int) {
		i, j := at[0], at[1]
		for range n {
			y[i] = x[j]
			i += s.step[0]
			j += s.step[1]
		}
	})
}

func fillWords[T any](dst []T, x T) {
	for i := range dst {
		dst[i] = x
	}
}

// crossing is the outer axis along which the source is contiguous although the run is not; -1 where there is none.
func (s *space) crossing() int {
	if s.step[0] != 1 || s.step[1] == 1 || s.step[1] == 0 {
		return -1
	}
	for a, d := range s.dims {
		if s.strides[1][a] == 1 && d >= 4 && s.run >= 4 {
			return a
		}
	}
	return -1
}

// blockSide is the side of the square blocks of a transposition: source and destination lines of one block stay in the first cache.
const blockSide = 32

// transposeBlocks copies so that both sides are read and written by cache lines: a tile is some stripes, each blockSide indices of the
// axis across with the whole run, at one index of the other axes.
func transposeBlocks[T word](b *builder, s *space, across int, y, x []T) runtime.Kernel {
	width := s.dims[across]
	stripes := (width + blockSide - 1) / blockSide
	others := &space{n: 1, run: 1, lists: 2, first: s.first} // the axes beside across and the run
	for a, d := range s.dims {
		if a != across {
			others.n *= d
			others.dims = append(others.dims, d)
			for k := range 2 {
				others.strides[k] = append(others.strides[k], s.strides[k][a])
			}
		}
	}
	down, right := s.strides[0][across], s.step[1]
	grain := max(1, rangeElems/(blockSide*s.run))
	return b.ranges(others.n*stripes, grain, func(_ *worker, lo, hi int) error {
		for t := lo; t < hi; t++ {
			at := others.at(t / stripes)
			begin := t % stripes * blockSide
			rows := min(blockSide, width-begin)
			to, from := at[0]+begin*down, at[1]+begin
			for j := 0; j < s.run; j += blockSide {
				cols := min(blockSide, s.run-j)
				for i := range rows {
					line := y[to+i*down+j:][:cols]
					k := from + i + j*right
					for c := range line {
						line[c] = x[k]
						k += right
					}
				}
			}
		}
		return nil
	})
}

// copyAll makes a kernel that copies a whole operand to an output of the same bytes.
func (b *builder) copyAll(dst, src runtime.Slice) runtime.Kernel {
	y, x := view[uint8](dst), view[uint8](src)
	return b.ranges(len(y), 8*rangeElems, func(_ *worker, lo, hi int) error {
		copy(y[lo:hi], x[lo:hi])
		return nil
	})
}

// fillBytes makes a kernel that writes one element, given by its little-endian bytes, everywhere.
func (b *builder) fillBytes(d ir.DType, dst runtime.Slice, value float64) runtime.Kernel {
	t := ir.NewTensor(ir.T(d))
	if d.IsFloat() {
		t.F[0] = value
	} else {
		t.I[0] = int64(value)
	}
	pattern := t.Encode()
	y := view[uint8](dst)
	size := len(pattern)
	return b.ranges(len(y)/size, rangeElems, func(_ *worker, lo, hi int) error {
		part := y[lo*size : hi*size]
		for done := copy(part, pattern); done < len(part); {
			done += copy(part[done:], part[:done])
		}
		return nil
	})
}
