package cpu

import "aitk/ir"

// patches packs the cells that a convolution's kernel covers, from a tensor [samples, channels, spatial...], as a matrix whose one index
// is a position r (sample, then position in row-major order) and whose other is (channel of the group, kernel cell).
//
// For each position a table of the worker says where in a channel each cell lies, -1 outside; it serves all channels, so the
// arithmetic on coordinates is paid once for each position and cell of a block.
type patches struct {
	v        floats
	group    int // channels of a group
	channels int // channels in all
	source   []int
	size     int // elements of a channel
	targets  []int
	count    int // positions of a sample
	cells    int
	shift    []int // for each cell and axis: what the cell adds to a coordinate
	offset   []int // for each cell: what it adds to the place of a position whose cells all lie inside; for under alone
	low      []int // by axis: least and greatest shift
	high     []int
	strides  []int
	up       bool // coordinates are divided by the stride instead of multiplied: the input gradient
}

// under reads x at the cells under each output position.
func (c *conv) under(x floats) *patches {
	g := &patches{v: x, group: c.channels(), source: extents(c.x[2:]), size: c.inputs(), targets: extents(c.y[2:]), count: c.positions()}
	c.finish(g, func(k, axis int) int { return k*int(c.dilations[axis]) - int(c.pads[axis]) })
	return g
}

// over reads dy at the output positions whose kernel covers each input position.
func (c *conv) over(dy floats) *patches {
	g := &patches{v: dy, group: c.filters(), source: extents(c.y[2:]), size: c.positions(), targets: extents(c.x[2:]), count: c.inputs(), up: true}
	c.finish(g, func(k, axis int) int { return int(c.pads[axis]) - k*int(c.dilations[axis]) })
	return g
}

func (c *conv) finish(g *patches, shift func(k, axis int) int) {
	g.channels = g.group * c.group
	g.cells = c.cells()
	g.strides = extents(c.strides)
	kernel := extents(c.w[2:])
	for cell := range g.cells {
		at := make([]int, len(kernel))
		rest := cell
		for i := len(kernel) - 1; i >= 0; i-- {
			at[i] = shift(rest%kernel[i], i)
			rest /= kernel[i]
		}
		g.shift = append(g.shift, at...)
		offset := 0
		for i, x := range at {
			offset = offset*g.source[i] + x
		}
		g.offset = append(g.offset, offset)
	}
	g.low, g.high = make([]int, len(kernel)), make([]int, len(kernel))
	for i, n := range kernel {
		first, last := shift(0, i), shift(n-1, i)
		g.low[i], g.high[i] = min(first, last), max(first, last)
	}
}

func extents(s []int64) []int {
	out := make([]int, len(s))
	for i, d := range s {
		out[i] = int(d)
	}
	return out
}

// maxAxes is how many spatial axes convolution and pooling serve.
const maxAxes = 8

// table writes where the cells first, first+1 ... (going round) of position r lie in their channel, -1 outside.
func (g *patches) table(dst []int64, r, first int) {
	var at [maxAxes]int
	axes := len(g.source)
	for i := axes - 1; i >= 0; i-- {
		at[i] = r % g.targets[i]
		if !g.up {
			at[i] *= g.strides[i]
		}
		r /= g.targets[i]
	}
	cell := first
	if base, ok := g.inside(&at); ok {
		for t := range dst {
			dst[t] = int64(base + g.offset[cell])
			if cell++; cell == g.cells {
				cell = 0
			}
		}
		return
	}
	for t := range dst {
		shift := g.shift[cell*axes : cell*axes+axes]
		pos := 0
		for i, s := range shift {
			x := at[i] + s
			if g.up {
				if x < 0 || x%g.strides[i] != 0 {
					pos = -1
					break
				}
				x /= g.strides[i]
			}
			if uint(x) >= uint(g.source[i]) {
				pos = -1
				break
			}
			pos = pos*g.source[i] + x
		}
		dst[t] = int64(pos)
		if cell++; cell == g.cells {
			cell = 0
		}
	}
}

// inside tells whether all cells over a coordinate lie in the source, as most do, and where the coordinate itself lies.
func (g *patches) inside(at *[maxAxes]int) (pos int, ok bool) {
	if g.up {
		return 0, false
	}
	for i, n := range g.source {
		if at[i]+g.low[i] < 0 || at[i]+g.high[i] >= n {
			return 0, false
		}
		pos = pos*n + at[i]
	}
	return pos, true
}

// packPositions is a packer whose lines are positions and whose k is (channel, cell).
func (g *patches) packPositions(w *worker, dst []float64, width, p, r0, r1, k0, k1 int) {
	n := k1 - k0
	if tail := (r1 - r0) % width; tail != 0 {
		clear(dst[(r1-r0)/width*width*n:])
	}
	table := w.i64(0)[:min(g.cells, n)]
	for r := r0; r < r1; r++ {
		g.table(table, r%g.count, k0%g.cells)
		base := (r/g.count*g.channels + p*g.group + k0/g.cells) * g.size
		g.collect(dst[(r-r0)/width*width*n+(r-r0)%width:], width, table, base, k0%g.cells, n)
	}
}

// packCells is a packer whose lines are (channel, cell) and whose k is positions.
func (g *patches) packCells(w *worker, dst []float64, width, p, r0, r1, k0, k1 int) {
	n, lines := k1-k0, r1-r0
	if tail := lines % width; tail != 0 {
		clear(dst[lines/width*width*n:])
	}
	table := w.i64(0)[:min(g.cells, lines)]
	row := w.f64(packBlock)[:lines]
	for k := range n {
		r := k0 + k
		g.table(table, r%g.count, r0%g.cells)
		base := (r/g.count*g.channels + p*g.group + r0/g.cells) * g.size
		g.collect(row, 1, table, base, r0%g.cells, lines)
		deal(dst[k*width:], width, n*width, row)
	}
}

// collect reads n elements (channel, cell) from cell on, of the channel that starts at base, and writes them width apart.
func (g *patches) collect(dst []float64, width int, table []int64, base, cell, n int) {
	switch g.v.d {
	case ir.F32:
		collect(dst, g.v.f32, width, table, base, g.size, g.cells, cell, n)
	case ir.F64:
		collect(dst, g.v.f64, width, table, base, g.size, g.cells, cell, n)
	default:
		at := 0
		for t, i := 0, 0; i < n; i++ {
			x := 0.0
			if pos := table[t]; pos >= 0 {
				x = g.v.at(base + int(pos))
			}
			dst[at] = x
			at += width
			if t++; t == len(table) {
				t = 0
			}
			if cell++; cell == g.cells {
				cell, base = 0, base+g.size
			}
		}
	}
}

func collect[T float32 | float64](dst []float64, src []T, width int, table []int64, base, size, cells, cell, n int) {
	at := 0
	for t, i := 0, 0; i < n; i++ {
		x := 0.0
		if pos := table[t]; pos >= 0 {
			x = float64(src[base+int(pos)])
		}
		dst[at] = x
		at += width
		if t++; t == len(table) {
			t = 0
		}
		if cell++; cell == cells {
			cell, base = 0, base+size
		}
	}
}
