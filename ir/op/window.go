package op

import (
	"fmt"

	"aitk/ir"
)

// maxWindow bounds every kernel extent, stride, dilation and pad, so that products of two of them fit int64.
const maxWindow = 1<<31 - 1

// window is how a kernel slides over the spatial axes of convolution and pooling. All lists but pads have one entry an axis; pads
// has all begins, then all ends.
type window struct{ kernel, strides, dilations, pads []int64 }

// out gives the output extents for the spatial extents in, or says what is wrong with the attributes.
func (w window) out(in []int64) ([]int64, error) {
	n := len(in)
	for _, l := range []struct {
		name string
		list []int64
		want int
		min  int64
	}{{"kernel", w.kernel, n, 1}, {"strides", w.strides, n, 1}, {"dilations", w.dilations, n, 1}, {"pads", w.pads, 2 * n, 0}} {
		if len(l.list) != l.want {
			return nil, fmt.Errorf("%s must have %d entries for %d spatial axes, got %v", l.name, l.want, n, l.list)
		}
		for _, x := range l.list {
			if x < l.min || x > maxWindow {
				return nil, fmt.Errorf("%s must lie between %d and %d, got %v", l.name, l.min, int64(maxWindow), l.list)
			}
		}
	}
	out := make([]int64, n)
	for i := range n {
		padded := in[i] + w.pads[i] + w.pads[n+i]
		reach := w.dilations[i]*(w.kernel[i]-1) + 1
		if reach > padded {
			return nil, fmt.Errorf("kernel reaches over %d cells along spatial axis %d, the padded input has %d", reach, i, padded)
		}
		out[i] = (padded-reach)/w.strides[i] + 1
	}
	return out, nil
}

// poolShape is the output shape of a pool over x [N, C, spatial...].
func (w window) poolShape(x ir.Shape) (ir.Shape, error) {
	if len(x) < 3 {
		return nil, fmt.Errorf("input must have rank 3 or more ([N,C,spatial...]), got shape %v", x)
	}
	spatial, err := w.out(x[2:])
	if err != nil {
		return nil, err
	}
	out := append(x[:2].Clone(), spatial...)
	return out, out.Check()
}

// tap is one cell of the kernel over one cell of the input, both as row-major positions among the spatial axes.
type tap struct{ kernel, in int64 }

// taps gives, for each output position in row-major order, the taps that fall inside the input, in row-major order of the kernel.
func (w window) taps(in, out []int64) [][]tap {
	all := make([][]tap, ir.Shape(out).Elems())
	cells := ir.Shape(w.kernel).Elems()
	at, k := make([]int64, len(out)), make([]int64, len(out))
	for p := range all {
		unravel(at, int64(p), out)
		for c := range cells {
			unravel(k, c, w.kernel)
			pos, inside := int64(0), true
			for i := range at {
				x := at[i]*w.strides[i] + k[i]*w.dilations[i] - w.pads[i]
				inside = inside && x >= 0 && x < in[i]
				pos = pos*in[i] + x
			}
			if inside {
				all[p] = append(all[p], tap{c, pos})
			}
		}
	}
	return all
}

// unravel writes the coordinates of row-major position p in extents.
func unravel(at []int64, p int64, extents []int64) {
	for i := len(extents) - 1; i >= 0; i-- {
		at[i] = p % extents[i]
		p /= extents[i]
	}
}
