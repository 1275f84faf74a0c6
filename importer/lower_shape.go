package importer

import (
	"math"
	"slices"

	"aitk/importer/onnxpb"
	"aitk/ir"
	"aitk/ir/op"
)

// reshape gives x another shape of as many elements; nothing happens where it has it already.
func (c *call) reshape(x *operand, shape ...int64) *operand {
	if x.typ.Shape.Equal(shape) {
		return x
	}
	return c.emit(op.Reshape{Shape: slices.Clone(shape)}, x)
}

func (c *call) transpose(x *operand, perm ...int64) *operand {
	same := len(perm) == len(x.typ.Shape)
	for i, a := range perm {
		same = same && a == int64(i)
	}
	if same {
		return x
	}
	return c.emit(op.Transpose{Perm: perm}, x)
}

func (c *call) expand(x *operand, shape ...int64) *operand {
	if x.typ.Shape.Equal(shape) {
		return x
	}
	return c.emit(op.Expand{Shape: slices.Clone(shape)}, x)
}

func lowerConstantOfShape(c *call) []*operand {
	c.args(1, 1)
	shape := ir.Shape(slices.Clone(c.constInts(0, "shape")))
	if err := shape.Check(); err != nil {
		c.invalid("%w", err)
	}
	d, value := ir.F32, 0.0
	elem := int32(0)
	if a := c.attr("value", onnxpb.AttributeProto_TENSOR); a != nil && a.T != nil {
		t, err := c.src.file.tensor(a.T)
		if err != nil {
			c.refuse(ir.KindOf(err), "value: %w", err)
		}
		if t.typ.Elems() != 1 {
			c.invalid("value has %d elements, want 1", t.typ.Elems())
		}
		x := c.lowering.constant(t)
		if x.bad || x.known == nil {
			c.invalid("value has no data")
		}
		d, elem = t.typ.DType, t.elem
		value = first(x.known.F) + float64(first(x.known.I)) // one of the two is empty
	}
	y := c.fill(ir.Type{DType: d, Shape: shape}, value)
	y.elem = elem
	return one(y)
}

func lowerShape(c *call) []*operand {
	c.args(1, 1)
	dims := c.arg(0).typ.Shape
	clamp := func(a int64) int64 {
		if a < 0 {
			a += int64(len(dims))
		}
		return min(max(a, 0), int64(len(dims)))
	}
	start, end := clamp(c.int("start", 0)), clamp(c.int("end", math.MaxInt64))
	return one(ints(slices.Clone(dims[start:max(start, end)])))
}

func lowerSize(c *call) []*operand {
	c.args(1, 1)
	return one(ints([]int64{c.arg(0).typ.Elems()}, []int64{}...))
}

func lowerRange(c *call) []*operand {
	c.args(3, 3)
	c.ignore("stash_type")
	start, limit, delta := c.constFloat(0, "start"), c.constFloat(1, "limit"), c.constFloat(2, "delta")
	d := c.arg(0).typ.DType
	n := math.Ceil((limit - start) / delta)
	switch {
	case delta == 0 || math.IsNaN(n):
		c.invalid("range from %v to %v by %v", start, limit, delta)
	case n > 1<<40:
		c.invalid("range of %v elements", n)
	}
	o := op.Iota{DType: d, Shape: ir.Shape{max(int64(n), 0)}, Start: start, Step: delta}
	if o.Shape[0] == 0 {
		return one(filled(ir.T(d, 0), 0))
	}
	return one(c.emit(o))
}

// lowerReshape resolves 0 (as in the operand) and -1 (what is left).
func lowerReshape(c *call) []*operand {
	c.args(2, 2)
	x := c.arg(0)
	allowZero := c.flag("allowzero", false)
	shape := slices.Clone(c.constInts(1, "shape"))
	free, rest := -1, int64(1)
	for a, d := range shape {
		switch {
		case d == 0 && !allowZero:
			if a >= len(x.typ.Shape) {
				c.invalid("shape %v copies axis %d of %v", shape, a, x.typ)
			}
			shape[a] = x.typ.Shape[a]
		case d == -1 && free < 0:
			free = a
			continue
		case d < 0:
			c.invalid("shape %v", shape)
		}
		if shape[a] != 0 && rest > math.MaxInt64/shape[a] {
			c.invalid("shape %v is too large", shape)
		}
		rest *= shape[a]
	}
	if free >= 0 {
		n := x.typ.Elems()
		if rest == 0 || n%rest != 0 {
			c.invalid("%v cannot become %v", x.typ, shape)
		}
		shape[free] = n / rest
	}
	return one(c.reshape(x, shape...))
}

func lowerFlatten(c *call) []*operand {
	c.args(1, 1)
	s := c.arg(0).typ.Shape
	a := c.int("axis", 1)
	if a != int64(len(s)) {
		a = c.axis(a, len(s))
	}
	return one(c.reshape(c.arg(0), s[:a].Elems(), s[a:].Elems()))
}

// axesArg reads axes that became an operand with opset since; ok is false where they are not given.
func (c *call) axesArg(since int64) (axes []int64, ok bool) {
	if c.ver < since {
		c.args(1, 1)
		return c.ints("axes")
	}
	c.args(1, 2)
	if !c.has(1) {
		return nil, false
	}
	return c.constInts(1, "axes"), true
}

func lowerSqueeze(c *call) []*operand {
	list, given := c.axesArg(13)
	x := c.arg(0)
	axes := c.axes(list, len(x.typ.Shape))
	var shape []int64
	for a, d := range x.typ.Shape {
		drop := d == 1
		if given {
			drop = slices.Contains(axes, int64(a))
			if drop && d != 1 {
				c.invalid("cannot squeeze axis %d of %v", a, x.typ)
			}
		}
		if !drop {
			shape = append(shape, d)
		}
	}
	return one(c.reshape(x, shape...))
}

func lowerUnsqueeze(c *call) []*operand {
	list, given := c.axesArg(13)
	if !given {
		c.invalid("axes are missing")
	}
	x := c.arg(0)
	rank := len(x.typ.Shape) + len(list)
	axes := c.axes(list, rank)
	shape := make([]int64, 0, rank)
	rest := x.typ.Shape
	for a := range rank {
		if slices.Contains(axes, int64(a)) {
			shape = append(shape, 1)
		} else {
			shape, rest = append(shape, rest[0]), rest[1:]
		}
	}
	return one(c.reshape(x, shape...))
}

func lowerTranspose(c *call) []*operand {
	c.args(1, 1)
	x := c.arg(0)
	perm, ok := c.ints("perm")
	if !ok {
		for a := range x.typ.Shape {
			perm = append([]int64{int64(a)}, perm...)
		}
	}
	perm = slices.Clone(perm)
	for i, a := range perm {
		perm[i] = c.axis(a, len(x.typ.Shape))
	}
	return one(c.transpose(x, perm...))
}

// lowerExpand broadcasts both ways: the result may be larger than shape.
func lowerExpand(c *call) []*operand {
	c.args(2, 2)
	x := c.arg(0)
	want := ir.Shape(c.constInts(1, "shape"))
	if err := want.Check(); err != nil {
		c.invalid("%w", err)
	}
	shape, err := ir.Broadcast(x.typ.Shape, want)
	if err != nil {
		c.invalid("%w", err)
	}
	return one(c.expand(x, shape...))
}

// lowerTile puts an axis of extent 1 before each axis and stretches it.
func lowerTile(c *call) []*operand {
	c.args(2, 2)
	x := c.arg(0)
	repeats := c.constInts(1, "repeats")
	if len(repeats) != len(x.typ.Shape) {
		c.invalid("%d repeats for rank %d", len(repeats), len(x.typ.Shape))
	}
	var apart, wide, out ir.Shape
	for a, d := range x.typ.Shape {
		if repeats[a] < 0 || d != 0 && repeats[a] > math.MaxInt64/max(d, 1) {
			c.invalid("%d repeats of axis %d of %v", repeats[a], a, x.typ)
		}
		apart = append(apart, 1, d)
		wide = append(wide, repeats[a], d)
		out = append(out, repeats[a]*d)
	}
	if err := out.Check(); err != nil {
		c.invalid("%w", err)
	}
	return one(c.reshape(c.expand(c.reshape(x, apart...), wide...), out...))
}

func lowerConcat(c *call) []*operand {
	c.args(1, math.MaxInt)
	return one(c.concat(c.in, c.int("axis", 1)))
}

func (c *call) concat(in []*operand, axis int64) *operand {
	if len(in) == 0 || in[0] == nil || in[0].isSeq {
		c.invalid("nothing to concatenate")
	}
	axis = c.axis(axis, len(in[0].typ.Shape))
	if len(in) == 1 {
		return in[0]
	}
	return c.emit(op.Concat{Axis: axis}, in...)
}

func lowerTrilu(c *call) []*operand {
	c.args(1, 2)
	o := op.Trilu{Upper: c.flag("upper", true)}
	if c.has(1) {
		o.K = c.constInt(1, "k")
	}
	return one(c.emit(o, c.arg(0)))
}

// lowerDepthToSpace splits the channels into blocks b×b and weaves them into the image; DCR has the block axes before the channels.
func lowerDepthToSpace(c *call) []*operand {
	c.args(1, 1)
	x, b := c.arg(0), c.int("blocksize", 0)
	mode := c.string("mode", "DCR")
	s := x.typ.Shape
	if len(s) != 4 || b < 1 || b > 1<<20 || s[1]%(b*b) != 0 {
		c.invalid("blocks of %d for %v", b, x.typ)
	}
	ch := s[1] / (b * b)
	if mode == "CRD" {
		x = c.transpose(c.reshape(x, s[0], ch, b, b, s[2], s[3]), 0, 1, 4, 2, 5, 3)
	} else {
		x = c.transpose(c.reshape(x, s[0], b, b, ch, s[2], s[3]), 0, 3, 4, 1, 5, 2)
	}
	return one(c.reshape(x, s[0], ch, s[2]*b, s[3]*b))
}

func lowerSpaceToDepth(c *call) []*operand {
	c.args(1, 1)
	x, b := c.arg(0), c.int("blocksize", 0)
	mode := c.string("mode", "DCR")
	s := x.typ.Shape
	if len(s) != 4 || b < 1 || b > 1<<20 || s[2]%b != 0 || s[3]%b != 0 {
		c.invalid("blocks of %d for %v", b, x.typ)
	}
	x = c.reshape(x, s[0], s[1], s[2]/b, b, s[3]/b, b)
	if mode == "CRD" {
		x = c.transpose(x, 0, 1, 3, 5, 2, 4)
	} else {
		x = c.transpose(x, 0, 3, 5, 1, 2, 4)
	}
	return one(c.reshape(x, s[0], s[1]*b*b, s[2]/b, s[3]/b))
}
