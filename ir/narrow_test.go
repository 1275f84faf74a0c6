package ir

import (
	"math"
	"testing"
)

// Largest and smallest magnitudes as the formats' definitions give them.
func TestNarrowFloats(t *testing.T) {
	want := []struct {
		name       string
		max, least float64
		nans       int
	}{
		{"float8e4m3fn", 448, 0x1p-9, 2}, {"float8e4m3fnuz", 240, 0x1p-10, 1}, {"float8e5m2", 57344, 0x1p-16, 6},
		{"float8e5m2fnuz", 57344, 0x1p-17, 1}, {"float8e8m0", 0x1p127, 0x1p-127, 1}, {"float4e2m1", 6, 0.5, 0},
	}
	for i, f := range NarrowFloats() {
		w := want[i]
		least, nans := math.Inf(1), 0
		for p := range 1 << f.Bits() {
			x := f.Value(uint8(p))
			if math.IsNaN(x) {
				nans++
				continue
			}
			if x > 0 {
				least = min(least, x)
			}
			if math.IsInf(x, 0) {
				continue
			}
			if y := f.Round(x, true, "nearest"); y != x || math.Signbit(y) != math.Signbit(x) {
				t.Errorf("%s: %v rounds to %v", f.Name, x, y)
			}
			if b := float64(BF16ToF32(F32ToBF16(float32(x)))); b != x {
				t.Errorf("%s: bf16 has %v for %v", f.Name, b, x)
			}
		}
		if f.Name != w.name || f.Max() != w.max || least != w.least || nans != w.nans {
			t.Errorf("%s: largest %v, smallest %v, %d NaNs; want %+v", f.Name, f.Max(), least, nans, w)
		}
	}
}

// Halves go to even; what is too large does what the cast asks for.
func TestNarrowRound(t *testing.T) {
	for _, c := range []struct {
		format   string
		saturate bool
		mode     string
		x, want  float64
	}{
		{"float8e4m3fn", true, "", 17, 16}, {"float8e4m3fn", true, "", 19, 20}, {"float8e4m3fn", true, "", 1e9, 448}, {"float8e4m3fn", false, "", -1e9, math.NaN()},
		{"float8e4m3fn", true, "", 464, 448}, {"float8e5m2", false, "", 1e9, math.Inf(1)}, {"float8e5m2", true, "", math.Inf(-1), -57344},
		{"float8e4m3fnuz", true, "", math.Copysign(0, -1), 0}, {"float4e2m1", false, "", 1e9, 6}, {"float4e2m1", false, "", -2.5, -2},
		{"float8e8m0", true, "up", 3, 4}, {"float8e8m0", true, "down", 3, 2}, {"float8e8m0", true, "nearest", 2.9, 2}, {"float8e8m0", true, "nearest", 3, 4},
		{"float8e8m0", true, "up", 0, 0x1p-127}, {"float8e8m0", false, "up", math.Inf(1), math.NaN()},
	} {
		f, err := ParseNarrowFloat(c.format)
		if err != nil {
			t.Fatal(err)
		}
		if got := f.Round(c.x, c.saturate, c.mode); got != c.want && !(math.IsNaN(got) && math.IsNaN(c.want)) {
			t.Errorf("%s(%v) saturate=%v %s = %v, want %v", c.format, c.x, c.saturate, c.mode, got, c.want)
		}
	}
}
