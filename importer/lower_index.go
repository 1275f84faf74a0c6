package importer

import (
	"math"

	"aitk/ir"
	"aitk/ir/op"
)

// index makes an operand an index operand: op wants i64 or i32.
func (c *call) index(k int) *operand {
	x := c.arg(k)
	if !x.typ.DType.IsInt() {
		c.invalid("indices (operand %d) are %v, want integers", k, x.typ)
	}
	if x.typ.DType != ir.I64 && x.typ.DType != ir.I32 {
		x = c.cast(x, ir.I64)
	}
	return x
}

// inRange refuses known indices that are out of range: at run time they would be an error of the data.
func (c *call) inRange(index *operand, extent int64) {
	if index.known == nil {
		return
	}
	for _, i := range index.known.I {
		if i < -extent || i >= extent {
			c.invalid("index %d is outside extent %d", i, extent)
		}
	}
}

func lowerGather(c *call) []*operand {
	c.args(2, 2)
	x, i := c.arg(0), c.index(1)
	axis := c.axis(c.int("axis", 0), len(x.typ.Shape))
	c.inRange(i, x.typ.Shape[axis])
	// The entry of a known scalar index is a slice, which is cheaper and has a cheaper gradient.
	if i.known != nil && len(i.typ.Shape) == 0 && x.known == nil {
		at := i.known.I[0]
		if at < 0 {
			at += x.typ.Shape[axis]
		}
		s := x.typ.Shape
		return one(c.reshape(c.slice(x, axis, at, at+1, 1), append(s[:axis:axis], s[axis+1:]...)...))
	}
	return one(c.emit(op.Gather{Axis: axis}, x, i))
}

func lowerGatherElements(c *call) []*operand {
	c.args(2, 2)
	x, i := c.arg(0), c.index(1)
	axis := c.axis(c.int("axis", 0), len(x.typ.Shape))
	c.inRange(i, x.typ.Shape[axis])
	return one(c.emit(op.GatherElements{Axis: axis}, x, i))
}

func lowerGatherND(c *call) []*operand {
	c.args(2, 2)
	return one(c.emit(op.GatherND{BatchDims: c.int("batch_dims", 0)}, c.arg(0), c.index(1)))
}

func (c *call) reduction() string {
	switch r := c.string("reduction", "none"); r {
	case "none":
		return ""
	case "add", "mul", "min", "max":
		return r
	default:
		c.invalid("reduction=%q", r)
	}
	return ""
}

func lowerScatterElements(c *call) []*operand {
	c.args(3, 3)
	x, i := c.arg(0), c.index(1)
	axis := c.axis(c.int("axis", 0), len(x.typ.Shape))
	c.inRange(i, x.typ.Shape[axis])
	return one(c.emit(op.ScatterElements{Axis: axis, Reduce: c.reduction()}, x, i, c.arg(2)))
}

func lowerScatterND(c *call) []*operand {
	c.args(3, 3)
	return one(c.emit(op.ScatterND{Reduce: c.reduction()}, c.arg(0), c.index(1), c.arg(2)))
}

// lowerOneHot compares the indices with 0..depth-1 along a new axis. Negative indices count from depth; others out of range match nothing.
func lowerOneHot(c *call) []*operand {
	c.args(3, 3)
	i, values := c.cast(c.arg(0), ir.I64), c.arg(2)
	depth := int64(c.constFloat(1, "depth"))
	rank := len(i.typ.Shape)
	axis := c.axis(c.int("axis", -1), rank+1)
	if depth < 0 || len(values.typ.Shape) != 1 || values.typ.Shape[0] != 2 {
		c.invalid("depth %d and values %v", depth, values.typ)
	}
	i = c.emit(op.Where{}, c.emit(op.Less{}, i, scalar(ir.I64, 0)), c.emit(op.Add{}, i, scalar(ir.I64, float64(depth))), i)
	column := append(ir.Shape{}, i.typ.Shape[:axis]...)
	column = append(append(column, 1), i.typ.Shape[axis:]...)
	line := make(ir.Shape, rank+1)
	for a := range line {
		line[a] = 1
	}
	line[axis] = depth
	hit := c.emit(op.Equal{}, c.reshape(i, column...), c.emit(op.Iota{DType: ir.I64, Shape: line, Axis: axis, Step: 1}))
	off := c.reshape(c.slice(values, 0, 0, 1, 1), []int64{}...)
	on := c.reshape(c.slice(values, 0, 1, 2, 1), []int64{}...)
	return one(c.emit(op.Where{}, hit, on, off))
}

func argExtreme(least bool) lowerFunc {
	return func(c *call) []*operand {
		c.args(1, 1)
		x := c.arg(0)
		return one(c.emit(op.ArgMax{
			Axis:     c.axis(c.int("axis", 0), len(x.typ.Shape)),
			KeepDims: c.flag("keepdims", true),
			Last:     c.flag("select_last_index", false),
			Min:      least,
		}, x))
	}
}

// lowerUpsample is the old form of Resize: nearest means the cell at floor(i/scale).
func lowerUpsample(c *call) []*operand {
	if mode := c.string("mode", "nearest"); mode != "nearest" {
		c.unsupported("mode=%q", mode)
	}
	var scales []float64
	if c.ver < 9 {
		c.args(1, 1)
		c.read["scales"] = true
		for _, a := range c.n.Attribute {
			if a.GetName() == "scales" {
				for _, f := range a.Floats {
					scales = append(scales, decimal(f))
				}
			}
		}
	} else {
		c.args(2, 2)
		scales = c.constant(1, "scales").F
	}
	return one(c.resize(c.arg(0), scales, nil, "asymmetric", "floor"))
}

// lowerResize takes the nearest cell, of which a Gather along each axis says which one it is.
func lowerResize(c *call) []*operand {
	if mode := c.string("mode", "nearest"); mode != "nearest" {
		c.unsupported("mode=%q", mode)
	}
	c.ignore("cubic_coeff_a", "exclude_outside", "extrapolation_value", "antialias")
	x := c.arg(0)
	coord, round := "asymmetric", "floor"
	sizesAt, scalesAt := 3, 2
	if c.ver < 11 {
		c.args(2, 2)
		scalesAt = 1
	} else {
		c.args(1, 4)
		coord = c.string("coordinate_transformation_mode", "half_pixel")
		round = c.string("nearest_mode", "round_prefer_floor")
		if p := c.string("keep_aspect_ratio_policy", "stretch"); p != "stretch" {
			c.unsupported("keep_aspect_ratio_policy=%q", p)
		}
		if _, ok := c.ints("axes"); ok {
			c.unsupported("axes of Resize")
		}
	}
	if c.has(sizesAt) && c.arg(sizesAt).typ.Elems() > 0 {
		return one(c.resize(x, nil, c.constInts(sizesAt, "sizes"), coord, round))
	}
	return one(c.resize(x, c.constant(scalesAt, "scales").F, nil, coord, round))
}

func (c *call) resize(x *operand, scales []float64, sizes []int64, coord, round string) *operand {
	s := x.typ.Shape
	if len(scales) != len(s) && len(sizes) != len(s) {
		c.invalid("%d scales or %d sizes for rank %d", len(scales), len(sizes), len(s))
	}
	for a, dim := range s {
		var scale float64
		var size int64
		if sizes != nil {
			size = sizes[a]
			scale = float64(size) / float64(dim)
		} else {
			scale = scales[a]
			size = int64(math.Floor(float64(dim) * scale))
		}
		if !(scale > 0) || size < 0 || size > math.MaxInt32 {
			c.invalid("axis %d of extent %d resized to %d by %v", a, dim, size, scale)
		}
		if size == dim && scale == 1 {
			continue
		}
		if size > indexElems {
			c.unsupported("axis %d of extent %d resized to %d", a, dim, size)
		}
		index := make([]int64, size)
		for i := range index {
			at := c.nearest(c.source(float64(i), scale, float64(dim), float64(size), coord), round)
			index[i] = min(max(at, 0), dim-1)
		}
		x = c.emit(op.Gather{Axis: int64(a)}, x, ints(index))
	}
	return x
}

// source is the coordinate in the operand of cell i of the result.
func (c *call) source(i, scale, dim, size float64, coord string) float64 {
	switch coord {
	case "tf_half_pixel_for_nn":
		return (i + 0.5) / scale
	case "half_pixel":
		return (i+0.5)/scale - 0.5
	case "half_pixel_symmetric":
		adjust := size / (scale * dim)
		return dim/2*(1-adjust) + (i+0.5)/scale - 0.5
	case "pytorch_half_pixel":
		if size <= 1 {
			return 0
		}
		return (i+0.5)/scale - 0.5
	case "align_corners":
		if size <= 1 {
			return 0
		}
		return i * (dim - 1) / (size - 1)
	case "asymmetric":
		return i / scale
	}
	c.unsupported("coordinate_transformation_mode=%q", coord)
	return 0
}

func (c *call) nearest(x float64, round string) int64 {
	switch round {
	case "round_prefer_floor":
		return int64(math.Ceil(x - 0.5))
	case "round_prefer_ceil":
		return int64(math.Floor(x + 0.5))
	case "floor":
		return int64(math.Floor(x))
	case "ceil":
		return int64(math.Ceil(x))
	}
	c.unsupported("nearest_mode=%q", round)
	return 0
}
