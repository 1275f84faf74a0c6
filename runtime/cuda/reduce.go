//go:build cuda && linux

package cuda

import (
	"slices"

	"aitk/ir"
	"aitk/ir/op"
	"aitk/runtime"
)

// reduceAxes is how many axes that stay or go a kernel walks over.
const reduceAxes = 4

// reduceKernel serves the reductions.
func reduceKernel(b *builder) (*kernel, error) {
	f, mean := 0, false
	var axes []int64
	switch o := b.x.Op.(type) {
	case op.ReduceSum:
		axes = o.Axes
	case op.ReduceMean:
		axes, mean = o.Axes, true
	case op.ReduceProd:
		axes, f = o.Axes, 1
	case op.ReduceMax:
		axes, f = o.Axes, 2
	case op.ReduceMin:
		axes, f = o.Axes, 3
	default:
		return nil, nil
	}
	t := b.inType(0)
	module, tail, ok := variant("reduce", t.DType)
	if !ok {
		return nil, b.noKernel(t)
	}
	kept, gone := splitAxes(t.Shape, axes)
	if len(kept) > reduceAxes || len(gone) > reduceAxes {
		return nil, b.noKernel(t)
	}
	outputs, count := b.outType(0).Elems(), int64(1)
	for _, a := range axes {
		count *= t.Shape[a]
	}
	name, block, splits := reduceGeometry(t.Shape, axes, outputs, count)
	chunk := (count + splits - 1) / splits
	partials := runtime.Slice{}
	if splits > 1 {
		var err error
		if partials, err = b.partials(0, 8*outputs*splits); err != nil {
			return nil, err
		}
	}
	args := []any{b.out[0], b.in[0], partials, outputs, count, splits, chunk, f, count, mean}
	args = append(append(append(args, axisArgs(kept)...), axisArgs(gone)...), tail...)
	grid := [3]int{int(min(outputs, 1<<20)), int(splits), 1}
	if name == "reduce_thread" {
		grid[0] = int(min((outputs+int64(block)-1)/int64(block), 1<<20))
	}
	if err := b.launch(module, name, grid, block, 0, args...); err != nil || splits == 1 {
		return b.k, err
	}
	return b.k, b.launch(module, "reduce_finish", b.dev.blocksFor(outputs), threads, 0, append([]any{b.out[0], partials, outputs, splits, f, count, mean}, tail...)...)
}

// axis is a merged axis of the operand: its extent and what a step along it means.
type axis struct{ dim, stride int64 }

// splitAxes merges the axes that stay and those that go, each among themselves.
func splitAxes(s ir.Shape, axes []int64) (kept, gone []axis) {
	strides := rowMajor(s)
	last := 0 // 1: the axis before stays, 2: it goes
	for a, d := range s {
		if d == 1 {
			continue
		}
		list, kind := &kept, 1
		if slices.Contains(axes, int64(a)) {
			list, kind = &gone, 2
		}
		if n := len(*list); kind == last {
			(*list)[n-1] = axis{(*list)[n-1].dim * d, strides[a]}
		} else {
			*list = append(*list, axis{d, strides[a]})
		}
		last = kind
	}
	return kept, gone
}

// axisArgs are four extents and four strides, outermost first.
func axisArgs(list []axis) []any {
	dims, strides := [reduceAxes]uint32{1, 1, 1, 1}, [reduceAxes]int64{}
	for i, a := range list {
		dims[reduceAxes-len(list)+i], strides[reduceAxes-len(list)+i] = uint32(a.dim), a.stride
	}
	var out []any
	for _, d := range dims {
		out = append(out, d)
	}
	for _, s := range strides {
		out = append(out, s)
	}
	return out
}

// reduceGeometry chooses a thread or a block for each element of the result, and the block's extent. Like the number of stretches it looks at shapes
// alone: the order of summation must not depend on the device.
func reduceGeometry(x ir.Shape, axes []int64, outputs, count int64) (name string, block int, splits int64) {
	splits, byThread := op.ReduceStretches(x, axes)
	switch {
	case outputs == 0 || count == 0:
		return "reduce_thread", threads, splits
	case byThread:
		return "reduce_thread", min(threads, max(32, int(outputs+31)/32*32)), splits
	}
	block = 32
	for block < threads && int64(block)*4 < count {
		block *= 2
	}
	return "reduce_block", block, splits
}
