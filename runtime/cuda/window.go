//go:build cuda && linux

package cuda

import "aitk/ir"

// maxSpatial is how many spatial axes the kernels of convolutions and pools have.
const maxSpatial = 3

// windowArgs describe how a kernel slides, as window.h takes it; ok is false where there are too many axes or an extent is too large. in and out are
// the spatial extents of x and of the result.
func windowArgs(in, out ir.Shape, kernel, strides, dilations, pads []int64) (args []any, ok bool) {
	n := len(in)
	if n > maxSpatial {
		return nil, false
	}
	ok = true
	for i, list := range [][]int64{in, out, kernel, strides, dilations, pads[:n]} {
		lead := int64(1)
		if i == 5 {
			lead = 0 // no padding along axes that are not there
		}
		for range maxSpatial - n {
			args = append(args, int32(lead))
		}
		for _, v := range list {
			ok = ok && v < 1<<30
			args = append(args, int32(v))
		}
	}
	for i := range in { // positions are computed in 32 bits
		ok = ok && out[i]*strides[i]+kernel[i]*dilations[i]+pads[i] < 1<<31
	}
	return args, ok
}
