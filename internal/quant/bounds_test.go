package quant_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"aitk/internal/quant"
)

// tensors are what errors are bounded on.
func tensors() map[string][]float32 {
	r := rand.New(rand.NewPCG(3, 4))
	random, outlier, constant := make([]float32, 96*160), make([]float32, 96*160), make([]float32, 96*160)
	for i := range random {
		random[i] = float32(r.NormFloat64())
		outlier[i] = float32(r.NormFloat64()) * 0.01
		if r.IntN(200) == 0 {
			outlier[i] *= 1000
		}
		constant[i] = -0.731
	}
	return map[string][]float32{"random": random, "outlier": outlier, "constant": constant}
}

// Every value stays within Format.Bound of its group's largest magnitude, and errors come close to it: the bound is no guess.
func TestBounds(t *testing.T) {
	for name, x := range tensors() {
		for _, f := range quant.Formats() {
			for axis := range 2 {
				s := quant.Scheme{Format: f, Rows: 96, Cols: 160, Axis: axis}
				if f.Blocked() {
					s.Block = 32
				}
				t.Run(fmt.Sprint(name, " ", f, axis), func(t *testing.T) { bounds(t, s, x, name) })
			}
		}
	}
}

func bounds(t *testing.T, s quant.Scheme, x []float32, name string) {
	m := make([]float32, s.Groups())
	if err := s.Absmax(m, x, 0); err != nil {
		t.Fatal(err)
	}
	scale := append([]float32{}, m...)
	s.Scales(scale)
	codes, y := make([]byte, len(x)), make([]float32, len(x))
	s.Encode(codes, x, 0, scale)
	s.Decode(y, codes, 0, scale)
	group := func(i int) int64 { // said again, the long way
		r, c := int64(i)/s.Cols, int64(i)%s.Cols
		switch {
		case s.Block == 0 && s.Axis == 0:
			return r
		case s.Block == 0:
			return c
		case s.Axis == 1:
			return r*((s.Cols+s.Block-1)/s.Block) + c/s.Block
		}
		return r/s.Block*s.Cols + c
	}
	worst := 0.0
	for i := range x {
		d, limit := math.Abs(float64(x[i])-float64(y[i])), s.Format.Bound(float64(m[group(i)]))
		if !(d <= limit) {
			t.Fatalf("element %d is %v, was %v: %.3g apart, bound %.3g", i, y[i], x[i], d, limit)
		}
		worst = max(worst, d/limit)
	}
	if name == "random" && worst < 0.9 {
		t.Errorf("the largest error is %.2f of the bound", worst)
	}
	if name == "constant" && worst > 1e-3 {
		t.Errorf("a constant is off by %.3f of the bound", worst)
	}
}

func TestMeasure(t *testing.T) {
	x := tensors()["random"]
	at := func(s quant.Scheme) quant.Loss {
		l, err := s.Measure(func(dst []float32, row int64) error { copy(dst, x[row*s.Cols:]); return nil })
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	limits := map[quant.Format][2]float64{quant.Int8: {0.004, 0.01}, quant.FP8: {0.02, 0.03}, quant.NF4: {0.07, 0.1}, quant.Int4: {0.08, 0.13}}
	for f, limit := range limits {
		s := quant.Scheme{Format: f, Rows: 96, Cols: 160}
		if f.Blocked() {
			s.Axis, s.Block = 1, 32
		}
		l := at(s)
		if l.RelL2 < limit[0] || l.RelL2 > limit[1] || l.WorstGroup < l.RelL2 || l.WorstGroup > 2*l.RelL2 {
			t.Errorf("%s: %+v, want a relative error within %v", f, l, limit)
		}
		if !s.Double && s.Block > 0 {
			s.Double = true
			if twice := at(s); !(twice.RelL2 > l.RelL2 && twice.RelL2 < 1.05*l.RelL2) {
				t.Errorf("%s: scales packed again cost %v instead of %v", f, twice.RelL2, l.RelL2)
			}
		}
	}
	empty := quant.Scheme{Format: quant.Int8, Rows: 0, Cols: 5}
	if l, err := empty.Measure(nil); err != nil || l != (quant.Loss{}) {
		t.Errorf("empty: %+v, %v", l, err)
	}
	s := quant.Scheme{Format: quant.NF4, Rows: 2, Cols: 3, Axis: 1, Block: 32}
	for _, bad := range []float32{float32(math.NaN()), float32(math.Inf(1)), float32(math.Inf(-1))} {
		_, err := s.Measure(func(dst []float32, row int64) error {
			copy(dst, []float32{1, 2, 3, 4, bad, 6})
			return nil
		})
		if err == nil || !strings.Contains(err.Error(), "element [1,1] is") {
			t.Errorf("%v: error %v", bad, err)
		}
	}
}

func TestE4M3(t *testing.T) {
	for b := range 256 {
		if b&127 == 127 {
			continue
		}
		if got := quant.ToE4M3(quant.FromE4M3(byte(b))); got != byte(b) {
			t.Errorf("%#x comes back as %#x", b, got)
		}
	}
	for x, want := range map[float32]float32{1e9: 448, 448: 448, 450: 448, 17: 16, 19: 20, 0.0009765625: 0, 0.00098: 0.001953125, -0.4: -0.40625} {
		if got := quant.FromE4M3(quant.ToE4M3(x)); got != want {
			t.Errorf("%v becomes %v, want %v", x, got, want)
		}
	}
}

func BenchmarkEncode(b *testing.B) {
	x := make([]float32, 1<<20)
	for i := range x {
		x[i] = float32(math.Sin(float64(i)))
	}
	for _, f := range quant.Formats() {
		b.Run(string(f), func(b *testing.B) {
			s := quant.Scheme{Format: f, Rows: 1024, Cols: 1024}
			if f.Blocked() {
				s.Axis, s.Block = 1, 64
			}
			scale, codes := make([]float32, s.Groups()), make([]byte, len(x))
			b.SetBytes(4 << 20)
			for b.Loop() {
				clear(scale)
				if err := s.Absmax(scale, x, 0); err != nil {
					b.Fatal(err)
				}
				s.Scales(scale)
				s.Encode(codes, x, 0, scale)
			}
		})
	}
}
