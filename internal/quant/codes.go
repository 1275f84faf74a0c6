package quant

import "math"

// codebook holds the quantiles of NF4, as published with QLoRA (Dettmers et al. 2023), rounded to float32.
func codebook() [16]float32 {
	return [16]float32{
		-1, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453, -0.28444138169288635, -0.18477343022823334, -0.09105003625154495, 0,
		0.07958029955625534, 0.16093020141124725, 0.24611230194568634, 0.33791524171829224, 0.44070982933044434, 0.5626170039176941, 0.7229568362236023, 1,
	}
}

// midpoints lie half-way between neighbours of the codebook: the float32 nearest to the exact middle.
func midpoints() (m [15]float32) {
	c := codebook()
	for i := range m {
		m[i] = float32((float64(c[i]) + float64(c[i+1])) / 2)
	}
	return m
}

// Table gives the value of each code before scaling, indexed by the code's bits: 256 entries, or 16 that repeat.
func Table(f Format) (t [256]float32) {
	book := codebook()
	for i := range t {
		switch f {
		case Int8:
			t[i] = float32(int8(i))
		case UInt8:
			t[i] = float32(i)
		case FP8:
			t[i] = FromE4M3(byte(i))
		case Int4:
			t[i] = float32(int8(i<<4) >> 4)
		case UInt4:
			t[i] = float32(i & 15)
		case NF4:
			t[i] = book[i&15]
		default:
			t[i] = float32(math.NaN())
		}
	}
	return t
}

// FromE4M3 widens an 8-bit float.
func FromE4M3(b byte) float32 {
	exp, man := int(b>>3&15), float64(b&7)
	var x float64
	switch {
	case exp == 15 && b&7 == 7:
		x = math.NaN()
	case exp == 0:
		x = math.Ldexp(man/8, -6)
	default:
		x = math.Ldexp(1+man/8, exp-7)
	}
	if b&128 != 0 {
		x = -x
	}
	return float32(x)
}

// ToE4M3 rounds to nearest even and saturates at ±448; x is a number.
func ToE4M3(x float32) byte {
	var sign byte
	a := math.Abs(float64(x))
	if math.Signbit(float64(x)) {
		sign = 128
	}
	a = min(a, 448)
	if a < 1.0/64 { // subnormals are multiples of 2^-9; the first normal number follows them without a break
		return sign | byte(math.RoundToEven(a*512))
	}
	frac, exp := math.Frexp(a) // a = frac * 2^exp, frac in [0.5,1)
	m := int(math.RoundToEven(frac * 16))
	return sign | byte((exp+6)*8+m-8) // m = 16 carries into the exponent
}

// code gives the code of x by the group's scale; s is above 0.
func (f Format) code(x, s float32, mid *[15]float32) byte {
	v := x / s
	switch f {
	case Int8:
		return byte(int8(clamp(math.RoundToEven(float64(v)), 127)))
	case FP8:
		return ToE4M3(v)
	case Int4:
		return byte(int8(clamp(math.RoundToEven(float64(v)), 7))) & 15
	}
	n := byte(0)
	for n < 15 && v > mid[n] {
		n++
	}
	return n
}

func clamp(x, limit float64) float64 { return max(-limit, min(limit, x)) }

// zero is the code of 0.
func (f Format) zero() byte {
	if f == NF4 {
		return 7
	}
	return 0
}

// levels is what the largest magnitude of a group is divided by to make its scale.
func (f Format) levels() float32 {
	switch f {
	case Int8:
		return 127
	case FP8:
		return 448
	case Int4:
		return 7
	}
	return 1
}

// Bound is the largest error of a value in a group whose largest magnitude is m and whose scales are not packed again, rounding of float32
// included.
func (f Format) Bound(m float64) float64 {
	const ulps = 1 + 1e-6
	tiny := math.SmallestNonzeroFloat32 * 512 // where scales are subnormal
	switch f {
	case Int8:
		return m/127/2*ulps*(1+127*2e-7) + tiny
	case FP8:
		return m/28*ulps + tiny // numbers above 256 are 32 apart: half of that over 448
	case Int4:
		return m/7/2*ulps + tiny
	}
	return m*0.1519036*ulps + tiny // the widest gap of the codebook is the first, 0.3038072
}
