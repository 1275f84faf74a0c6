package quant_test

import (
	"encoding/binary"
	"fmt"
	"math"
	"strings"
	"testing"

	"aitk/internal/quant"
	"aitk/internal/safetensors"
)

type golden struct {
	t *testing.T
	f *safetensors.File
}

func (g golden) bytes(name string) []byte {
	g.t.Helper()
	x, ok := g.f.Info(name)
	if !ok {
		g.t.Fatalf("the golden file has no %q", name)
	}
	raw := make([]byte, x.Bytes)
	if err := g.f.ReadTensor(name, raw); err != nil {
		g.t.Fatal(err)
	}
	return raw
}

func (g golden) floats(name string) []float32 {
	raw := g.bytes(name)
	x := make([]float32, len(raw)/4)
	for i := range x {
		x[i] = math.Float32frombits(binary.LittleEndian.Uint32(raw[4*i:]))
	}
	return x
}

// Codes, scales and values equal an independent program's (testdata/make/quant.py) bit for bit, in slabs of any size.
func TestGolden(t *testing.T) {
	f, err := safetensors.Open("../../testdata/golden/quant.safetensors")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	g := golden{t, f}
	seen := 0
	for _, name := range f.Names() {
		rest, ok := strings.CutSuffix(name, "/codes")
		if !ok {
			continue
		}
		seen++
		source, scheme, _ := strings.Cut(rest, "/")
		info, _ := f.Info("x/" + source)
		s := quant.Scheme{Rows: info.Type.Shape[0], Cols: info.Type.Shape[1], Double: strings.HasSuffix(scheme, ".double")}
		parts := strings.Split(scheme, ".")
		s.Format = quant.Format(parts[0])
		fmt.Sscanf(parts[1], "axis%d", &s.Axis)
		fmt.Sscanf(parts[2], "block%d", &s.Block)
		t.Run(rest, func(t *testing.T) {
			for _, slab := range []int64{1, 2, 7, 1000} {
				compare(t, golden{t, f}, rest, s, g.floats("x/"+source), slab)
			}
		})
	}
	if seen < 80 {
		t.Errorf("only %d cases", seen)
	}
}

func compare(t *testing.T, g golden, at string, s quant.Scheme, x []float32, slab int64) {
	if err := s.Check(); err != nil {
		t.Fatal(err)
	}
	scale, codes := make([]float32, s.Groups()), make([]byte, len(x))
	slabs := func(f func(row, lo, hi int64)) {
		for row := int64(0); row < s.Rows; row += slab {
			f(row, row*s.Cols, min(row+slab, s.Rows)*s.Cols)
		}
	}
	slabs(func(row, lo, hi int64) {
		if err := s.Absmax(scale, x[lo:hi], row); err != nil {
			t.Fatal(err)
		}
	})
	s.Scales(scale)
	slabs(func(row, lo, hi int64) { s.Encode(codes[lo:hi], x[lo:hi], row, scale) })
	same(t, "scales", scale, g.floats(at+"/scales"))
	if string(codes) != string(g.bytes(at+"/codes")) {
		t.Error("other codes")
	}
	if s.Double {
		d := quant.PackScales(scale)
		same(t, "steps", d.Steps, g.floats(at+"/steps"))
		if len(d.Codes) > 0 {
			same(t, "offset", []float32{d.Offset}, g.floats(at+"/offset"))
		}
		for i, c := range g.bytes(at + "/scale_codes") {
			if d.Codes[i] != int8(c) {
				t.Fatalf("scale %d has code %d, want %d", i, d.Codes[i], int8(c))
			}
		}
		scale = d.Unpack()
	}
	y := make([]float32, len(x))
	slabs(func(row, lo, hi int64) { s.Decode(y[lo:hi], codes[lo:hi], row, scale) })
	same(t, "values", y, g.floats(at+"/values"))
	packed := make([]byte, (len(codes)+1)/2)
	for lo := 0; lo < len(codes); lo += 5 {
		quant.Pack4(packed, codes[lo:min(lo+5, len(codes))], int64(lo))
	}
	back := make([]byte, len(codes))
	quant.Unpack4(back, packed, 0)
	for i := range codes {
		if back[i] != codes[i]&15 {
			t.Fatalf("nibble %d is %d, want %d", i, back[i], codes[i]&15)
		}
	}
}

// same compares bits: zeros of either sign differ.
func same(t *testing.T, what string, got, want []float32) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%d %s, want %d", len(got), what, len(want))
	}
	for i := range got {
		if math.Float32bits(got[i]) != math.Float32bits(want[i]) {
			t.Fatalf("%s: %d is %v, want %v", what, i, got[i], want[i])
		}
	}
}
