package importer

import (
	"cmp"
	"math"
	"slices"

	"aitk/ir"
	"aitk/ir/op"
)

// Ops whose result depends on content in its shape are evaluated while lowering, of content that is known: Compress needs its condition, NonZero and
// Unique their operand. The rest of this file moves elements to places that are known or computed.

// lowerCompress takes the entries of an axis, or of the flattened tensor, for which a known condition is true.
func lowerCompress(c *call) []*operand {
	c.args(2, 2)
	x := c.arg(0)
	cond := c.constant(1, "condition").I
	axis := int64(0)
	if given := c.int("axis", math.MinInt64); given != math.MinInt64 {
		axis = c.axis(given, len(x.typ.Shape))
	} else {
		x = c.reshape(x, x.typ.Elems())
	}
	index := []int64{}
	for i, v := range cond {
		if v != 0 {
			index = append(index, int64(i))
		}
	}
	if int64(len(cond)) > x.typ.Shape[axis] {
		c.invalid("%d conditions for axis %d of %v", len(cond), axis, x.typ)
	}
	return one(c.emit(op.Gather{Axis: axis}, x, ints(index)))
}

func lowerNonZero(c *call) []*operand {
	c.args(1, 1)
	t := c.constant(0, "the operand")
	s := t.Type.Shape
	var hits []int64
	for i := range t.Type.Elems() {
		if len(t.F) > 0 && t.F[i] != 0 || len(t.I) > 0 && t.I[i] != 0 {
			hits = append(hits, i)
		}
	}
	out := make([]int64, 0, len(s)*len(hits))
	for a := range s {
		inner := s[a+1:].Elems()
		for _, i := range hits {
			out = append(out, i/inner%s[a])
		}
	}
	return one(ints(out, int64(len(s)), int64(len(hits))))
}

// lowerUnique lists the different entries of a known tensor, or its different slices along an axis, sorted or in order of appearance.
func lowerUnique(c *call) []*operand {
	c.args(1, 1)
	t := c.constant(0, "the operand")
	sorted := c.flag("sorted", true)
	s := t.Type.Shape
	rows, flat := t.Type.Elems(), true
	axis := 0
	if given := c.int("axis", math.MinInt64); given != math.MinInt64 {
		axis, flat = int(c.axis(given, len(s))), false
		rows = s[axis]
	}
	if flat {
		s = ir.Shape{rows}
	}
	inner := s[axis+1:].Elems()
	at := func(row, k int64) int64 { return k/inner*rows*inner + row*inner + k%inner } // element k of a row
	width := s.Elems() / max(rows, 1)
	compare := func(a, b int64) int {
		for k := range width {
			i, j := at(a, k), at(b, k)
			r := 0
			if len(t.F) > 0 {
				r = cmp.Compare(t.F[i], t.F[j])
				if math.IsNaN(t.F[i]) || math.IsNaN(t.F[j]) { // NaN comes last, and is unlike itself
					if r = cmp.Compare(boolInt(math.IsNaN(t.F[i])), boolInt(math.IsNaN(t.F[j]))); r == 0 {
						r = cmp.Compare(a, b)
					}
				}
			} else {
				r = cmp.Compare(t.I[i], t.I[j])
			}
			if r != 0 {
				return r
			}
		}
		return 0
	}
	order := allAxes(int(rows))
	slices.SortStableFunc(order, compare)
	inverse, counts, firsts := make([]int64, rows), []int64{}, []int64{}
	for i, row := range order {
		if i == 0 || compare(order[i-1], row) != 0 {
			firsts, counts = append(firsts, row), append(counts, 0)
		}
		inverse[row] = int64(len(firsts) - 1)
		counts[len(counts)-1]++
	}
	if !sorted {
		byPlace := allAxes(len(firsts))
		slices.SortFunc(byPlace, func(a, b int64) int { return cmp.Compare(firsts[a], firsts[b]) })
		rank := make([]int64, len(firsts))
		f2, c2 := make([]int64, len(firsts)), make([]int64, len(firsts))
		for i, k := range byPlace {
			rank[k], f2[i], c2[i] = int64(i), firsts[k], counts[k]
		}
		for i := range inverse {
			inverse[i] = rank[inverse[i]]
		}
		firsts, counts = f2, c2
	}
	x := c.arg(0)
	if flat {
		x = c.reshape(x, rows)
	}
	return []*operand{c.emit(op.Gather{Axis: int64(axis)}, x, ints(firsts)), ints(firsts), ints(inverse), ints(counts)}
}

func boolInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

func lowerEyeLike(c *call) []*operand {
	c.args(1, 1)
	x := c.arg(0)
	s := x.typ.Shape
	if len(s) != 2 {
		c.invalid("%v is no matrix", x.typ)
	}
	d, err := wantDType(int32(c.int("dtype", int64(elemOf(x)))))
	if err != nil {
		c.unsupported("%w", err)
	}
	row := c.emit(op.Iota{DType: ir.I64, Shape: ir.Shape{s[0], 1}, Step: 1})
	col := c.emit(op.Iota{DType: ir.I64, Shape: ir.Shape{1, s[1]}, Axis: 1, Step: 1})
	return one(c.cast(c.emit(op.Equal{}, c.plus(row, float64(c.int("k", 0))), col), d))
}

// lowerReverseSequence turns round the first lens[b] entries of each member of the batch.
func lowerReverseSequence(c *call) []*operand {
	c.args(2, 2)
	x, lens := c.arg(0), c.cast(c.arg(1), ir.I64)
	batch, time := c.int("batch_axis", 1), c.int("time_axis", 0)
	s := x.typ.Shape
	if len(s) < 2 || batch+time != 1 || batch*time != 0 || !lens.typ.Shape.Equal(ir.Shape{s[batch]}) {
		c.invalid("batch_axis=%d, time_axis=%d, lengths %v for %v", batch, time, lens.typ, x.typ)
	}
	perm := allAxes(len(s))
	if batch == 1 {
		perm[0], perm[1] = 1, 0
	}
	y := c.transpose(x, perm...)
	b, n := y.typ.Shape[0], y.typ.Shape[1]
	at := c.emit(op.Iota{DType: ir.I64, Shape: ir.Shape{1, n}, Axis: 1, Step: 1})
	end := c.reshape(lens, b, 1)
	from := c.emit(op.Where{}, c.emit(op.Less{}, at, end), c.emit(op.Sub{}, c.plus(end, -1), at), at)
	y = c.pickRows(y, from)
	return one(c.transpose(y, perm...))
}

// pickRows takes, for each member of the first axis, the entries of the second that index [b,m] names.
func (c *call) pickRows(x, index *operand) *operand {
	s := x.typ.Shape
	base := c.emit(op.Iota{DType: ir.I64, Shape: ir.Shape{s[0], 1}, Step: float64(s[1])})
	index = c.emit(op.Add{}, index, base)
	flat := c.reshape(x, append([]int64{s[0] * s[1]}, s[2:]...)...)
	return c.emit(op.Gather{}, flat, index)
}

// lowerTensorScatter writes new entries into a cache, from a place of each member of the batch on; circular caches wrap round.
func lowerTensorScatter(c *call) []*operand {
	c.args(2, 3)
	cache, update := c.arg(0), c.arg(1)
	s := cache.typ.Shape
	axis := c.axis(c.int("axis", -2), len(s))
	mode := c.string("mode", "linear")
	if axis == 0 || mode != "linear" && mode != "circular" || len(update.typ.Shape) != len(s) {
		c.invalid("axis %d, mode=%q, cache %v, update %v", axis, mode, cache.typ, update.typ)
	}
	perm := allAxes(len(s)) // the axis moves to place 1, and back
	perm = append(append([]int64{0, axis}, perm[1:axis]...), perm[axis+1:]...)
	back := make([]int64, len(perm))
	for i, a := range perm {
		back[a] = int64(i)
	}
	x, u := c.transpose(cache, perm...), c.transpose(update, perm...)
	b, n, m := x.typ.Shape[0], x.typ.Shape[1], u.typ.Shape[1]
	at := c.emit(op.Iota{DType: ir.I64, Shape: ir.Shape{1, m}, Axis: 1, Step: 1})
	if c.has(2) {
		at = c.emit(op.Add{}, at, c.reshape(c.cast(c.arg(2), ir.I64), b, 1))
	}
	if mode == "circular" {
		at = c.emit(op.Mod{}, at, scalar(ir.I64, float64(n)))
	}
	at = c.emit(op.Add{}, at, c.emit(op.Iota{DType: ir.I64, Shape: ir.Shape{b, 1}, Step: float64(n)}))
	full := x.typ.Shape
	flat := c.reshape(x, append([]int64{b * n}, full[2:]...)...)
	y := c.emit(op.ScatterND{}, flat, c.reshape(at, b, m, 1), u)
	return one(c.transpose(c.reshape(y, full...), back...))
}

// lowerCenterCropPad cuts or pads both ends of axes evenly; the odd cell is the last.
func lowerCenterCropPad(c *call) []*operand {
	c.args(2, 2)
	x := c.arg(0)
	want := c.constInts(1, "shape")
	axes := allAxes(len(x.typ.Shape))
	if list, ok := c.ints("axes"); ok {
		axes = nil
		for _, a := range list {
			axes = append(axes, c.axis(a, len(x.typ.Shape)))
		}
	}
	if len(want) != len(axes) {
		c.invalid("%d extents for %d axes", len(want), len(axes))
	}
	before, after := make([]int64, len(x.typ.Shape)), make([]int64, len(x.typ.Shape))
	for i, a := range axes {
		grow := want[i] - x.typ.Shape[a]
		before[a] = grow / 2
		if grow < 0 {
			before[a] = -(-grow / 2)
		}
		after[a] = grow - before[a]
	}
	return one(c.padConstant(x, before, after, 0))
}

// lowerCol2Im adds the columns of blocks to the image that they were cut from.
func lowerCol2Im(c *call) []*operand {
	c.args(3, 3)
	x := c.arg(0)
	image, block := ir.Shape(c.constInts(1, "image_shape")), ir.Shape(c.constInts(2, "block_shape"))
	n := len(image)
	if len(x.typ.Shape) != 3 || len(block) != n || n == 0 || image.Check() != nil || block.Check() != nil || block.Elems() < 1 || x.typ.Shape[1]%block.Elems() != 0 {
		c.invalid("image %v and blocks %v for %v", image, block, x.typ)
	}
	shape := append(ir.Shape{x.typ.Shape[0], x.typ.Shape[1] / block.Elems()}, image...)
	c.read["kernel_shape"] = true
	w := c.window(shape, block)
	cells, out := c.windows(w, shape)
	if out.Elems() != x.typ.Shape[2] {
		c.invalid("%d columns, the image has %d blocks", x.typ.Shape[2], out.Elems())
	}
	k := block.Elems()
	index := make([]int64, len(cells)) // columns have the cell of the block first
	for i := range cells {
		at := int64(i)
		index[at%k*out.Elems()+at/k] = cells[i]
	}
	flat := c.reshape(x, shape[0], shape[1], k*out.Elems())
	y := c.emit(op.ScatterAdd{Axis: 2, Size: image.Elems() + 1}, ints(index), flat) // the cell behind the last collects the padding
	return one(c.reshape(c.slice(y, 2, 0, image.Elems(), 1), shape...))
}

// lowerCumProd multiplies along an axis, one entry after the other.
func lowerCumProd(c *call) []*operand {
	c.args(2, 2)
	x := c.arg(0)
	axis := c.axis(c.constInt(1, "axis"), len(x.typ.Shape))
	exclusive, reverse := c.flag("exclusive", false), c.flag("reverse", false)
	n := x.typ.Shape[axis]
	c.unrollLimit(n, "entries of an axis")
	parts := make([]*operand, n)
	s := x.typ.Shape.Clone()
	if n == 0 {
		return one(x)
	}
	s[axis] = 1
	product := c.fill(ir.Type{DType: x.typ.DType, Shape: s}, 1)
	for i := range n {
		if reverse {
			i = n - 1 - i
		}
		if exclusive {
			parts[i] = product
		}
		product = c.emit(op.Mul{}, product, c.slice(x, axis, i, i+1, 1))
		if !exclusive {
			parts[i] = product
		}
	}
	return one(c.concat(parts, axis))
}

// lowerDet expands the determinant of small matrices along their first row.
func lowerDet(c *call) []*operand {
	c.args(1, 1)
	x := c.arg(0)
	s := x.typ.Shape
	r := len(s)
	if r < 2 || s[r-1] != s[r-2] {
		c.invalid("%v is not square", x.typ)
	}
	n := s[r-1]
	if n > 6 {
		c.unsupported("determinants of %d x %d", n, n)
	}
	at := func(i, j int64) *operand {
		y := c.slice(c.slice(x, int64(r-2), i, i+1, 1), int64(r-1), j, j+1, 1)
		return c.reshape(y, s[:r-2]...)
	}
	var det func(row int64, cols []int64) *operand
	det = func(row int64, cols []int64) *operand {
		if len(cols) == 1 {
			return at(row, cols[0])
		}
		var sum *operand
		for k, col := range cols {
			rest := append(slices.Clone(cols[:k]), cols[k+1:]...)
			term := c.emit(op.Mul{}, at(row, col), det(row+1, rest))
			switch {
			case sum == nil:
				sum = term
			case k%2 == 1:
				sum = c.emit(op.Sub{}, sum, term)
			default:
				sum = c.emit(op.Add{}, sum, term)
			}
		}
		return sum
	}
	if n == 0 {
		return one(c.fill(ir.Type{DType: x.typ.DType, Shape: s[:r-2]}, 1))
	}
	return one(det(0, allAxes(int(n))))
}
