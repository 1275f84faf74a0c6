package importer

import (
	"math"

	"aitk/ir"
	"aitk/ir/op"
)

// Sampling of images at computed places: GridSample, RoiAlign, DeformConv. A place lies between cells; its value is a sum of neighbours with weights that
// depend on the place, so gradients flow to the image and, through the weights, to the places. Which cells are neighbours is a step function of the
// place and carries none.

// floorOf is the greatest whole number not above x, cut off from gradients.
func (c *call) floorOf(x *operand) *operand {
	return c.cast(c.cast(c.emit(op.Floor{}, x), ir.I64), x.typ.DType)
}

// neighbour is one cell near each place along an axis, and its weight.
type neighbour struct{ cell, weight *operand } // cell i64, as computed: it may lie outside

// linearNeighbours are the two cells around each place.
func (c *call) linearNeighbours(x *operand) []neighbour {
	lo := c.floorOf(x)
	t := c.emit(op.Sub{}, x, lo)
	at := c.cast(lo, ir.I64)
	return []neighbour{{at, c.minus(1, t)}, {c.plus(at, 1), t}}
}

// cubicNeighbours are four cells with Keys' weights, a = -0.75.
func (c *call) cubicNeighbours(x *operand) []neighbour {
	const a = -0.75
	lo := c.floorOf(x)
	t := c.emit(op.Sub{}, x, lo)
	at := c.cast(lo, ir.I64)
	poly := func(x *operand, coefficients ...float64) *operand { // highest power first
		y := c.plus(c.scale(x, coefficients[0]), coefficients[1])
		for _, k := range coefficients[2:] {
			y = c.plus(c.emit(op.Mul{}, y, x), k)
		}
		return y
	}
	near := func(x *operand) *operand { return poly(x, a+2, -(a + 3), 0, 1) }
	far := func(x *operand) *operand { return poly(x, a, -5*a, 8*a, -4*a) }
	return []neighbour{{c.plus(at, -1), far(c.plus(t, 1))}, {at, near(t)}, {c.plus(at, 1), near(c.minus(1, t))}, {c.plus(at, 2), far(c.minus(2, t))}}
}

// reflect folds places back between two bounds, as often as it takes.
func (c *call) reflect(x *operand, lo, hi float64) *operand {
	d := x.typ.DType
	width := hi - lo
	if width <= 0 {
		return c.emit(op.Mul{}, x, scalar(d, 0))
	}
	dist := c.emit(op.Abs{}, c.plus(x, -lo))
	turns := c.floorOf(c.scale(dist, 1/width))
	rest := c.emit(op.Sub{}, dist, c.scale(turns, width))
	odd := c.emit(op.Equal{}, c.emit(op.Mod{}, c.cast(turns, ir.I64), scalar(ir.I64, 2)), scalar(ir.I64, 1))
	return c.emit(op.Where{}, odd, c.minus(hi, rest), c.plus(rest, lo))
}

// lowerGridSample reads an image at places that a grid holds, in units of half the image from its middle, the last axis of the image first.
func lowerGridSample(c *call) []*operand {
	c.args(2, 2)
	x, grid := c.arg(0), c.arg(1)
	mode, padding := c.string("mode", "linear"), c.string("padding_mode", "zeros")
	corners := c.flag("align_corners", false)
	s, gs := x.typ.Shape, grid.typ.Shape
	r := len(s) - 2
	if r < 1 || r > 3 || len(gs) != r+2 || gs[r+1] != int64(r) || gs[0] != s[0] {
		c.invalid("grid %v for %v", grid.typ, x.typ)
	}
	d := x.typ.DType
	compute := computeType(d)
	places := gs[1 : r+1].Elems()
	flatGrid := c.cast(c.reshape(grid, gs[0], places, int64(r)), compute)
	axes := make([][]neighbour, r)
	for a := range r {
		dim := float64(s[a+2])
		k := int64(r - 1 - a)
		at := c.reshape(c.slice(flatGrid, 2, k, k+1, 1), gs[0], places)
		lo, hi := -0.5, dim-0.5
		if corners {
			lo, hi = 0, dim-1
			at = c.scale(c.plus(at, 1), (dim-1)/2)
		} else {
			at = c.scale(c.plus(c.scale(c.plus(at, 1), dim), -1), 0.5)
		}
		if mode == "nearest" {
			at = c.cast(c.cast(c.emit(op.Round{}, at), ir.I64), compute)
		}
		if mode != "cubic" && mode != "bicubic" {
			switch padding {
			case "border":
				at = c.emit(op.Clip{Min: 0, Max: dim - 1}, at)
			case "reflection":
				at = c.reflect(at, lo, hi)
			}
		}
		switch mode {
		case "nearest":
			axes[a] = []neighbour{{c.cast(at, ir.I64), nil}}
		case "linear", "bilinear":
			axes[a] = c.linearNeighbours(at)
		case "cubic", "bicubic":
			axes[a] = c.cubicNeighbours(at)
		default:
			c.unsupported("mode=%q", mode)
		}
		for i := range axes[a] {
			axes[a][i] = c.placed(axes[a][i], s[a+2], padding, corners, compute)
		}
	}
	// Cells lie side by side in rows of channels, so that one gather takes a place of all channels.
	size := s[2:].Elems()
	rows := c.cast(c.transpose(c.reshape(x, s[0], s[1], size), 0, 2, 1), compute)
	y := c.weighted(rows, s[2:], axes)
	y = c.transpose(y, 0, 2, 1)
	return one(c.cast(c.reshape(y, append([]int64{s[0], s[1]}, gs[1:r+1]...)...), d))
}

// placed brings a neighbour that may lie outside into the image: by clipping, by reflection, or with weight 0.
func (c *call) placed(n neighbour, dim int64, padding string, corners bool, d ir.DType) neighbour {
	inside := c.emit(op.Clip{Min: 0, Max: float64(dim - 1)}, n.cell)
	switch padding {
	case "border":
		return neighbour{inside, n.weight}
	case "reflection":
		if corners {
			if dim < 2 {
				return neighbour{inside, n.weight}
			}
			period := 2 * (dim - 1)
			m := c.emit(op.Mod{}, n.cell, scalar(ir.I64, float64(period)))
			return neighbour{c.emit(op.Min{}, m, c.minus(float64(period), m)), n.weight}
		}
		m := c.emit(op.Mod{}, n.cell, scalar(ir.I64, float64(2*dim)))
		return neighbour{c.emit(op.Min{}, m, c.minus(float64(2*dim-1), m)), n.weight}
	case "zeros":
		hit := c.cast(c.emit(op.Equal{}, inside, n.cell), d)
		if n.weight == nil {
			return neighbour{inside, hit}
		}
		return neighbour{inside, c.emit(op.Mul{}, n.weight, hit)}
	}
	c.unsupported("padding_mode=%q", padding)
	return n
}

// weighted sums, for each place, the rows of all combinations of neighbours along the axes of an image: rows [batch, cells, channels], cells and weights
// [batch, places] -> [batch, places, channels].
func (c *call) weighted(rows *operand, image ir.Shape, axes [][]neighbour) *operand {
	var sum *operand
	var combine func(a int, cell, weight *operand)
	combine = func(a int, cell, weight *operand) {
		if a == len(axes) {
			y := c.pickRows(rows, cell)
			if weight != nil {
				y = c.emit(op.Mul{}, y, c.reshape(weight, append(weight.typ.Shape.Clone(), 1)...))
			}
			if sum == nil {
				sum = y
			} else {
				sum = c.emit(op.Add{}, sum, y)
			}
			return
		}
		for _, n := range axes[a] {
			at, w := n.cell, n.weight
			if cell != nil {
				at = c.emit(op.Add{}, c.scale(cell, float64(image[a])), at)
			}
			if weight != nil && w != nil {
				w = c.emit(op.Mul{}, weight, w)
			} else if w == nil {
				w = weight
			}
			combine(a+1, at, w)
		}
	}
	combine(0, nil, nil)
	return sum
}

// lowerAffineGrid maps the middle (or, with align_corners, the corners) of each cell by an affine map of each member of the batch.
func lowerAffineGrid(c *call) []*operand {
	c.args(2, 2)
	theta := c.arg(0)
	size := ir.Shape(c.constInts(1, "size"))
	corners := c.flag("align_corners", false)
	r := len(size) - 2
	if r < 2 || r > 3 || size.Check() != nil || !theta.typ.Shape.Equal(ir.Shape{size[0], int64(r), int64(r + 1)}) {
		c.invalid("maps %v for size %v", theta.typ, size)
	}
	image := size[2:]
	n := image.Elems()
	if n > indexElems {
		c.unsupported("a grid of %d cells", n)
	}
	base := ir.NewTensor(ir.T(theta.typ.DType, 1, n, int64(r+1)))
	for i := range n {
		rest := i
		for a := r - 1; a >= 0; a-- {
			k, dim := float64(rest%image[a]), float64(image[a])
			rest /= image[a]
			at := (2*k+1)/dim - 1
			if corners {
				at = -1
				if dim > 1 {
					at = 2*k/(dim-1) - 1
				}
			}
			base.F[int(i)*(r+1)+r-1-a] = at
		}
		base.F[int(i)*(r+1)+r] = 1
	}
	base.Round()
	y := c.emit(op.MatMul{TransB: true}, &operand{typ: base.Type, known: &base}, theta)
	return one(c.reshape(y, append(append([]int64{size[0]}, image...), int64(r))...))
}

// roi is what the regions of a RoiAlign have in common.
type roi struct {
	*call
	x             *operand // [batch, channels, height, width]
	rows          *operand // [batch*height*width, channels]
	height, width int64    // of the result
	ratio         int64
	factor        float64 // from regions to cells
	half          bool
	max           bool
}

// lowerRoiAlign averages samples over the bins of each region. With sampling_ratio 0 the number of samples depends on the regions, which must then be
// known.
func lowerRoiAlign(c *call) []*operand {
	c.args(3, 3)
	def := "half_pixel"
	if c.ver < 16 {
		def = "output_half_pixel"
	}
	r := &roi{call: c, x: c.arg(0), height: c.int("output_height", 1), width: c.int("output_width", 1), ratio: c.int("sampling_ratio", 0), factor: c.float("spatial_scale", 1),
		half: c.string("coordinate_transformation_mode", def) == "half_pixel", max: c.string("mode", "avg") == "max"}
	rois, batch := c.arg(1), c.cast(c.arg(2), ir.I64)
	s := r.x.typ.Shape
	if len(s) != 4 || len(rois.typ.Shape) != 2 || rois.typ.Shape[1] != 4 || r.height < 1 || r.width < 1 || r.ratio < 0 || max(r.height, r.width, r.ratio) > 1<<16 {
		c.invalid("regions %v for %v", rois.typ, r.x.typ)
	}
	n := rois.typ.Shape[0]
	r.rows = c.reshape(c.transpose(r.x, 0, 2, 3, 1), s[0]*s[2]*s[3], s[1])
	if r.ratio > 0 {
		return one(r.align(rois, batch, r.ratio, r.ratio))
	}
	c.unrollLimit(n, "regions")
	known := c.constant(1, "regions").F
	var parts []*operand
	for i := range n {
		b := known[4*i : 4*i+4]
		w, h := (b[2]-b[0])*r.factor, (b[3]-b[1])*r.factor
		if !r.half {
			w, h = max(w, 1), max(h, 1)
		}
		ny, nx := int64(math.Ceil(h/float64(r.height))), int64(math.Ceil(w/float64(r.width)))
		if max(ny, nx) > 1<<12 {
			c.unsupported("%d x %d samples a bin", ny, nx)
		}
		parts = append(parts, r.align(c.slice(rois, 0, i, i+1, 1), c.slice(batch, 0, i, i+1, 1), max(ny, 1), max(nx, 1)))
	}
	if parts == nil {
		return one(c.fill(ir.T(r.x.typ.DType, 0, s[1], r.height, r.width), 0))
	}
	return one(c.concat(parts, 0))
}

// align samples ny x nx places in each bin of each region.
func (r *roi) align(rois, batch *operand, ny, nx int64) *operand {
	s := r.x.typ.Shape
	n := rois.typ.Shape[0]
	edge := func(k int64) *operand {
		e := r.scale(r.slice(rois, 1, k, k+1, 1), r.factor)
		if r.half {
			e = r.plus(e, -0.5)
		}
		return e // [n,1]
	}
	places := func(lo, hi *operand, bins, per, dim int64) []neighbour {
		width := r.emit(op.Sub{}, hi, lo)
		if !r.half {
			width = r.emit(op.Clip{Min: 1, Max: math.Inf(1)}, width)
		}
		step := r.scale(width, 1/float64(bins*per)) // between samples
		k := r.emit(op.Iota{DType: rois.typ.DType, Shape: ir.Shape{1, bins * per}, Axis: 1, Start: 0.5, Step: 1})
		at := r.emit(op.Add{}, lo, r.emit(op.Mul{}, step, k)) // [n, bins*per]
		outside := r.emit(op.Or{}, r.emit(op.Less{}, at, scalar(at.typ.DType, -1)), r.emit(op.Less{}, scalar(at.typ.DType, float64(dim)), at))
		at = r.emit(op.Clip{Min: 0, Max: float64(dim - 1)}, at)
		near := r.linearNeighbours(at)
		for i := range near {
			near[i].cell = r.emit(op.Clip{Min: 0, Max: float64(dim - 1)}, near[i].cell)
			near[i].weight = r.emit(op.Where{}, outside, scalar(at.typ.DType, 0), near[i].weight)
		}
		return near
	}
	ys := places(edge(1), edge(3), r.height, ny, s[2])
	xs := places(edge(0), edge(2), r.width, nx, s[3])
	h, w := r.height*ny, r.width*nx
	base := r.scale(r.reshape(batch, n, 1, 1), float64(s[2]*s[3]))
	var terms []*operand
	for _, y := range ys {
		for _, x := range xs {
			cell := r.emit(op.Add{}, r.scale(r.reshape(y.cell, n, h, 1), float64(s[3])), r.reshape(x.cell, n, 1, w))
			v := r.emit(op.Gather{}, r.rows, r.emit(op.Add{}, cell, base)) // [n,h,w,channels]
			weight := r.emit(op.Mul{}, r.reshape(y.weight, n, h, 1, 1), r.reshape(x.weight, n, 1, w, 1))
			terms = append(terms, r.emit(op.Mul{}, v, weight))
		}
	}
	all := terms[0]
	for _, t := range terms[1:] {
		if r.max { // the definition takes the greatest of the weighted neighbours, not of their sums
			all = r.emit(op.Max{}, all, t)
		} else {
			all = r.emit(op.Add{}, all, t)
		}
	}
	all = r.reshape(all, n, r.height, ny, r.width, nx, s[1])
	if r.max {
		all = r.emit(op.ReduceMax{Axes: []int64{2, 4}}, all)
	} else {
		all = r.emit(op.ReduceMean{Axes: []int64{2, 4}}, all)
	}
	return r.transpose(all, 0, 3, 1, 2)
}

// lowerDeformConv samples the image at places moved by offsets, weighs the samples with a mask, and multiplies by the kernel as a matrix.
func lowerDeformConv(c *call) []*operand {
	c.args(3, 5)
	x, w, offset := c.arg(0), c.arg(1), c.arg(2)
	win := c.window(x.typ.Shape, c.kernelShape(w))
	group, offsets := c.int("group", 1), c.int("offset_group", 1)
	s, ws := x.typ.Shape, w.typ.Shape
	if len(s) != 4 {
		c.unsupported("deformable convolution of %v", x.typ)
	}
	kh, kw := ws[2], ws[3]
	var out [2]int64
	for i := range out {
		out[i] = (s[i+2]+win.pads[i]+win.pads[i+2]-win.reach(i))/win.strides[i] + 1
	}
	k, p := kh*kw, out[0]*out[1]
	if group < 1 || offsets < 1 || s[1]%group != 0 || s[1]%offsets != 0 || ws[1] != s[1]/group || ws[0]%group != 0 || p < 1 || k*p > indexElems ||
		!offset.typ.Shape.Equal(ir.Shape{s[0], offsets * k * 2, out[0], out[1]}) {
		c.invalid("kernel %v, offsets %v, %d groups, %d offset groups for %v", w.typ, offset.typ, group, offsets, x.typ)
	}
	d := x.typ.DType
	grid := func(axis int) *operand { // where the kernel's cells lie without offsets, [k,p]
		t := ir.NewTensor(ir.T(d, 1, k, p))
		for i := range k {
			for j := range p {
				cell, place := i/kw, j/out[1]
				if axis == 1 {
					cell, place = i%kw, j%out[1]
				}
				t.F[i*p+j] = float64(place*win.strides[axis] - win.pads[axis] + cell*win.dilations[axis])
			}
		}
		t.Round()
		return &operand{typ: t.Type, known: &t}
	}
	moved := c.reshape(offset, s[0]*offsets, k, 2, p)
	axes := make([][]neighbour, 2)
	for a := range axes {
		shift := c.reshape(c.slice(moved, 2, int64(a), int64(a)+1, 1), s[0]*offsets, k, p)
		at := c.reshape(c.emit(op.Add{}, shift, grid(a)), s[0]*offsets, k*p)
		axes[a] = c.linearNeighbours(at)
		for i := range axes[a] {
			axes[a][i] = c.placed(axes[a][i], s[a+2], "zeros", false, d)
		}
	}
	per := s[1] / offsets
	rows := c.transpose(c.reshape(x, s[0]*offsets, per, s[2]*s[3]), 0, 2, 1)
	cols := c.weighted(rows, s[2:], axes) // [batch*offsets, k*p, per]
	if c.has(4) {
		cols = c.emit(op.Mul{}, cols, c.reshape(c.arg(4), s[0]*offsets, k*p, 1))
	}
	cols = c.transpose(c.reshape(cols, s[0], offsets, k, p, per), 0, 1, 4, 2, 3) // [batch, offsets, per, k, p]: channels in order
	cols = c.reshape(cols, s[0], group, s[1]/group*k, p)
	kernel := c.reshape(w, 1, group, ws[0]/group, ws[1]*k)
	y := c.reshape(c.emit(op.MatMul{}, kernel, cols), s[0], ws[0], out[0], out[1])
	return one(c.channelBias(y, 3))
}
