package importer

import (
	"math"
	"slices"

	"aitk/ir"
	"aitk/ir/op"
)

// slice takes start:end:step of one axis, all normalised as op.Slice wants them.
func (c *call) slice(x *operand, axis, start, end, step int64) *operand {
	o := wholeSlice(x.typ.Shape)
	o.Starts[axis], o.Ends[axis], o.Steps[axis] = start, end, step
	return c.sliced(o, x)
}

func (c *call) sliced(o op.Slice, x *operand) *operand {
	whole := wholeSlice(x.typ.Shape)
	if slices.Equal(o.Starts, whole.Starts) && slices.Equal(o.Ends, whole.Ends) && slices.Equal(o.Steps, whole.Steps) {
		return x
	}
	return c.emit(o, x)
}

// wholeSlice takes everything.
func wholeSlice(s ir.Shape) op.Slice {
	o := op.Slice{Starts: make([]int64, len(s)), Ends: slices.Clone(s), Steps: make([]int64, len(s))}
	for a := range o.Steps {
		o.Steps[a] = 1
	}
	return o
}

// lowerSlice has its ranges in attributes (opset < 10) or in operands. Indices count from the end where negative and are cut to what
// the axis has, so that "everything" may be written as the largest number.
func lowerSlice(c *call) []*operand {
	var starts, ends, axes, steps []int64
	if c.ver < 10 && c.n.GetOpType() == "Slice" { // DynamicSlice, an experiment of opsets before 10, is what Slice became there
		c.args(1, 1)
		starts, _ = c.ints("starts")
		ends, _ = c.ints("ends")
		axes, _ = c.ints("axes")
	} else {
		c.args(3, 5)
		starts, ends = c.constInts(1, "starts"), c.constInts(2, "ends")
		if c.has(3) {
			axes = c.constInts(3, "axes")
		}
		if c.has(4) {
			steps = c.constInts(4, "steps")
		}
	}
	x := c.arg(0)
	rank := len(x.typ.Shape)
	if axes == nil {
		for a := range starts {
			axes = append(axes, int64(a))
		}
	}
	if len(starts) != len(ends) || len(starts) != len(axes) || steps != nil && len(steps) != len(starts) {
		c.invalid("%d starts, %d ends, %d axes and %d steps", len(starts), len(ends), len(axes), len(steps))
	}
	c.axes(axes, rank)
	o := wholeSlice(x.typ.Shape)
	for i, a := range axes {
		a = c.axis(a, rank)
		step := int64(1)
		if steps != nil {
			step = steps[i]
		}
		if step == 0 || step == math.MinInt64 {
			c.invalid("step %d along axis %d", step, a)
		}
		o.Starts[a], o.Ends[a], o.Steps[a] = cutRange(starts[i], ends[i], step, x.typ.Shape[a])
	}
	return one(c.sliced(o, x))
}

// cutRange normalises start:end:step for an axis of extent dim. An empty range becomes 0:0:1.
func cutRange(start, end, step, dim int64) (int64, int64, int64) {
	least, most := int64(0), dim // of an end
	if step < 0 {
		least, most = -1, dim-1
	}
	cut := func(i, lo int64) int64 {
		if i < 0 {
			i += dim
		}
		return min(max(i, lo), most)
	}
	start, end = cut(start, 0), cut(end, least)
	if dim == 0 || step > 0 && start >= end || step < 0 && start <= end {
		return 0, 0, 1
	}
	return start, end, step
}

// lowerSplit covers four forms of the parts: an attribute, an operand (13), num_outputs with a short last part (18), and equal parts
// by the number of outputs.
func lowerSplit(c *call) []*operand {
	x := c.arg(0)
	c.args(1, 2)
	axis := c.axis(c.int("axis", 0), len(x.typ.Shape))
	dim := x.typ.Shape[axis]
	var parts []int64
	if c.ver < 13 {
		parts, _ = c.ints("split")
	} else if c.has(1) {
		parts = c.constInts(1, "split")
	}
	num := int64(len(c.n.Output))
	if c.ver >= 18 {
		num = c.int("num_outputs", num)
	}
	if parts == nil {
		if num < 1 || num > int64(len(c.n.Output)) || c.ver < 18 && dim%num != 0 {
			c.invalid("%d parts of an axis of extent %d", num, dim)
		}
		size := (dim + num - 1) / num
		for at := int64(0); int64(len(parts)) < num; at += size {
			parts = append(parts, max(0, min(size, dim-at)))
		}
	}
	return c.split(x, axis, parts)
}

// split cuts an axis into parts that sum to its extent.
func (c *call) split(x *operand, axis int64, parts []int64) []*operand {
	at, dim := int64(0), x.typ.Shape[axis]
	var out []*operand
	for _, n := range parts {
		if n < 0 || n > dim-at {
			c.invalid("parts %v of an axis of extent %d", parts, dim)
		}
		out = append(out, c.slice(x, axis, at, at+n, 1))
		at += n
	}
	if at != dim {
		c.invalid("parts %v of an axis of extent %d", parts, dim)
	}
	return out
}

// lowerPad has the widths in an attribute (opset < 11) or in operands. Negative widths crop. Modes other than constant repeat
// elements of x, which a Gather along each axis says, with the gradient that follows.
func lowerPad(c *call) []*operand {
	mode := c.string("mode", "constant")
	var pads []int64
	value := 0.0
	var fill *operand // a value that only run time knows
	x := c.arg(0)
	rank := len(x.typ.Shape)
	if c.ver < 11 {
		c.args(1, 1)
		pads, _ = c.ints("pads")
		value = c.float("value", 0)
	} else {
		c.args(2, 4)
		pads = c.constInts(1, "pads")
		if c.has(2) && c.arg(2).typ.Elems() > 0 {
			if c.in[2].known == nil && mode == "constant" {
				fill = c.reshape(c.arg(2), []int64{}...)
			} else {
				value = c.constFloat(2, "constant_value")
			}
		}
	}
	axes := make([]int64, 0, rank)
	if c.has(3) {
		for _, a := range c.constInts(3, "axes") {
			axes = append(axes, c.axis(a, rank))
		}
		c.axes(axes, rank)
	} else {
		for a := range rank {
			axes = append(axes, int64(a))
		}
	}
	if len(pads) != 2*len(axes) {
		c.invalid("%d pads for %d axes", len(pads), len(axes))
	}
	before, after := make([]int64, rank), make([]int64, rank)
	for i, a := range axes {
		before[a], after[a] = pads[i], pads[i+len(axes)]
	}
	if mode == "constant" && fill != nil {
		y := c.padConstant(x, before, after, 0)
		own := c.padConstant(c.fill(ir.Type{DType: ir.Bool, Shape: x.typ.Shape}, 1), before, after, 0)
		return one(c.emit(op.Where{}, own, y, c.cast(fill, x.typ.DType)))
	}
	if mode == "constant" {
		return one(c.padConstant(x, before, after, value))
	}
	for a := range before {
		x = c.padAxis(x, int64(a), before[a], after[a], mode)
	}
	return one(x)
}

func (c *call) padConstant(x *operand, before, after []int64, value float64) *operand {
	o := op.Pad{Before: make([]int64, len(before)), After: make([]int64, len(before)), Value: value}
	crop := wholeSlice(x.typ.Shape)
	pads := false
	for a, dim := range x.typ.Shape {
		crop.Starts[a], crop.Ends[a] = max(0, -before[a]), dim-max(0, -after[a])
		if crop.Ends[a] < crop.Starts[a] || before[a] < -dim || after[a] < -dim {
			c.invalid("pads %d and %d crop more than axis %d of %v has", before[a], after[a], a, x.typ)
		}
		o.Before[a], o.After[a] = max(0, before[a]), max(0, after[a])
		pads = pads || before[a] > 0 || after[a] > 0
	}
	x = c.sliced(crop, x)
	if !pads {
		return x
	}
	return c.emit(o, x)
}

// padAxis extends one axis by elements of x.
func (c *call) padAxis(x *operand, axis, before, after int64, mode string) *operand {
	if before == 0 && after == 0 {
		return x
	}
	dim := x.typ.Shape[axis]
	n := dim + before + after
	if dim == 0 || n < 0 || before < -dim || max(before, after) > math.MaxInt32 {
		c.invalid("pads %d and %d for axis %d of %v", before, after, axis, x.typ)
	}
	if n > indexElems {
		c.unsupported("mode=%q for an axis that becomes %d long", mode, n)
	}
	index := make([]int64, n)
	for i := range index {
		k := int64(i) - before
		switch mode {
		case "edge":
			k = min(max(k, 0), dim-1)
		case "wrap":
			k = (k%dim + dim) % dim
		case "reflect":
			if period := 2 * (dim - 1); period > 0 {
				k = (k%period + period) % period
				k = min(k, period-k)
			} else {
				k = 0
			}
		default:
			c.unsupported("mode=%q", mode)
		}
		index[i] = k
	}
	return c.emit(op.Gather{Axis: axis}, x, ints(index))
}
