package quant

import (
	"fmt"
	"math"
)

// Packing a matrix takes two passes over its rows, each in slabs of whole rows in any sizes: Absmax over all of it, then Scales once, then
// Encode over all of it.

// Absmax raises max, one entry for each group, to the largest magnitudes of a slab: x holds n whole rows from row on. A NaN or an infinity is
// an error that says where.
func (s *Scheme) Absmax(max, x []float32, row int64) (err error) {
	if s.Cols == 0 {
		return nil
	}
	s.run(row, int64(len(x))/s.Cols, func(g, lo, hi int64) {
		m := max[g]
		for i, v := range x[lo:hi] {
			if v < 0 {
				v = -v
			}
			if v > m {
				m = v
			}
			if !(v <= math.MaxFloat32) && err == nil {
				at := lo + int64(i)
				err = fmt.Errorf("element [%d,%d] is %v: only numbers can be quantized", row+at/s.Cols, at%s.Cols, x[at])
			}
		}
		max[g] = m
	})
	return err
}

// Scales turns largest magnitudes into scales, in place.
func (s *Scheme) Scales(max []float32) {
	d := s.Format.levels()
	if d == 1 {
		return
	}
	for i, m := range max {
		max[i] = m / d
	}
}

// Encode writes the codes of a slab, one to a byte; Pack4 puts two into one.
func (s *Scheme) Encode(codes []byte, x []float32, row int64, scale []float32) {
	if s.Cols == 0 {
		return
	}
	mid, zero := midpoints(), s.Format.zero()
	s.run(row, int64(len(x))/s.Cols, func(g, lo, hi int64) {
		sc := scale[g]
		for i, v := range x[lo:hi] {
			c := zero
			if sc > 0 {
				c = s.Format.code(v, sc, &mid)
			}
			codes[lo+int64(i)] = c
		}
	})
}

// Decode writes the values of a slab's codes, one to a byte.
func (s *Scheme) Decode(y []float32, codes []byte, row int64, scale []float32) {
	if s.Cols == 0 {
		return
	}
	t := Table(s.Format)
	s.run(row, int64(len(y))/s.Cols, func(g, lo, hi int64) {
		for i := lo; i < hi; i++ {
			y[i] = t[codes[i]] * scale[g]
		}
	})
}

// Pack4 puts codes into nibbles: code i of the slice is element first+i of the tensor, whose bytes are dst. Bytes are shared by neighbours, so
// a nibble that lies outside the slice is left alone.
func Pack4(dst, codes []byte, first int64) {
	for i, c := range codes {
		at := first + int64(i)
		if at&1 == 0 {
			dst[at/2] = dst[at/2]&0xf0 | c&15
		} else {
			dst[at/2] = dst[at/2]&15 | c<<4
		}
	}
}

// Unpack4 is the inverse of Pack4.
func Unpack4(codes, src []byte, first int64) {
	for i := range codes {
		at := first + int64(i)
		codes[i] = src[at/2] >> (4 * (at & 1)) & 15
	}
}
