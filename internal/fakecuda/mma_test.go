package fakecuda

import "math"

// wantShapes computes the kernel "shapes" the other way round than the fake: it walks lanes and registers as the tables of the PTX reference
// list them and fills the matrices.
func wantShapes(x []uint32) []float32 {
	reg := func(lane, i int) uint32 { return x[lane*6+i] }
	out := make([]float32, 512)
	run := func(at, k int, a, b [][]float64, c func(i int) float64) {
		for lane := range 32 {
			g, t := lane/4, lane%4
			for i := range 4 {
				row, col := g+8*(i/2), 2*t+i%2
				s := c(i)
				for j := range k {
					s += a[row][j] * b[j][col]
				}
				out[at+lane*4+i] = float32(s)
			}
		}
	}
	matrix := func(rows, cols int) [][]float64 {
		m := make([][]float64, rows)
		for i := range m {
			m[i] = make([]float64, cols)
		}
		return m
	}
	f16 := func(v uint32, hi int) float64 { return wide(uint16(v>>(16*hi)), 5, 10) }
	bf := func(v uint32, hi int) float64 { return wide(uint16(v>>(16*hi)), 8, 7) }
	tf32 := func(v uint32) float64 { return float64(math.Float32frombits(v &^ 0x1fff)) }
	s8 := func(v uint32, k int) float64 { return float64(int8(v >> (8 * k))) }
	start := func(i int) float64 { return float64(i) }

	a, b := matrix(16, 16), matrix(16, 8)
	ta, tb := matrix(16, 8), matrix(8, 8)
	ba, bb := matrix(16, 8), matrix(8, 8)
	ia, ib := matrix(16, 32), matrix(32, 8)
	for lane := range 32 {
		g, t := lane/4, lane%4
		for h := range 2 {
			a[g][2*t+h], a[g+8][2*t+h] = f16(reg(lane, 0), h), f16(reg(lane, 1), h)
			a[g][2*t+8+h], a[g+8][2*t+8+h] = f16(reg(lane, 2), h), f16(reg(lane, 3), h)
			b[2*t+h][g], b[2*t+8+h][g] = f16(reg(lane, 4), h), f16(reg(lane, 5), h)
			ba[g][2*t+h], ba[g+8][2*t+h] = bf(reg(lane, 0), h), bf(reg(lane, 1), h)
			bb[2*t+h][g] = bf(reg(lane, 4), h)
		}
		ta[g][t], ta[g+8][t], ta[g][t+4], ta[g+8][t+4] = tf32(reg(lane, 0)), tf32(reg(lane, 1)), tf32(reg(lane, 2)), tf32(reg(lane, 3))
		tb[t][g], tb[t+4][g] = tf32(reg(lane, 4)), tf32(reg(lane, 5))
		for h := range 4 {
			ia[g][4*t+h], ia[g+8][4*t+h] = s8(reg(lane, 0), h), s8(reg(lane, 1), h)
			ia[g][16+4*t+h], ia[g+8][16+4*t+h] = s8(reg(lane, 2), h), s8(reg(lane, 3), h)
			ib[4*t+h][g], ib[16+4*t+h][g] = s8(reg(lane, 4), h), s8(reg(lane, 5), h)
		}
	}
	run(0, 16, a, b, start)
	run(128, 8, ta, tb, start)
	run(256, 8, ba, bb, start)
	run(384, 32, ia, ib, start)
	return out
}
