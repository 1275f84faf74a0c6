package fakecuda

import (
	"fmt"
	"math"
	"math/bits"
	"math/rand/v2"
	"testing"
)

// variants runs a test for each text of a kernel file.
func variants(t *testing.T, file string, suffixes []string, f func(t *testing.T, d *device)) {
	for _, s := range suffixes {
		t.Run(s, func(t *testing.T) {
			sm := map[string]int64{"sm75": 75, "sm89": 89}[s]
			d := open(t, map[string]int64{"sm": max(sm, 80), "driverVersion": 12060})
			d.load(ptxText(t, file+"."+s+".ptx"))
			f(t, d)
			d.clean()
		})
	}
}

var (
	all    = []string{"sm75", "sm80", "clang22"}
	from80 = []string{"sm80", "clang22"}
)

func same[T comparable](t *testing.T, what string, got, want []T) {
	t.Helper()
	for i := range want {
		if got[i] != want[i] && (got[i] == got[i] || want[i] == want[i]) {
			t.Fatalf("%s: element %d is %v, expected %v", what, i, got[i], want[i])
		}
	}
}

func near(t *testing.T, what string, got, want []float32, tol float64) {
	t.Helper()
	for i := range want {
		g, w := float64(got[i]), float64(want[i])
		if g == w || math.IsNaN(g) && math.IsNaN(w) {
			continue
		}
		if !(math.Abs(g-w) <= tol*max(1, math.Abs(w))) {
			t.Fatalf("%s: element %d is %v, expected %v", what, i, g, w)
		}
	}
}

func floats32(r *rand.Rand, n int) []float32 {
	out := make([]float32, n)
	for i := range out {
		out[i] = float32(r.NormFloat64())
	}
	return out
}

func grid(n int) dims { return dims{(n + 127) / 128, 1, 1} }

var block128 = dims{128, 1, 1}

func TestVector(t *testing.T) {
	variants(t, "vector", all, func(t *testing.T, d *device) {
		r := rand.New(rand.NewPCG(1, 1))
		n := 10004
		a, b := floats32(r, n), floats32(r, n)
		pa, pb, pc := up(d, a), up(d, b), d.alloc(4*n)
		d.launch(0, "vecadd", grid(n), block128, 0, pc, pa, pb, n)
		want := make([]float32, n)
		for i := range want {
			want[i] = a[i] + b[i]
		}
		same(t, "vecadd", down[float32](d, pc, n), want)
		d.launch(0, "axpy", dims{3, 1, 1}, block128, 0, pc, pa, float32(0.5), n)
		d.launch(0, "axpy4", grid(n/4), block128, 0, pc, pb, float32(-0.25), n/4)
		for i := range want {
			want[i] = want[i] + 0.5*a[i]
			want[i] = want[i] + -0.25*b[i]
		}
		same(t, "axpy", down[float32](d, pc, n), want)

		x, y := make([]float64, n), make([]float64, n)
		wide := make([]int64, n)
		for i := range x {
			x[i], y[i] = r.NormFloat64(), r.NormFloat64()
			wide[i] = int64(r.Uint64()) >> (i % 60)
		}
		px, py := up(d, x), up(d, y)
		d.launch(0, "daxpy", grid(n), block128, 0, py, px, 2.5, n)
		for i := range y {
			m := 2.5 * x[i]
			s := x[i] * x[i]
			y[i] = m + y[i]/3 - math.Sqrt(s)
		}
		same(t, "daxpy", down[float64](d, py, n), y)

		p8, p16, p32, pw := d.alloc(n), d.alloc(2*n), d.alloc(4*n), up(d, wide)
		d.launch(0, "narrow", grid(n), block128, 0, p8, p16, p32, pw, n)
		b8, b16, b32 := down[int8](d, p8, n), down[uint16](d, p16, n), down[int32](d, p32, n)
		for i, v := range wide {
			if b8[i] != int8(v) || b16[i] != uint16(v) || b32[i] != int32(v>>7) {
				t.Fatalf("narrow %d: %d %d %d", v, b8[i], b16[i], b32[i])
			}
		}
		po := d.alloc(8 * n)
		d.launch(0, "widen", grid(n), block128, 0, po, p8, p8, p16, p16, n)
		for i, v := range down[int64](d, po, n) {
			if want := int64(b8[i]) + 1000*int64(uint8(b8[i])) + 1000000*int64(int16(b16[i])) + 100000000000*int64(b16[i]); v != want {
				t.Fatalf("widen %d: %d, expected %d", i, v, want)
			}
		}
	})
}

func TestMatMul(t *testing.T) {
	variants(t, "matmul", all, func(t *testing.T, d *device) {
		r := rand.New(rand.NewPCG(2, 2))
		for _, s := range []struct {
			kernel  string
			m, n, k int
		}{{"matmul", 37, 41, 53}, {"matmul", 16, 16, 16}, {"matmul4", 128, 64, 40}} {
			a, b := floats32(r, s.m*s.k), floats32(r, s.k*s.n)
			pa, pb, pc := up(d, a), up(d, b), d.alloc(4*s.m*s.n)
			if s.kernel == "matmul" {
				d.launch(0, s.kernel, dims{(s.n + 15) / 16, (s.m + 15) / 16, 1}, dims{16, 16, 1}, 0, pc, pa, pb, s.m, s.n, s.k)
			} else {
				d.launch(0, s.kernel, dims{s.n / 64, s.m / 64, 1}, dims{256, 1, 1}, 4*1024, pc, pa, pb, s.n, s.k)
			}
			want := make([]float32, s.m*s.n)
			for i := range s.m {
				for j := range s.n {
					var sum float32
					for k := range s.k {
						sum = float32(math.FMA(float64(a[i*s.k+k]), float64(b[k*s.n+j]), float64(sum)))
					}
					want[i*s.n+j] = sum
				}
			}
			near(t, s.kernel, down[float32](d, pc, s.m*s.n), want, 1e-6)
		}
	})
}

func TestReduce(t *testing.T) {
	variants(t, "reduce", all, func(t *testing.T, d *device) {
		r := rand.New(rand.NewPCG(3, 3))
		rows, n := 9, 301
		x := floats32(r, rows*n)
		px, po := up(d, x), d.alloc(4*rows*n)
		d.launch(0, "rowsum", dims{rows, 1, 1}, dims{32, 1, 1}, 0, po, px, n)
		want := make([]float32, rows)
		for i := range rows {
			for _, v := range x[i*n : i*n+n] {
				want[i] += v
			}
		}
		near(t, "rowsum", down[float32](d, po, rows), want, 1e-5)
		d.launch(0, "softmax", dims{rows, 1, 1}, dims{96, 1, 1}, 0, po, px, n)
		want = make([]float32, rows*n)
		for i := range rows {
			m, sum := math.Inf(-1), 0.0
			for _, v := range x[i*n : i*n+n] {
				m = max(m, float64(v))
			}
			for _, v := range x[i*n : i*n+n] {
				sum += math.Exp(float64(v) - m)
			}
			for j, v := range x[i*n : i*n+n] {
				want[i*n+j] = float32(math.Exp(float64(v)-m) / sum)
			}
		}
		near(t, "softmax", down[float32](d, po, rows*n), want, 1e-6)

		v := make([]uint32, 32)
		for i := range v {
			v[i] = uint32(r.IntN(200))
		}
		pv, pw := up(d, v), d.alloc(32*16*4)
		d.launch(0, "warps", dims{1, 1, 1}, dims{32, 1, 1}, 0, pw, pv)
		got := down[uint32](d, pw, 512)
		var ballot uint32
		for i, x := range v {
			if x < 100 {
				ballot |= 1 << i
			}
		}
		flag := func(b bool) uint32 {
			if b {
				return 1
			}
			return 0
		}
		for l, x := range v {
			upV, upOK := x, uint32(0)
			if l >= 3 {
				upV, upOK = v[l-3], 1
			}
			dn, dnOK := x, uint32(0)
			if l%8+5 < 8 { // segments of 8
				dn, dnOK = v[l+5], 1
			}
			odd := x & 1
			r12, r13 := odd+10*flag(odd == 1), uint32(7)
			if odd == 1 {
				r13 = 9
			}
			w := []uint32{upV, upOK, dn, dnOK, v[x%32], 1, ballot, flag(ballot != 0), 0xffffffff, flag(ballot == 0xffffffff), uint32(l), 1<<l - 1, r12, r13, 0, 0}
			same(t, fmt.Sprintf("warps lane %d", l), got[l*16:], w)
		}
	})
	variants(t, "warp80", from80, func(t *testing.T, d *device) {
		v := make([]uint32, 32)
		var sum, xor uint32
		most := int32(math.MinInt32)
		for i := range v {
			v[i] = uint32(i*37) % 101
			sum += v[i]
			xor ^= v[i]
			most = max(most, int32(v[i])-50)
		}
		po := d.alloc(32 * 16)
		d.launch(0, "warps80", dims{1, 1, 1}, dims{32, 1, 1}, 0, po, up(d, v))
		for l, x := range v {
			var match uint32
			for k, y := range v {
				if x%5 == y%5 {
					match |= 1 << k
				}
			}
			same(t, "warps80", down[uint32](d, po, 128)[l*4:], []uint32{match, sum, uint32(most), xor})
		}
	})
}

func TestInts(t *testing.T) {
	variants(t, "ints", all, func(t *testing.T, d *device) {
		r := rand.New(rand.NewPCG(4, 4))
		n := 500
		a, b, c := make([]uint32, n), make([]uint32, n), make([]uint32, n)
		for i := range n {
			a[i], b[i], c[i] = r.Uint32()>>(i%30), r.Uint32()>>(i%29), r.Uint32()>>(i%31)
			if i%7 == 0 {
				a[i] = -a[i]
			}
		}
		po := d.alloc(n * 160)
		d.launch(0, "ints", grid(n), block128, 0, po, up(d, a), up(d, b), up(d, c), n)
		got := down[uint32](d, po, n*40)
		for i := range n {
			same(t, fmt.Sprintf("ints of %#x %#x %#x", a[i], b[i], c[i]), got[i*40:], wantInts(a[i], b[i], c[i]))
		}
		x, y := make([]uint64, n), make([]uint64, n)
		for i := range n {
			x[i], y[i] = r.Uint64()>>(i%60), r.Uint64()>>(i%59)
			if i%5 == 0 {
				x[i] = -x[i]
			}
		}
		po = d.alloc(n * 128)
		d.launch(0, "longs", grid(n), block128, 0, po, up(d, x), up(d, y), n)
		g := down[uint64](d, po, n*16)
		for i := range n {
			same(t, fmt.Sprintf("longs of %#x %#x", x[i], y[i]), g[i*16:], wantLongs(x[i], y[i]))
		}
	})
}

// field is the reference for bfe: bit by bit.
func field(x uint64, pos, length uint32, width int, signed bool) uint64 {
	pos, length = pos&255, length&255
	var r uint64
	for i := range width {
		src := int(pos) + i
		var bit uint64
		if i < int(length) && src < width {
			bit = x >> src & 1
		} else if signed && length > 0 {
			bit = x >> min(int(pos+length-1), width-1) & 1
		}
		r |= bit << i
	}
	return r
}

func insert(a, b uint64, pos, length uint32, width int) uint64 {
	pos, length = pos&255, length&255
	for i := 0; i < int(length) && int(pos)+i < width; i++ {
		at := int(pos) + i
		b = b&^(1<<at) | a>>i&1<<at
	}
	return b
}

func wantInts(x, y, z uint32) []uint32 {
	sx, sy, sz := int32(x), int32(y), int32(z)
	w := make([]uint32, 40)
	copy(w, []uint32{x + y, x - y, x * y, 0, 0, 0, uint32(sx % (sy | 1)), x & y, x | y, x ^ y, ^x, x << (y & 31), x >> (y & 31), uint32(sx >> (y & 31)), min(x, y),
		uint32(max(sx, sy)), uint32(uint64(x) * uint64(y) >> 32), uint32(int64(sx) * int64(sy) >> 32), uint32(bits.OnesCount32(x)), uint32(bits.LeadingZeros32(x)),
		bits.Reverse32(x), bits.RotateLeft32(x, 7), uint32(int64(sx) * int64(sy) >> 32), x << y, uint32(sx >> y), x & 0xffffff * (y & 0xffffff)})
	if y != 0 {
		w[3], w[4], w[5] = x/y, x%y, uint32(sx/(sy|1))
	}
	w[26], w[27] = uint32(field(uint64(x), y, z, 32, false)), uint32(field(uint64(x), y, z, 32, true))
	for k := range 4 {
		sel := z >> (4 * k)
		b := byte((uint64(y)<<32 | uint64(x)) >> (8 * (sel & 7)))
		if sel&8 != 0 {
			b = byte(int8(b) >> 7)
		}
		w[28] |= uint32(b) << (8 * k)
	}
	w[29] = uint32((uint64(y)<<32 | uint64(x)) << (z & 31) >> 32)
	w[30] = uint32((uint64(y)<<32 | uint64(x)) >> min(z, 32))
	w[31] = z + max(x, y) - min(x, y)
	w[32] = uint32(sx*sy + sz)
	w[33] = uint32(uint64(x)*uint64(y)>>32) + z
	w[34] = uint32(insert(uint64(x), uint64(y), z, z>>3, 32))
	w[35] = x&y | ^x&z
	w[36] = uint32(31 - bits.LeadingZeros32(x))
	w[37] = z
	for k := 0; k < 32; k += 8 {
		w[37] += uint32(int32(int8(x>>k)) * int32(uint8(y>>k)))
	}
	_, carry := bits.Add32(x, y, 0)
	_, borrow := bits.Sub32(x, y, 0)
	w[38], w[39] = z+carry, z-borrow
	return w
}

func wantLongs(x, y uint64) []uint64 {
	hi, _ := bits.Mul64(x, y)
	w := []uint64{x + y, x * y, x / (y | 1), x % (y | 1), uint64(int64(x) / int64(y|1)), x << (y & 63), uint64(int64(x) >> (y & 63)), uint64(min(int64(x), int64(y))), hi,
		uint64(bits.OnesCount64(x)), uint64(bits.LeadingZeros64(x)), uint64(uint32(x)) * uint64(uint32(y)), uint64(int64(int32(x))*int64(int32(y)) + int64(y)), 0, 0, 0}
	p, l := uint32(y), uint32(y)>>8
	w[13], w[14], w[15] = field(x, p, l, 64, false), field(x, p, l, 64, true), insert(x, y, p, l, 64)
	return w
}
