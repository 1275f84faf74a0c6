package fakecuda

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

// odd values that every float test includes.
func special32() []float32 {
	inf := float32(math.Inf(1))
	return []float32{0, float32(math.Copysign(0, -1)), 1, -1, 0.5, -0.5, 1.5, 2.5, -2.5, inf, -inf, float32(math.NaN()), math.MaxFloat32, -math.MaxFloat32,
		math.SmallestNonzeroFloat32, 1e-39, 65504, 65519, 65520, 1e-8, 6e-8, 3e-5, 448, 449, 464, 465, 0.0019, 57344, 61440, 1 << 31, -1 << 31, 1 << 32, 3e9, 127, 128, 1e10, -1e10}
}

func mixed32(r *rand.Rand, n int) []float32 {
	out := append([]float32{}, special32()...)
	for len(out) < n {
		out = append(out, float32(r.NormFloat64()*math.Exp2(float64(r.IntN(40)-20))))
	}
	r.Shuffle(n, func(i, j int) { out[i], out[j] = out[j], out[i] })
	return out[:n]
}

func f16bits(f float64) uint16  { return narrow(f, 5, 10) }
func bf16bits(f float64) uint16 { return narrow(f, 8, 7) }

// narrow rounds to nearest even into a format of e exponent and m mantissa bits, by the definition: the nearest multiple of the value's own step.
func narrow(f float64, e, m int) uint16 {
	bias := 1<<(e-1) - 1
	sign := uint16(0)
	if math.Signbit(f) {
		sign = 1 << (e + m)
	}
	if math.IsNaN(f) {
		return 1<<(e+m) - 1
	}
	a := math.Abs(f)
	top := math.Ldexp(2-math.Ldexp(1, -m), bias)
	exp := max(math.Ilogb(a), 1-bias)
	if a == 0 {
		exp = 1 - bias
	}
	step := math.Ldexp(1, max(min(exp, bias), 1-bias)-m)
	q := math.RoundToEven(a / step)
	if q*step > top || math.IsInf(a, 0) {
		return sign | uint16(1<<e-1)<<m
	}
	v := q * step
	if v < math.Ldexp(1, 1-bias) {
		return sign | uint16(v/math.Ldexp(1, 1-bias-m))
	}
	exp = math.Ilogb(v)
	return sign | uint16(exp+bias)<<m | uint16((v/math.Ldexp(1, exp)-1)*math.Ldexp(1, m))
}

func wide(b uint16, e, m int) float64 {
	bias := 1<<(e-1) - 1
	exp, man := int(b>>m)&(1<<e-1), float64(b&(1<<m-1))
	v := math.Ldexp(man, 1-bias-m)
	if exp == 1<<e-1 {
		v = math.Inf(1)
		if man != 0 {
			return math.NaN()
		}
	} else if exp > 0 {
		v = math.Ldexp(1+man/math.Ldexp(1, m), exp-bias)
	}
	if b>>(e+m)&1 == 1 {
		v = -v
	}
	return v
}

func TestFloats(t *testing.T) {
	variants(t, "math", all, func(t *testing.T, d *device) {
		r := rand.New(rand.NewPCG(5, 5))
		n := 600
		a, b, c := mixed32(r, n), mixed32(r, n), mixed32(r, n)
		pa, pb := up(d, a), up(d, b)
		po := d.alloc(n * 96)
		d.launch(0, "floats", grid(n), block128, 0, po, pa, pb, up(d, c), n)
		got := down[float32](d, po, n*24)
		minf := func(x, y float32) float32 {
			if x != x {
				return y
			}
			if y != y || x < y || x == y && math.Signbit(float64(x)) {
				return x
			}
			return y
		}
		ftz := func(x float64) float64 {
			if math.Abs(x) < 0x1p-126 {
				return math.Copysign(0, x)
			}
			return x
		}
		for i := range n {
			x, y, z := a[i], b[i], c[i]
			f, ax := float64(x), math.Abs(float64(x))
			lt := y
			if x < y {
				lt = x
			}
			sat := float32(min(max(f, 0), 1))
			if x != x {
				sat = 0
			}
			exact := []float32{x + y, x - y, x * y, x / y, 0, float32(math.Sqrt(ax)), lt, -minf(-x, -z)}
			g := got[i*24:]
			what := fmt.Sprintf("floats of %g %g %g", x, y, z)
			for k, w := range exact {
				if k != 4 && g[k] != w && (g[k] == g[k] || w == w) {
					t.Fatalf("%s: result %d is %g, expected %g", what, k, g[k], w)
				}
			}
			near(t, what+" fma", g[4:5], []float32{float32(math.FMA(f, float64(y), float64(z)))}, 1e-7)
			near(t, what+" approximations", g[8:12], []float32{float32(ftz(math.Exp2(ftz(f)))), float32(math.Log2(ftz(ax))), float32(ftz(1 / ftz(f))), float32(1 / math.Sqrt(ftz(ax)))}, 2e-7)
			same(t, what+" signs and roundings", g[12:19], []float32{-x, float32(math.Copysign(f, float64(y))), float32(math.RoundToEven(f)), float32(math.Floor(f)), float32(math.Ceil(f)), float32(math.Trunc(f)), sat})
			if ax < 1000 {
				near(t, what+" sine", g[19:21], []float32{float32(math.Sin(f)), float32(math.Cos(f))}, 1e-6)
			}
			near(t, what+" roots", g[21:23], []float32{1 / x, float32(math.Sqrt(ftz(ax)))}, 2e-7)
			same(t, what+" min", g[23:24], []float32{minf(y, z)})
		}

		pw := d.alloc(4 * n)
		d.launch(0, "compares", grid(n), block128, 0, pw, pa, pb, n)
		for i, g := range down[uint32](d, pw, n) {
			if w := wantCompares(a[i], b[i]); g != w {
				t.Fatalf("compares of %g %g: %#x, expected %#x", a[i], b[i], g, w)
			}
		}
		x, y := make([]float64, n), make([]float64, n)
		for i := range n {
			x[i], y[i] = float64(a[i])*1.000000001, float64(b[i])/3
		}
		po = d.alloc(n * 96)
		d.launch(0, "doubles", grid(n), block128, 0, po, up(d, x), up(d, y), n)
		g := down[float64](d, po, n*12)
		for i := range n {
			x, y := x[i], y[i]
			least, most := y, math.Max(x, y)
			if x < y {
				least = x
			}
			if x != x {
				most = y
			} else if y != y {
				most = x
			}
			clamp := func(v, lo, hi float64) float64 { return math.Trunc(min(max(v, lo), hi)) }
			toInt, toLong := clamp(x, math.MinInt32, math.MaxInt32), float64(0)
			switch {
			case y != y || y < -0x1p63:
				toLong = -0x1p63
			case y >= 0x1p63:
				toLong = 0x1p63
			default:
				toLong = math.Trunc(y)
			}
			if x != x {
				toInt = 0
			}
			same(t, fmt.Sprintf("doubles of %g %g", x, y), g[i*12:], []float64{x + y, x - y, x * y, x / y, math.FMA(x, y, x), math.Sqrt(math.Abs(x)), least, most, float64(float32(x)), math.Floor(x), toInt, toLong})
		}
	})
	variants(t, "approx", from80, func(t *testing.T, d *device) {
		x := mixed32(rand.New(rand.NewPCG(6, 6)), 400)
		po := d.alloc(1600)
		d.launch(0, "tanhs", grid(400), block128, 0, po, up(d, x), 400)
		want := make([]float32, 400)
		for i, v := range x {
			want[i] = float32(math.Tanh(float64(v)))
		}
		near(t, "tanh", down[float32](d, po, 400), want, 5e-4)
	})
}

func wantCompares(x, y float32) uint32 {
	un := x != x || y != y
	var w uint32
	for k, b := range []bool{x < y, x <= y, x > y, x >= y, x == y, x != y, !(x < y), !(x >= y), x != x, x < y, x != y} {
		if b {
			w |= 1 << k
		}
	}
	for k, b := range []bool{un || x == y, x != y, un || x < y, un || x >= y, !un, un, un || x <= y, un || x > y, !un && x != y} {
		if b {
			w |= 1 << (12 + 2*k)
		} else {
			w |= 2 << (12 + 2*k)
		}
	}
	return w
}

func TestConversions(t *testing.T) {
	n := 700
	r := rand.New(rand.NewPCG(7, 7))
	a, b := mixed32(r, n), mixed32(r, n)
	clamp := func(f float64, lo, hi float64) uint32 {
		if f != f {
			return 0
		}
		return uint32(int64(min(max(f, lo), hi)))
	}
	variants(t, "convert", all, func(t *testing.T, d *device) {
		po := d.alloc(n * 64)
		d.launch(0, "casts", grid(n), block128, 0, po, up(d, a), n)
		got := down[uint32](d, po, n*16)
		for i, x := range a {
			f := float64(x)
			k := int32(math.Float32bits(x))
			h, bb := f16bits(f), bf16bits(f)
			nan := func(w uint32, isNaN bool) uint32 {
				if isNaN {
					return 0xffffffff
				}
				return w
			}
			bit := func(f float64) uint32 { return math.Float32bits(float32(f)) }
			sum := f16bits(wide(f16bits(wide(h, 5, 10)*1.5), 5, 10) + 0.25)
			w := []uint32{clamp(math.Trunc(f), math.MinInt32, math.MaxInt32), clamp(math.Trunc(f), 0, math.MaxUint32), clamp(math.RoundToEven(f), math.MinInt32, math.MaxInt32),
				clamp(math.Floor(f), math.MinInt32, math.MaxInt32), clamp(math.Ceil(f), 0, math.MaxUint32), uint32(h), nan(uint32(bb), f != f), nan(bit(wide(h, 5, 10)), f != f),
				nan(bit(wide(bb, 8, 7)), f != f), bit(float64(k)), bit(float64(uint32(k))), math.Float32bits(float32(int64(uint64(uint32(k)) << 20))), nan(uint32(sum), f != f || math.IsNaN(wide(sum, 5, 10))),
				nan(uint32(f16bits(float64(x*1.0000001))), f != f), uint32(min(max(k>>8, -32768), 32767)), uint32(k)<<16 | uint32(k)>>16}
			g := append([]uint32{}, got[i*16:i*16+16]...)
			for _, k := range []int{7, 8} {
				g[k] = nan(g[k], math.IsNaN(float64(math.Float32frombits(g[k]))))
			}
			g[6] = nan(g[6], math.IsNaN(wide(uint16(g[6]), 8, 7)))
			for _, k := range []int{12, 13} {
				g[k] = nan(g[k], math.IsNaN(wide(uint16(g[k]), 5, 10)))
			}
			same(t, fmt.Sprintf("casts of %g", x), g, w)
		}
		p, q := make([]uint16, 2*n), make([]uint16, 2*n)
		for i := range p {
			p[i], q[i] = f16bits(r.NormFloat64()), f16bits(r.NormFloat64())
		}
		po = d.alloc(4 * n)
		d.launch(0, "halves", grid(n), block128, 0, po, up(d, p), up(d, q), n)
		want := make([]uint16, 2*n)
		for i := range want {
			x, y := wide(p[i], 5, 10), wide(q[i], 5, 10)
			want[i] = f16bits(wide(f16bits(x*y), 5, 10) + x)
		}
		same(t, "halves", down[uint16](d, po, 2*n), want)
	})
	pair := func(hi, lo uint16) uint32 { return uint32(hi)<<16 | uint32(lo) }
	variants(t, "convert80", from80, func(t *testing.T, d *device) {
		po := d.alloc(n * 32)
		d.launch(0, "pairs", grid(n), block128, 0, po, up(d, a), up(d, b), n)
		got := down[uint32](d, po, n*8)
		for i := range n {
			x, y := float64(a[i]), float64(b[i])
			if math.Abs(x) > 100 || math.Abs(y) > 100 || x != x || y != y {
				continue
			}
			sq := func(f float64, e, m int) uint16 {
				v := wide(narrow(f, e, m), e, m)
				return narrow(v*v+v, e, m) // exact in double
			}
			cut := func(f float64) uint16 {
				h := f16bits(f)
				if math.Abs(wide(h, 5, 10)) > math.Abs(f) {
					h--
				}
				return h
			}
			t32 := math.Float32bits(a[i])
			w := []uint32{pair(bf16bits(x), bf16bits(y)), pair(f16bits(x), f16bits(y)), pair(bf16bits(max(x, 0)), bf16bits(max(y, 0))), (t32 + 0x1000) &^ 0x1fff,
				pair(sq(x, 8, 7), sq(y, 8, 7)), pair(sq(x, 5, 10), sq(y, 5, 10)), pair(bf16bits(math.Abs(x)), bf16bits(math.Abs(y))), pair(cut(x), cut(y))}
			same(t, fmt.Sprintf("pairs of %g %g", x, y), got[i*8:], w)
		}
	})
	variants(t, "fp8", []string{"sm89"}, func(t *testing.T, d *device) {
		po := d.alloc(n * 16)
		d.launch(0, "fp8", grid(n), block128, 0, po, up(d, a), up(d, b), n)
		got := down[uint32](d, po, n*4)
		e4m3 := func(f float64) uint16 {
			if f != f {
				return 0x7f
			}
			f = min(max(f, -448), 448)
			v := narrow(f, 4, 3)
			if math.Abs(f) >= 256 { // the exponent that others keep for infinity is a number here
				v = uint16(15<<3) | uint16(math.RoundToEven(math.Abs(f)/32)-8)
				if f < 0 {
					v |= 0x80
				}
			}
			if m := math.Abs(f); m > 248 && m < 256 {
				v = v&0x80 | 15<<3
			}
			return v
		}
		e5m2 := func(f float64) uint16 {
			if f != f {
				return 0x7f
			}
			return narrow(min(max(f, -57344), 57344), 5, 2)
		}
		for i := range n {
			x, y := float64(a[i]), float64(b[i])
			w4, w5 := e4m3(x)<<8|e4m3(y), e5m2(x)<<8|e5m2(y)
			if got[i*4] != uint32(w4) || got[i*4+1] != uint32(w5) {
				t.Fatalf("fp8 of %g %g: %#x %#x, expected %#x %#x", x, y, got[i*4], got[i*4+1], w4, w5)
			}
			if back := wide(uint16(got[i*4+3]>>16), 5, 10); x == x && back != wide(e5m2(x), 5, 2) {
				t.Fatalf("e5m2 of %g comes back as %g", x, back)
			}
			if back := wide(uint16(got[i*4+2]>>16), 5, 10); math.Abs(x) < 240 && back != wide(e4m3(x), 4, 3) {
				t.Fatalf("e4m3 of %g comes back as %g", x, back)
			}
		}
	})
}
