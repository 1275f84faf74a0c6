package cpu

import "aitk/runtime"

// One engine multiplies for MatMul, Conv and its gradients:
//
//	c[p][i][j] = sum over k of a[p][i][k] * b[p][k][j]
//
// c is cut into tiles. A tile walks along k in blocks: it packs its rows of a and its columns of b as float64 into two panels of the worker,
// and a register kernel of rowStrip x colStrip sums adds their product to the tile's float64 copy of c. Where the numbers come from is the
// packers' affair (a matrix in either orientation, or the cells under a convolution's kernel), where they go is the store's.
//
// Every element of c is one sum in float64 along ascending k, rounded once by the store: its bits depend neither on tiles nor on blocks nor on who
// runs them. Products of two f32 are exact in float64, so that with f32 operands a kernel with fused multiply-add gives the same bits.
//
// Why float64 panels: scalar Go multiplies both widths equally fast, and the sums come out closer to the float64 truth than any float32
// framework's. Why 2 x 4: measured; the compiler keeps eight sums, four columns and two rows in the fifteen vector registers that it has.
// 4 x 4 spills and runs at less than half the speed.
const (
	rowStrip = 2 // rows of a that lie side by side in its panel
	colStrip = 4 // columns of b that lie side by side in its panel

	maxTileRows = 128
	maxTileCols = 128
	maxBlockK   = 512

	// macsPerTile is how much work makes one more tile worth its packing, about 80 us.
	macsPerTile = 1 << 19
	maxTiles    = 16
	minTileEdge = 16
)

// packer writes lines [r0, r1) of an operand, each along [k0, k1), into dst: strips of width lines side by side, so that line r and index k go to
// ((r-r0)/width*(k1-k0)+(k-k0))*width + (r-r0)%width. Lines are rows of a or columns of b. The lines missing from the last strip are
// zero. p is the number of the matrix in the batch.
type packer func(w *worker, dst []float64, width, p, r0, r1, k0, k1 int)

// product is one call of the engine. store takes the tile of rows [i0, i1) and columns [j0, j1), ld apart.
type product struct {
	batch, m, n, k int
	a, b           packer
	store          func(p, i0, i1, j0, j1 int, c []float64, ld int)
}

// tiling is how a product is cut: a function of its extents alone.
type tiling struct{ rows, cols, block int }

func (g *product) tiling() tiling {
	t := tiling{rows: min(maxTileRows, roundUp(g.m, rowStrip)), cols: min(maxTileCols, roundUp(g.n, colStrip))}
	switch { // a narrow tile may be longer: packing costs less beside it
	case t.rows <= maxTileRows/2:
		t.cols = min(2*maxTileCols, roundUp(g.n, colStrip))
	case t.cols <= maxTileCols/2:
		t.rows = min(2*maxTileRows, roundUp(g.m, rowStrip))
	}
	want := min(maxTiles, g.batch*g.m*g.n*g.k/macsPerTile)
	for g.batch*g.count(t) < want {
		switch {
		case t.rows >= t.cols && t.rows >= 2*minTileEdge:
			t.rows = roundUp(t.rows/2, rowStrip)
		case t.cols >= 2*minTileEdge:
			t.cols = roundUp(t.cols/2, colStrip)
		case t.rows >= 2*minTileEdge:
			t.rows = roundUp(t.rows/2, rowStrip)
		default:
			want = 0
		}
	}
	t.block = max(1, min(maxBlockK, g.k, panelElems/max(t.rows, t.cols)))
	return t
}

// count is the number of tiles of one matrix.
func (g *product) count(t tiling) int {
	return (g.m + t.rows - 1) / t.rows * ((g.n + t.cols - 1) / t.cols)
}

func roundUp(n, to int) int { return (n + to - 1) / to * to }

// gemm makes the kernel of a product.
func (b *builder) gemm(g product) runtime.Kernel {
	if g.batch == 0 || g.m == 0 || g.n == 0 {
		return b.tiles(0, nil)
	}
	t := g.tiling()
	across := (g.n + t.cols - 1) / t.cols
	each := g.count(t)
	return b.tiles(g.batch*each, func(w *worker, tile int) error {
		p, at := tile/each, tile%each
		i0, j0 := at/across*t.rows, at%across*t.cols
		g.tile(w, t, p, i0, min(i0+t.rows, g.m), j0, min(j0+t.cols, g.n))
		return nil
	})
}

// tile computes and stores one tile.
func (g *product) tile(w *worker, t tiling, p, i0, i1, j0, j1 int) {
	rows, ld := roundUp(i1-i0, rowStrip), roundUp(j1-j0, colStrip)
	c := w.tile[:rows*ld]
	clear(c)
	for k0 := 0; k0 < g.k; k0 += t.block {
		k1 := min(k0+t.block, g.k)
		n := k1 - k0
		g.a(w, w.panelA[:rows*n], rowStrip, p, i0, i1, k0, k1)
		g.b(w, w.panelB[:ld*n], colStrip, p, j0, j1, k0, k1)
		// All rows pass one strip of columns before the next: the strip stays in the first cache.
		for j := 0; j < ld; j += colStrip {
			b := w.panelB[j*n : (j+colStrip)*n]
			for i := 0; i < rows; i += rowStrip {
				kernel2x4(w.panelA[i*n:(i+rowStrip)*n], b, c[i*ld+j:], ld)
			}
		}
	}
	g.store(p, i0, i1, j0, j1, c, ld)
}

// kernel2x4 adds the product of a strip of two rows and a strip of four columns to c, whose rows are ld apart. The conversions
// keep compilers that have fused multiply-add from using it.
func kernel2x4(a, b, c []float64, ld int) {
	c0 := c[:4:4]
	c1 := c[ld : ld+4 : ld+4]
	c00, c01, c02, c03 := c0[0], c0[1], c0[2], c0[3]
	c10, c11, c12, c13 := c1[0], c1[1], c1[2], c1[3]
	for len(a) >= 8 && len(b) >= 16 {
		b0, b1, b2, b3 := b[0], b[1], b[2], b[3]
		a0 := a[0]
		c00 += float64(a0 * b0)
		c01 += float64(a0 * b1)
		c02 += float64(a0 * b2)
		c03 += float64(a0 * b3)
		a1 := a[1]
		c10 += float64(a1 * b0)
		c11 += float64(a1 * b1)
		c12 += float64(a1 * b2)
		c13 += float64(a1 * b3)
		b0, b1, b2, b3 = b[4], b[5], b[6], b[7]
		a0 = a[2]
		c00 += float64(a0 * b0)
		c01 += float64(a0 * b1)
		c02 += float64(a0 * b2)
		c03 += float64(a0 * b3)
		a1 = a[3]
		c10 += float64(a1 * b0)
		c11 += float64(a1 * b1)
		c12 += float64(a1 * b2)
		c13 += float64(a1 * b3)
		b0, b1, b2, b3 = b[8], b[9], b[10], b[11]
		a0 = a[4]
		c00 += float64(a0 * b0)
		c01 += float64(a0 * b1)
		c02 += float64(a0 * b2)
		c03 += float64(a0 * b3)
		a1 = a[5]
		c10 += float64(a1 * b0)
		c11 += float64(a1 * b1)
		c12 += float64(a1 * b2)
		c13 += float64(a1 * b3)
		b0, b1, b2, b3 = b[12], b[13], b[14], b[15]
		a0 = a[6]
		c00 += float64(a0 * b0)
		c01 += float64(a0 * b1)
		c02 += float64(a0 * b2)
		c03 += float64(a0 * b3)
		a1 = a[7]
		c10 += float64(a1 * b0)
		c11 += float64(a1 * b1)
		c12 += float64(a1 * b2)
		c13 += float64(a1 * b3)
		a, b = a[8:], b[16:]
	}
	for len(a) >= 2 && len(b) >= 4 {
		a0, a1 := a[0], a[1]
		b0, b1, b2, b3 := b[0], b[1], b[2], b[3]
		c00 += float64(a0 * b0)
		c01 += float64(a0 * b1)
		c02 += float64(a0 * b2)
		c03 += float64(a0 * b3)
		c10 += float64(a1 * b0)
		c11 += float64(a1 * b1)
		c12 += float64(a1 * b2)
		c13 += float64(a1 * b3)
		a, b = a[2:], b[4:]
	}
	c0[0], c0[1], c0[2], c0[3] = c00, c01, c02, c03
	c1[0], c1[1], c1[2], c1[3] = c10, c11, c12, c13
}
