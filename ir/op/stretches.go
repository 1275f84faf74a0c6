package op

import (
	"slices"

	"aitk/ir"
)

// A GPU takes what is reduced in stretches side by side and joins their results in order. Where the cuts are depends on shapes alone, since they decide
// the order of summation; and since the stretches' results are scratch, the planner must know how many there are.
const (
	// MaxStretches is the most stretches into which one number is taken apart, of at least StretchElems elements where these are plain.
	MaxStretches = 1024
	StretchElems = 4096

	maxPartials = 8192 // results of stretches of one reduction
)

// ReduceStretches is into how many stretches a GPU cuts the elements that make one element of a reduction of x over axes, and whether a thread takes
// a stretch, rather than a block of threads: neighbours in memory then belong to neighbouring results, or there is little to add.
func ReduceStretches(x ir.Shape, axes []int64) (stretches int64, byThread bool) {
	outputs, count, alongRows := int64(1), int64(1), false
	for a, d := range x {
		gone := slices.Contains(axes, int64(a))
		if gone {
			count *= d
		} else {
			outputs *= d
		}
		if d != 1 {
			alongRows = !gone
		}
	}
	if outputs == 0 || count == 0 {
		return 1, true
	}
	room := max(1, maxPartials/outputs)
	if alongRows || count <= 32 {
		return min(room, (count+63)/64), true
	}
	return min(room, (count+StretchElems-1)/StretchElems, max(1, MaxStretches/outputs)), false
}

// reduceWork is one operation an element; partial sums are wider than elements, eight bytes each.
func reduceWork(axes []int64, in, out []ir.Type) ir.Work {
	w := perElement(1, in, out)
	if n, _ := ReduceStretches(in[0].Shape, axes); n > 1 {
		w.PartialBytes = 8 * n * out[0].Elems()
	}
	return w
}

// stretchBytes is room for a number of eight bytes from each stretch of n elements, of which a stretch has at least least.
func stretchBytes(n, least int64) int64 { return 8 * min((n+least-1)/least, MaxStretches) }
