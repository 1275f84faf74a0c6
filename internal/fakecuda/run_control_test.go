package fakecuda

import (
	"math/rand/v2"
	"testing"
)

func TestControl(t *testing.T) {
	variants(t, "control", all, func(t *testing.T, d *device) {
		r := rand.New(rand.NewPCG(8, 8))
		n := 300
		x, v := make([]uint32, n), make([]int32, n)
		steps, chosen := make([]int32, n), make([]int32, n)
		for i := range n {
			x[i], v[i] = r.Uint32()%100000, int32(r.IntN(2000)-1000)
			for c := uint64(x[i]); c > 1 && steps[i] <= 1000; steps[i]++ {
				if c&1 == 1 {
					c = 3*c + 1
				} else {
					c >>= 1
				}
			}
			q := v[i]
			for k := range int32(3) {
				switch (q + k) & 7 {
				case 0:
					q = q*3 + 1
				case 1:
					q -= 5
				case 2:
					q ^= 0x55
				case 3:
					for j := range v[i] & 3 {
						q += j * q
					}
				case 4:
					q = q<<2 | 1
				case 5:
					q = -q
				case 6:
					if q > 100 {
						q /= 7
					} else {
						q *= 11
					}
				default:
					q += 1000
				}
			}
			chosen[i] = q
		}
		po := d.alloc(4 * n)
		d.launch(0, "collatz", grid(n), block128, 0, po, up(d, x), n)
		same(t, "collatz", down[int32](d, po, n), steps)
		d.launch(0, "choose", grid(n), block128, 0, po, up(d, v), n)
		same(t, "choose", down[int32](d, po, n), chosen)

		data := make([]int32, 64*20)
		want := make([]int32, 64)
		for i := range want {
			var count [8]int32
			for k := range 20 {
				data[i*20+k] = int32(r.IntN(1000))
				count[data[i*20+k]&7]++
			}
			best := 0
			for k, c := range count {
				if c > count[best] {
					best = k
				}
			}
			want[i] = int32(best)*1000 + count[best]
		}
		d.launch(0, "locals", dims{2, 1, 1}, dims{32, 1, 1}, 0, po, up(d, data), 20)
		same(t, "locals", down[int32](d, po, 64), want)

		rounds := 7
		for i := range want {
			want[i] = 0
			for k := range rounds {
				want[i] += data[k*64+i^1] * int32(k+1)
			}
		}
		d.launch(0, "producer", dims{1, 1, 1}, block128, 0, po, up(d, data), rounds)
		same(t, "producer", down[int32](d, po, 64), want)
	})
}

func TestAtomics(t *testing.T) {
	variants(t, "atomic", all, func(t *testing.T, d *device) {
		r := rand.New(rand.NewPCG(9, 9))
		n := 1000
		x, v := make([]uint32, n), make([]int32, n)
		hist := make([]uint32, 16)
		want := []int32{1 << 30, -1 << 30, 0, 0, int32(n), 0, 0, 0}
		for i := range n {
			x[i], v[i] = r.Uint32(), int32(r.Uint32())>>4
			hist[x[i]&15]++
			want[0], want[1], want[3] = min(want[0], v[i]), max(want[1], v[i]), want[3]^v[i]
		}
		want[2] = int32(n % 7)
		want[7] = int32(n * 2)
		ph := up(d, make([]uint32, 16))
		d.launch(0, "histogram", dims{4, 1, 1}, block128, 0, ph, up(d, x), n)
		same(t, "histogram", down[uint32](d, ph, 16), hist)
		pe := up(d, []int32{1 << 30, -1 << 30, 0, 0, 0, 0, 0, 0})
		d.launch(0, "extremes", grid(n), block128, 0, pe, up(d, v), n)
		same(t, "extremes", down[int32](d, pe, 8), want)

		f := make([]float32, 20*50)
		var sum float32
		for b := range 20 {
			var part float32
			for i := range 50 {
				f[b*50+i] = float32(r.NormFloat64())
				part += f[b*50+i]
			}
			sum += part
		}
		po := d.alloc(4)
		d.launch(0, "lastblock", dims{20, 1, 1}, dims{32, 1, 1}, 0, po, d.alloc(80), up(d, []uint32{0}), up(d, f), 50)
		same(t, "lastblock", down[float32](d, po, 1), []float32{sum})
	})
}

func TestTables(t *testing.T) {
	variants(t, "table", all, func(t *testing.T, d *device) {
		primes := []float32{2, 3, 5, 7, 11, 13, 17, 19}
		for round := range 2 { // the second launch sees what the first left in the module's variable
			po := d.alloc(32)
			d.launch(0, "tables", dims{1, 1, 1}, dims{8, 1, 1}, 0, po, 8)
			want := make([]float32, 8)
			for i := range want {
				want[i] = primes[7-i] + float32([]int{1, 2, 3, 40 * round}[i&3])
			}
			same(t, "tables", down[float32](d, po, 8), want)
		}
		x := floats32(rand.New(rand.NewPCG(10, 10)), 64)
		po := d.alloc(256)
		for n := range 2 { // generic loads from global and from shared memory
			d.launch(0, "generic", dims{1, 1, 1}, dims{64, 1, 1}, 0, po, up(d, x), n)
			for i, v := range down[float32](d, po, 64) {
				if v != x[63-i] {
					t.Fatalf("generic: element %d is %g", i, v)
				}
			}
		}
		at := d.get("cuModuleGetGlobal_v2", d.room("size", 8), d.mod, "counter")
		if got := down[int32](d, at, 4); got[3] != 40 || d.read(d.room("size", 8), 1)[0] != 16 {
			t.Errorf("the module's variable holds %v", got)
		}
	})
}

func TestTensorCores(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 11))
	halves := func(n, e, m int) ([]uint16, []float64) {
		b, f := make([]uint16, n), make([]float64, n)
		for i := range b {
			b[i] = narrow(r.NormFloat64(), e, m)
			f[i] = wide(b[i], e, m)
		}
		return b, f
	}
	product := func(a, b []float64, m, n, k int) []float32 {
		out := make([]float32, m*n)
		for i := range m {
			for j := range n {
				var s float64
				for x := range k {
					s += a[i*k+x] * b[x*n+j]
				}
				out[i*n+j] = float32(s)
			}
		}
		return out
	}
	variants(t, "mma80", from80, func(t *testing.T, d *device) {
		for _, s := range [][3]int{{64, 64, 64}, {40, 48, 112}, {32, 8, 16}} {
			m, n, k := s[0], s[1], s[2]
			ab, a := halves(m*k, 8, 7)
			bb, b := halves(k*n, 8, 7)
			pc := d.alloc(4 * m * n)
			d.launch(0, "matmul_bf16", dims{(n + 31) / 32, (m + 31) / 32, 1}, block128, 0, pc, up(d, ab), up(d, bb), m, n, k)
			near(t, "matmul_bf16", down[float32](d, pc, m*n), product(a, b, m, n, k), 2e-5)
		}
		// each shape with operands placed by the tables of the reference: register i of lane l
		x := make([]uint32, 192)
		for i := range x {
			x[i] = uint32(narrow(r.NormFloat64(), 5, 10)) | uint32(narrow(r.NormFloat64(), 5, 10))<<16
		}
		po := d.alloc(4 * 512)
		d.launch(0, "shapes", dims{1, 1, 1}, dims{32, 1, 1}, 0, po, up(d, x))
		got := down[float32](d, po, 512)
		near(t, "shapes", got, wantShapes(x), 1e-4)
	})
	variants(t, "mma75", []string{"sm75"}, func(t *testing.T, d *device) {
		k := 5
		ab, a := halves(16*8*k, 5, 10)
		bb, b := halves(8*k*8, 5, 10)
		pc := d.alloc(4 * 128)
		d.launch(0, "matmul_f16", dims{1, 1, 1}, dims{32, 1, 1}, 0, pc, up(d, ab), up(d, bb), k)
		near(t, "matmul_f16", down[float32](d, pc, 128), product(a, b, 16, 8, 8*k), 1e-5)
	})
}
