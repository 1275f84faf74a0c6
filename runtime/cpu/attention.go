package cpu

import (
	"math"

	"aitk/ir"
	"aitk/ir/op"
	"aitk/runtime"
)

// Attention without its scores. A tile is some rows of the result. It walks along the other side (keys for queries, queries for keys) in blocks: a block
// of scores is a product of two packed panels, as in gemm.go, and its exponentials are at once the panel of the next product. What a tile holds
// has a fixed size, whatever the lengths.
//
// The forward half keeps a running maximum and sum for each query and scales what it has when the maximum grows. The gradients know the sum
// (lse) and make the softmax from it; they compute the scores twice, once by queries for dq and once by keys for dk and dv, so that each
// result is summed by one tile in a fixed order. Blocks depend on the extents alone.

// attnDepth is how much of a row of q, k or v a panel holds; longer rows are multiplied piece by piece, and their results are tiles of their own.
const attnDepth = 512

// Where tiles keep what belongs to their rows and columns: blocks of the worker.
const (
	attnRowMax  = 0 // running maximum, or lse
	attnRowSum  = 1 // running sum, or dy·y
	attnColLSE  = 2
	attnColDot  = 3
	attnMask    = 4
	attnLoad    = 5
	attnLoadToo = 6
)

// attn is what the kernels have in common.
type attn struct {
	op.AttentionDims
	scale      float64
	guard      bool
	q, k, v    floats
	mask       floats
	hasMask    bool
	maskAt     func(b, h, i int64) int64
	maskStep   int
	y, dy, lse floats // gradients only
	rows, cols int    // of a tile and of a block
}

func attentionKernel(b *builder) (runtime.Kernel, error) {
	switch o := b.x.Op.(type) {
	case op.Attention:
		return attention(b, o)
	case op.AttentionGrad:
		return attentionGrad(b, o)
	case op.AttentionMaskGrad:
		return attentionMaskGrad(b, o)
	}
	return nil, nil
}

// newAttn reads the operands; mask is the position of the mask, if there is one. share is how many panels of its rows a tile holds.
func newAttn(b *builder, scale float64, guard bool, mask, share int) (*attn, error) {
	types := make([]ir.Type, len(b.in))
	for i := range types {
		types[i] = b.inType(i)
	}
	a := &attn{AttentionDims: op.AttentionDimsOf(types), scale: scale, guard: guard}
	var err error
	for i, v := range []*floats{&a.q, &a.k, &a.v, &a.y, &a.lse, &a.dy} {
		if i < 3 || mask == 6 {
			if *v, err = b.floatIn(i); err != nil {
				return nil, err
			}
		}
	}
	if mask < len(b.in) {
		if a.mask, err = b.floatIn(mask); err != nil {
			return nil, err
		}
		var step int64
		a.maskAt, step = a.MaskAt(b.inType(mask).Shape)
		a.hasMask, a.maskStep = true, int(step)
	}
	depth := int(min(max(a.Size, a.Width, 1), attnDepth))
	a.rows = 64
	for a.rows*depth > panelElems/share {
		a.rows /= 2
	}
	a.cols = min(64, panelElems/depth/colStrip*colStrip)
	return a, nil
}

// side is q, k, v or dy as an operand of products: rows of so many elements, in stacks.
type side struct {
	byRow, byCol matrix // rows are lines; columns are lines
	depth        int
}

// newSide lays out stacks matrices of rows x depth.
func newSide(v floats, stacks, rows, depth int64) *side {
	at := make([]int, stacks)
	for p := range at {
		at[p] = p * int(rows*depth)
	}
	return &side{
		byRow: matrix{v: v, at: at, lineStep: int(depth), kStep: 1},
		byCol: matrix{v: v, at: at, lineStep: 1, kStep: int(depth)},
		depth: int(depth),
	}
}

// span is rows [lo, hi) of stack p of a side.
type span struct {
	s         *side
	p, lo, hi int
}

// dots fills dst, whose rows are ld apart, with the products of the rows of x and the rows of y. px holds the packed rows of x; where they are
// short and packed already, they stay.
func dots(w *worker, dst []float64, ld int, x, y span, px []float64, packed bool) {
	rows := roundUp(x.hi-x.lo, rowStrip)
	clear(dst[:rows*ld])
	for k0 := 0; k0 < x.s.depth; k0 += attnDepth {
		k1 := min(k0+attnDepth, x.s.depth)
		n := k1 - k0
		if !packed || x.s.depth > attnDepth {
			x.s.byRow.pack(w, px[:rows*n], rowStrip, x.p, x.lo, x.hi, k0, k1)
		}
		y.s.byRow.pack(w, w.panelB[:ld*n], colStrip, y.p, y.lo, y.hi, k0, k1)
		multiply(px[:rows*n], w.panelB[:ld*n], dst, rows, ld, ld, n)
	}
}

// mix adds weights·rows to acc: px holds the packed weights of so many rows of acc for the rows of y, of which columns [c0, c1) count.
func mix(w *worker, acc []float64, ld, rows int, px []float64, y span, c0, c1 int) {
	n := y.hi - y.lo
	cols := roundUp(c1-c0, colStrip)
	y.s.byCol.pack(w, w.panelB[:cols*n], colStrip, y.p, c0, c1, y.lo, y.hi)
	multiply(px[:rows*n], w.panelB[:cols*n], acc, rows, cols, ld, n)
}

// multiply adds the product of two panels of depth n to c.
func multiply(a, b, c []float64, rows, cols, ld, n int) {
	for j := 0; j < cols; j += colStrip {
		for i := 0; i < rows; i += rowStrip {
			kernel2x4(a[i*n:(i+rowStrip)*n], b[j*n:(j+colStrip)*n], c[i*ld+j:], ld)
		}
	}
}

// strip is where element k of row r lies in a packed panel of depth n.
func strip(r, k, n int) int { return (r/rowStrip*n+k)*rowStrip + r%rowStrip }

// chunks is how many tiles share the columns of a result.
func chunks(widths ...int64) int {
	return max(1, int((max(widths[0], widths[len(widths)-1])+attnDepth-1)/attnDepth))
}

// chunk is the columns of a chunk; none where the result is narrower.
func chunk(i int, width int64) (c0, c1 int) {
	return min(i*attnDepth, int(width)), min((i+1)*attnDepth, int(width))
}

// score scales a row of products and adds the mask: query i, keys from j on.
func (a *attn) score(w *worker, s []float64, b, h, i, j int) {
	for k := range s {
		s[k] *= a.scale
	}
	if !a.hasMask {
		return
	}
	m := w.f64(attnMask)[:len(s)]
	a.loadMask(m, b, h, i, j)
	for k, x := range m {
		s[k] += x
	}
}

// loadMask reads the mask of query i for keys from j on.
func (a *attn) loadMask(m []float64, b, h, i, j int) {
	at := int(a.maskAt(int64(b), int64(h), int64(i)))
	if a.maskStep == 1 {
		a.mask.load(m, at+j)
		return
	}
	x := a.mask.at(at)
	for k := range m {
		m[k] = x
	}
}

func attention(b *builder, o op.Attention) (runtime.Kernel, error) {
	a, err := newAttn(b, o.Scale, o.Guard, 3, 2)
	if err != nil {
		return nil, err
	}
	y, err := b.floatOut(0)
	if err != nil {
		return nil, err
	}
	lse, err := b.floatOut(1)
	if err != nil {
		return nil, err
	}
	q := newSide(a.q, a.Batch*a.Heads, a.Queries, a.Size)
	k, v := newSide(a.k, a.Batch*a.Groups, a.Keys, a.Size), newSide(a.v, a.Batch*a.Groups, a.Keys, a.Width)
	blocks := (int(a.Queries) + a.rows - 1) / a.rows
	pieces := chunks(a.Width)
	return b.tiles(int(a.Batch*a.Heads)*blocks*pieces, func(w *worker, tile int) error {
		head, block, piece := tile/pieces/blocks, tile/pieces%blocks, tile%pieces
		t := forwardTile{a: a, w: w, head: head, q: span{q, head, block * a.rows, min((block+1)*a.rows, int(a.Queries))}}
		t.c0, t.c1 = chunk(piece, a.Width)
		t.run(k, v)
		t.store(&y, &lse, piece == 0)
		return nil
	}), nil
}

// forwardTile is some queries of a head and some columns of their result.
type forwardTile struct {
	a      *attn
	w      *worker
	head   int
	q      span
	c0, c1 int
	acc    []float64
	ld     int
}

func (t *forwardTile) run(k, v *side) {
	a, w := t.a, t.w
	n := t.q.hi - t.q.lo
	rows := roundUp(n, rowStrip)
	b, h := t.head/int(a.Heads), t.head%int(a.Heads)
	group := b*int(a.Groups) + h/int(a.Heads/a.Groups)
	t.ld = roundUp(t.c1-t.c0, colStrip)
	t.acc = w.tile[:rows*t.ld]
	clear(t.acc)
	scores := w.tile[panelElems/2:]
	px, weights := w.panelA[:panelElems/2], w.panelA[panelElems/2:]
	top, sum := w.f64(attnRowMax)[:n], w.f64(attnRowSum)[:n]
	for r := range n {
		top[r], sum[r] = math.Inf(-1), 0
	}
	for j := 0; j < int(a.Keys); j += a.cols {
		end := min(j+a.cols, int(a.Keys))
		keys := end - j
		ld := roundUp(keys, colStrip)
		dots(w, scores, ld, t.q, span{k, group, j, end}, px, j > 0)
		clear(weights[:rows*keys])
		for r := range n {
			s := scores[r*ld : r*ld+keys]
			a.score(w, s, b, h, t.q.lo+r, j)
			t.soften(r, s, weights, &top[r], &sum[r])
		}
		mix(w, t.acc, t.ld, rows, weights, span{v, group, j, end}, t.c0, t.c1)
	}
}

// soften makes weights of a row of scores, relative to the largest score by now, and brings what the row has by now to that scale.
func (t *forwardTile) soften(r int, s, weights []float64, top, sum *float64) {
	largest := *top
	for _, x := range s {
		if x > largest || x != x {
			largest = x
		}
	}
	if math.IsInf(largest, -1) {
		return
	}
	if largest != *top {
		by := math.Exp(*top - largest) // 0 for the first
		*sum *= by
		acc := t.acc[r*t.ld : (r+1)*t.ld]
		for c := range acc {
			acc[c] *= by
		}
		*top = largest
	}
	for k, x := range s {
		e := math.Exp(x - largest)
		*sum += e
		weights[strip(r, k, len(s))] = e
	}
}

// store divides by the sums and writes the result.
func (t *forwardTile) store(y, lse *floats, first bool) {
	a, w := t.a, t.w
	top, sum := w.f64(attnRowMax), w.f64(attnRowSum)
	for r := range t.q.hi - t.q.lo {
		row := t.head*int(a.Queries) + t.q.lo + r
		acc := t.acc[r*t.ld : r*t.ld+t.c1-t.c0]
		log := top[r] + math.Log(sum[r])
		if sum[r] == 0 { // nothing but -inf
			log = math.NaN()
			fill := log
			if a.guard {
				log, fill = math.Inf(-1), 0
			}
			for c := range acc {
				acc[c] = fill
			}
		} else {
			inv := 1 / sum[r]
			for c := range acc {
				acc[c] *= inv
			}
		}
		y.store(row*int(a.Width)+t.c0, acc)
		if first {
			lse.set(row, log)
		}
	}
}
