package cpu

import (
	"fmt"

	"aitk/ir"
	"aitk/runtime"
)

// slide is how a pool's window moves over one plane (sample and channel) of x to the positions of y. A window is visited as runs along the
// last axis that lie inside the plane, in row-major order of the kernel.
type slide struct {
	axes, planes      int
	in, out           []int
	inputs, positions int // elements of a plane of x and y
	kernel, strides   []int
	dilations, before []int
	step              int // from element to element within a run
	rowSize           int // elements of a plane of x for one index of its first spatial axis
}

func newSlide(name string, x, y ir.Shape, kernel, strides, dilations, pads []int64) (*slide, error) {
	s := &slide{axes: len(x) - 2, planes: int(x[:2].Elems()), in: extents(x[2:]), out: extents(y[2:]), inputs: int(x[2:].Elems()), positions: int(y[2:].Elems()),
		kernel: extents(kernel), strides: extents(strides), dilations: extents(dilations), before: extents(pads[:len(x)-2]), rowSize: int(x[3:].Elems())}
	if s.axes > maxAxes {
		return nil, fmt.Errorf("%s over %d spatial axes has no cpu kernel, which serves %d", name, s.axes, maxAxes)
	}
	s.step = s.dilations[s.axes-1]
	return s, nil
}

// cursor is a place within a window: for each axis the kernel indices [lo, hi) that lie inside the plane, the present one, and the coordinate
// of kernel index 0, which may lie outside.
type cursor struct{ lo, hi, k, origin [maxAxes]int }

// first puts the cursor on the first run of the window at position r; false if no cell of it lies inside.
func (s *slide) first(c *cursor, r int) bool {
	inside := true
	for i := s.axes - 1; i >= 0; i-- {
		o := r%s.out[i]*s.strides[i] - s.before[i]
		r /= s.out[i]
		d := s.dilations[i]
		c.origin[i] = o
		c.lo[i], c.hi[i] = 0, s.kernel[i]
		if o < 0 {
			c.lo[i] = (-o + d - 1) / d
		}
		if left := s.in[i] - o; left <= (s.kernel[i]-1)*d {
			c.hi[i] = max(0, (left+d-1)/d)
		}
		c.k[i] = c.lo[i]
		inside = inside && c.lo[i] < c.hi[i]
	}
	return inside
}

// run is the element of the plane where the present run starts, and its length.
func (s *slide) run(c *cursor) (at, n int) {
	for i := range s.axes {
		at = at*s.in[i] + c.origin[i] + c.k[i]*s.dilations[i]
	}
	last := s.axes - 1
	return at, c.hi[last] - c.lo[last]
}

// next moves on to the next run; false after the last.
func (s *slide) next(c *cursor) bool {
	for i := s.axes - 2; i >= 0; i-- {
		if c.k[i]++; c.k[i] < c.hi[i] {
			return true
		}
		c.k[i] = c.lo[i]
	}
	return false
}

// windows makes a kernel that visits every window of every plane.
func (b *builder) windows(s *slide, visit func(c *cursor, plane, r int)) runtime.Kernel {
	grain := max(1, rangeElems/4/max(1, s.positions))
	return b.ranges(s.planes, grain, func(w *worker, lo, hi int) error {
		for plane := lo; plane < hi; plane++ {
			for r := range s.positions {
				visit(&w.cursor, plane, r)
			}
		}
		return nil
	})
}

// spread makes a kernel that sums into the elements of dx what windows, visited in row-major order, give to them. Sums are float64 in the
// worker, so a plane is cut into bands that fit there: visit adds to sums what falls on elements [lo, lo+len(sums)) of the plane.
func (b *builder) spread(s *slide, dx floats, visit func(c *cursor, sums []float64, plane, lo, r int)) runtime.Kernel {
	bands := (s.inputs + panelElems - 1) / panelElems
	perRow := s.positions / max(1, s.out[0])
	grain := max(1, rangeElems/4/max(1, s.inputs))
	return b.ranges(s.planes*bands, grain, func(w *worker, first, end int) error {
		for i := first; i < end; i++ {
			plane, lo := i/bands, i%bands*panelElems
			hi := min(lo+panelElems, s.inputs)
			sums := w.tile[:hi-lo]
			clear(sums)
			from, to := s.rows(lo/s.rowSize, (hi-1)/s.rowSize)
			for r := from * perRow; r < to*perRow; r++ {
				visit(&w.cursor, sums, plane, lo, r)
			}
			dx.store(plane*s.inputs+lo, sums)
		}
		return nil
	})
}

// rows is the range of indices along y's first spatial axis whose windows may reach rows [first, last] of x.
func (s *slide) rows(first, last int) (from, to int) {
	reach := (s.kernel[0] - 1) * s.dilations[0]
	from = max(0, first+s.before[0]-reach+s.strides[0]-1) / s.strides[0]
	to = (last+s.before[0])/s.strides[0] + 1
	return min(from, s.out[0]), min(to, s.out[0])
}
