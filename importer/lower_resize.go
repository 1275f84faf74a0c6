package importer

import (
	"math"

	"aitk/ir"
	"aitk/ir/op"
)

// resizing is a Resize: per axis a set of taps, the cells of the operand that make a cell of the result with their weights. Along an axis with few
// taps a cell is a weighted sum of gathers; with many (antialiasing) it is a product with the matrix of weights. Both are linear, so gradients
// need nothing of the operand.
type resizing struct {
	*call
	mode, coord, round string
	cubicA             float64
	outside            bool // exclude_outside
	antialias          bool
	extrapolation      float64
}

// roundOutward is the rounding of opset 10, which its text leaves open and its test cases show: up where the image shrinks, down where it grows.
const roundOutward = "outward"

// gatherTaps is the largest number of taps that are gathered one by one.
const gatherTaps = 4

// lowerUpsample is the old form of Resize: asymmetric coordinates, and nearest means the cell at floor(i/scale).
func lowerUpsample(c *call) []*operand {
	r := &resizing{call: c, mode: c.string("mode", "nearest"), coord: "asymmetric", round: "floor"}
	if r.mode == "bilinear" || r.mode == "trilinear" {
		r.mode = "linear"
	}
	var scales []float64
	if c.ver < 9 {
		c.args(1, 1)
		scales = c.floats("scales")
	} else {
		c.args(2, 2)
		scales = c.constant(1, "scales").F
	}
	return one(r.apply(c.arg(0), allAxes(len(c.arg(0).typ.Shape)), scales, nil, nil))
}

func allAxes(rank int) []int64 { return axesFrom(0, rank) }

// lowerResize knows all modes of opset 10 to the newest.
func lowerResize(c *call) []*operand {
	r := &resizing{call: c, mode: c.string("mode", "nearest"), coord: "asymmetric", round: "floor"}
	x := c.arg(0)
	if c.ver < 11 {
		c.args(2, 2)
		r.round = roundOutward
		return one(r.apply(x, allAxes(len(x.typ.Shape)), c.constant(1, "scales").F, nil, nil))
	}
	c.args(1, 4)
	r.coord = c.string("coordinate_transformation_mode", "half_pixel")
	r.round = c.string("nearest_mode", "round_prefer_floor")
	r.cubicA = c.float("cubic_coeff_a", -0.75)
	r.outside = c.flag("exclude_outside", false)
	r.antialias = c.flag("antialias", false)
	r.extrapolation = c.float("extrapolation_value", 0)
	policy := c.string("keep_aspect_ratio_policy", "stretch")
	axes := allAxes(len(x.typ.Shape))
	if list, ok := c.ints("axes"); ok {
		axes = nil
		for _, a := range list {
			axes = append(axes, c.axis(a, len(x.typ.Shape)))
		}
		c.axes(list, len(x.typ.Shape))
	}
	var roi, scales []float64
	var sizes []int64
	if r.coord == "tf_crop_and_resize" {
		roi = c.constant(1, "roi").F
		if len(roi) != 2*len(axes) {
			c.invalid("roi of %d numbers for %d axes", len(roi), len(axes))
		}
	}
	if c.has(3) && c.arg(3).typ.Elems() > 0 {
		sizes = c.constInts(3, "sizes")
		if len(sizes) != len(axes) {
			c.invalid("%d sizes for %d axes", len(sizes), len(axes))
		}
		scales, sizes = r.keepAspect(x.typ.Shape, axes, sizes, policy)
	} else {
		scales = c.constant(2, "scales").F
	}
	return one(r.apply(x, axes, scales, sizes, roi))
}

// keepAspect turns sizes into scales: one for each axis, or the smallest or largest of them for all.
func (r *resizing) keepAspect(s ir.Shape, axes, sizes []int64, policy string) ([]float64, []int64) {
	scales := make([]float64, len(axes))
	for i, a := range axes {
		if s[a] == 0 {
			r.invalid("axis %d of %v has no cells", a, s)
		}
		scales[i] = float64(sizes[i]) / float64(s[a])
	}
	if policy == "stretch" || len(scales) == 0 {
		return scales, sizes
	}
	common := scales[0]
	for _, x := range scales {
		switch policy {
		case "not_larger":
			common = min(common, x)
		case "not_smaller":
			common = max(common, x)
		default:
			r.invalid("keep_aspect_ratio_policy=%q", policy)
		}
	}
	sizes = append([]int64{}, sizes...)
	for i, a := range axes {
		scales[i], sizes[i] = common, int64(common*float64(s[a])+0.5)
	}
	return scales, sizes
}

// apply resizes the given axes. sizes may be nil: they follow from the scales.
func (r *resizing) apply(x *operand, axes []int64, scales []float64, sizes []int64, roi []float64) *operand {
	if len(scales) != len(axes) {
		r.invalid("%d scales for %d axes", len(scales), len(axes))
	}
	var beyond *operand // cells of the result that lie outside the operand
	d := x.typ.DType
	compute := x
	if !d.IsFloat() && r.mode != "nearest" {
		compute = r.cast(x, ir.F32)
	}
	for i, a := range axes {
		dim := x.typ.Shape[a]
		size := int64(math.Floor(float64(dim) * scales[i]))
		if sizes != nil {
			size = sizes[i]
		}
		if !(scales[i] > 0) || size < 0 || size > indexElems || dim == 0 {
			r.invalid("axis %d of extent %d resized to %d by %v", a, dim, size, scales[i])
		}
		var span [2]float64
		if roi != nil {
			span = [2]float64{roi[i], roi[i+len(axes)]}
		}
		t := r.taps(dim, size, scales[i], span)
		compute = r.resample(compute, a, t)
		if t.beyond != nil {
			line := make(ir.Shape, len(x.typ.Shape))
			for k := range line {
				line[k] = 1
			}
			line[a] = size
			mask := &operand{typ: ir.Type{DType: ir.Bool, Shape: line}, known: &ir.Tensor{Type: ir.Type{DType: ir.Bool, Shape: line}, I: t.beyond}}
			if beyond == nil {
				beyond = mask
			} else {
				beyond = r.emit(op.Or{}, beyond, mask)
			}
		}
	}
	if beyond != nil {
		compute = r.emit(op.Where{}, beyond, scalar(compute.typ.DType, r.extrapolation), compute)
	}
	return r.cast(compute, d)
}

// tapTable says, for each cell of the result along an axis, which cells of the operand make it.
type tapTable struct {
	dim     int64
	taps    int
	index   []int64   // [cells*taps]
	weights []float64 // [cells*taps]; nil: all 1
	beyond  []int64   // 1 for cells that lie outside the operand; nil: none
}

func (r *resizing) taps(dim, size int64, scale float64, roi [2]float64) *tapTable {
	t := &tapTable{dim: dim}
	for i := range size {
		at := r.source(float64(i), scale, float64(dim), float64(size), roi)
		if r.coord == "tf_crop_and_resize" {
			if t.beyond == nil {
				t.beyond = make([]int64, size)
			}
			if at < 0 || at > float64(dim-1) {
				t.beyond[i] = 1
				at = min(max(at, 0), float64(dim-1))
			}
		}
		if r.mode == "nearest" {
			t.taps = 1
			t.index = append(t.index, min(max(r.nearest(at, scale), 0), dim-1))
			continue
		}
		base := math.Ceil(at) - 1 // of two neighbours the left one, also where at is whole
		first, weights := r.coefficients(at-base, scale)
		if t.taps = len(weights); int64(t.taps)*size > indexElems {
			r.unsupported("%d cells of %d taps each along an axis", size, t.taps)
		}
		if r.outside {
			sum := 0.0
			for k := range weights {
				if p := int64(base) + first + int64(k); p < 0 || p >= dim {
					weights[k] = 0
				}
				sum += weights[k]
			}
			for k := range weights {
				weights[k] /= sum
			}
		}
		for k, w := range weights {
			t.index = append(t.index, min(max(int64(base)+first+int64(k), 0), dim-1))
			t.weights = append(t.weights, w)
		}
	}
	return t
}

// source is the coordinate in the operand of cell i of the result.
func (r *resizing) source(i, scale, dim, size float64, roi [2]float64) float64 {
	width := scale * dim // need not be whole
	switch r.coord {
	case "align_corners":
		if width == 1 {
			return 0
		}
		return i * (dim - 1) / (width - 1)
	case "asymmetric":
		return i / scale
	case "tf_crop_and_resize":
		at := (roi[1] - roi[0]) * (dim - 1) / 2
		if width != 1 {
			at = i * (roi[1] - roi[0]) * (dim - 1) / (width - 1)
		}
		return at + roi[0]*(dim-1)
	case "tf_half_pixel_for_nn":
		return (i + 0.5) / scale
	case "pytorch_half_pixel":
		if width == 1 {
			return -0.5
		}
		return (i+0.5)/scale - 0.5
	case "half_pixel":
		return (i+0.5)/scale - 0.5
	case "half_pixel_symmetric":
		return dim/2*(1-size/width) + (i+0.5)/scale - 0.5
	}
	r.unsupported("coordinate_transformation_mode=%q", r.coord)
	return 0
}

// nearest picks a cell.
func (r *resizing) nearest(x, scale float64) int64 {
	switch r.round {
	case "round_prefer_floor":
		return int64(math.Ceil(x - 0.5))
	case "round_prefer_ceil":
		return int64(math.Floor(x + 0.5))
	case "floor":
		return int64(math.Floor(x))
	case "ceil":
		return int64(math.Ceil(x))
	case roundOutward:
		if scale < 1 {
			return int64(math.Ceil(x))
		}
		return int64(math.Floor(x))
	}
	r.unsupported("nearest_mode=%q", r.round)
	return 0
}

// coefficients are the weights of the cells from base+first on, for a coordinate at base+ratio, ratio in (0,1].
func (r *resizing) coefficients(ratio, scale float64) (first int64, weights []float64) {
	reach, kernel := 1.0, func(x float64) float64 { return max(0, 1-math.Abs(x)) }
	switch r.mode {
	case "linear":
	case "cubic":
		reach, kernel = 2, r.cubic
	default:
		r.unsupported("mode=%q", r.mode)
	}
	squeeze := 1.0
	if r.antialias {
		squeeze = min(scale, 1)
	}
	first = int64(math.Floor(-reach/squeeze)) + 1
	sum := 0.0
	for k := first; k <= 1-first; k++ {
		w := kernel((float64(k) - ratio) * squeeze)
		weights = append(weights, w)
		sum += w
	}
	if r.antialias {
		for k := range weights {
			weights[k] /= sum
		}
	}
	return first, weights
}

// cubic is Keys' kernel.
func (r *resizing) cubic(x float64) float64 {
	a := r.cubicA
	x = math.Abs(x)
	switch {
	case x <= 1:
		return ((a+2)*x-(a+3))*x*x + 1
	case x < 2:
		return ((a*x-5*a)*x+8*a)*x - 4*a
	}
	return 0
}

// resample applies a table along an axis.
func (r *resizing) resample(x *operand, axis int64, t *tapTable) *operand {
	if t.taps == 0 { // no cells
		return r.slice(x, axis, 0, 0, 1)
	}
	cells := int64(len(t.index) / t.taps)
	if t.identity(cells) {
		return x
	}
	d := x.typ.DType
	if t.weights == nil {
		return r.emit(op.Gather{Axis: axis}, x, ints(t.index))
	}
	rank := len(x.typ.Shape)
	if t.taps <= gatherTaps {
		line := make(ir.Shape, rank)
		for a := range line {
			line[a] = 1
		}
		line[axis] = cells
		var sum *operand
		for k := range t.taps {
			index, w := make([]int64, cells), ir.NewTensor(ir.Type{DType: d, Shape: line})
			zero := true
			for i := range cells {
				index[i], w.F[i] = t.index[int(i)*t.taps+k], t.weights[int(i)*t.taps+k]
				zero = zero && w.F[i] == 0
			}
			if zero {
				continue
			}
			w.Round()
			term := r.emit(op.Mul{}, r.emit(op.Gather{Axis: axis}, x, ints(index)), &operand{typ: w.Type, known: &w})
			if sum == nil {
				sum = term
			} else {
				sum = r.emit(op.Add{}, sum, term)
			}
		}
		return sum
	}
	if cells*t.dim > indexElems {
		r.unsupported("an interpolation matrix of %d x %d", cells, t.dim)
	}
	m := ir.NewTensor(ir.T(d, t.dim, cells))
	for i := range cells {
		for k := range int64(t.taps) {
			at := i*int64(t.taps) + k
			m.F[t.index[at]*cells+i] += t.weights[at]
		}
	}
	m.Round()
	perm := allAxes(rank)
	perm[axis], perm[rank-1] = int64(rank-1), axis // its own inverse
	x = r.transpose(x, perm...)
	s := x.typ.Shape.Clone()
	x = r.emit(op.MatMul{}, r.reshape(x, s[:rank-1].Elems(), s[rank-1]), &operand{typ: m.Type, known: &m})
	s[rank-1] = cells
	return r.transpose(r.reshape(x, s...), perm...)
}

// identity tells whether the table changes nothing.
func (t *tapTable) identity(cells int64) bool {
	if cells != t.dim {
		return false
	}
	for i := range cells {
		for k := range int64(t.taps) {
			at := i*int64(t.taps) + k
			w := 1.0
			if t.weights != nil {
				w = t.weights[at]
			}
			if w != 0 && (t.index[at] != i || t.taps > 1 && w != 1) {
				return false
			}
		}
	}
	return true
}
