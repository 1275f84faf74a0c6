package weights

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"aitk/internal/quant"
	"aitk/ir"
)

// source writes floats to a file as t has them, or their transpose, and returns how an Init describes them.
func source(t *testing.T, typ ir.Type, transposed bool, change func(x []float64)) ir.Init {
	t.Helper()
	x := ir.NewTensor(typ)
	for i := range x.F {
		x.F[i] = math.Sin(float64(i)*1.7) * float64(1+i%13)
	}
	if change != nil {
		change(x.F)
	}
	x.Round()
	raw := x.Encode()
	if transposed {
		size := int(typ.DType.Bits() / 8)
		rows, cols := int(typ.Shape[0]), int(typ.Shape[1])
		turned := make([]byte, len(raw))
		for r := range rows {
			for c := range cols {
				copy(turned[(c*rows+r)*size:], raw[(r*cols+c)*size:][:size])
			}
		}
		raw = turned
	}
	path := filepath.Join(t.TempDir(), "w.bin")
	if err := os.WriteFile(path, append([]byte{1, 2, 3}, raw...), 0o666); err != nil {
		t.Fatal(err)
	}
	return ir.Init{Kind: ir.InitFile, File: ir.Location{Path: path, Offset: 3, Bytes: int64(len(raw)), Transposed: transposed, SHA256: sum(raw)}}
}

// packedParts is what the parts of a packed tensor must be, from its floats in one piece.
func packedParts(t *testing.T, s quant.Scheme, x []float32) map[string][]byte {
	t.Helper()
	scale, codes := make([]float32, s.Groups()), make([]byte, len(x))
	if err := s.Absmax(scale, x, 0); err != nil {
		t.Fatal(err)
	}
	s.Scales(scale)
	s.Encode(codes, x, 0, scale)
	parts := map[string][]byte{quant.PartCodes: codes, quant.PartScales: encodeFloats(scale)}
	if s.Format.Bits() == 4 {
		parts[quant.PartCodes] = make([]byte, (len(x)+1)/2)
		quant.Pack4(parts[quant.PartCodes], codes, 0)
	}
	if s.Double {
		d := quant.PackScales(scale)
		parts[quant.PartSteps], parts[quant.PartOffset] = encodeFloats(d.Steps), encodeFloats([]float32{d.Offset})
		parts[quant.PartScales] = nil
		for _, c := range d.Codes {
			parts[quant.PartScales] = append(parts[quant.PartScales], byte(c))
		}
	}
	return parts
}

func TestPacked(t *testing.T) {
	type packing struct {
		format      quant.Format
		axis, block int64
		double      bool
	}
	packings := []packing{{quant.Int8, 0, 0, false}, {quant.Int8, 1, 0, false}, {quant.FP8, 0, 0, false}, {quant.Int4, 1, 32, false},
		{quant.NF4, 1, 64, true}, {quant.NF4, 0, 32, false}, {quant.Int4, 0, 64, true}}
	types := []ir.Type{ir.T(ir.F32, 37, 65), ir.T(ir.BF16, 40, 3, 3, 5), ir.T(ir.F16, 1, 1), ir.T(ir.F64, 12, 40), ir.T(ir.F32, 0, 9)}
	for _, typ := range types {
		for _, transposed := range []bool{false, true} {
			if transposed && len(typ.Shape) != 2 {
				continue
			}
			in := source(t, typ, transposed, nil)
			plain := NewReader()
			floats := make([]float32, typ.Elems())
			if err := plain.Floats("w", typ, &in, floats, 0); err != nil {
				t.Fatal(err)
			}
			plain.Close()
			for _, k := range packings {
				in.Pack = ir.Packing{Source: typ, Format: string(k.format), Axis: k.axis, Block: k.block, Double: k.double}
				t.Run(fmt.Sprint(typ, transposed, k), func(t *testing.T) { packed(t, in, floats) })
			}
		}
	}
}

func packed(t *testing.T, in ir.Init, floats []float32) {
	s, err := quant.SchemeOf(&in.Pack)
	if err != nil {
		t.Fatal(err)
	}
	want := packedParts(t, s, floats)
	for _, n := range []int64{7, 64, 1 << 20} {
		r := NewReader()
		for _, part := range []string{quant.PartCodes, quant.PartScales, quant.PartSteps, quant.PartOffset, quant.PartCodes} {
			if want[part] == nil {
				continue
			}
			in.Pack.Part = part
			typ, err := quant.PartType(&s, part)
			if err != nil {
				t.Fatal(err)
			}
			got, err := inStretches(r, typ, &in, n)
			if err != nil || !bytes.Equal(got, want[part]) {
				t.Fatalf("%s in stretches of %d: %v\n%v\n%v", part, n, err, got, want[part])
			}
		}
		r.Close()
	}
}

func TestPackedIsRefused(t *testing.T) {
	typ := ir.T(ir.F32, 4, 6)
	good := source(t, typ, false, nil)
	good.Pack = ir.Packing{Source: typ, Format: "int8", Part: quant.PartCodes}
	codes := ir.T(ir.I8, 4, 6)
	nan := source(t, typ, false, func(x []float64) { x[9] = math.NaN() })
	nan.Pack = good.Pack
	cases := []struct {
		name, want string
		t          ir.Type
		in         ir.Init
	}{
		{"NaN", `parameter "p": element [1,3] is NaN: only numbers can be quantized`, codes, nan},
		{"other bytes", `parameter "p": `, codes, with(good, func(in *ir.Init) { in.File.SHA256 = sum(nil) })},
		{"unknown format", "no weights can be packed as", codes, with(good, func(in *ir.Init) { in.Pack.Format = "int3" })},
		{"unknown part", `has no part "bits"`, codes, with(good, func(in *ir.Init) { in.Pack.Part = "bits" })},
		{"other type", "are i8[4,6], not i8[6,4]", ir.T(ir.I8, 6, 4), good},
		{"axis", "axis 2 of a matrix", codes, with(good, func(in *ir.Init) { in.Pack.Axis = 2 })},
		{"vector", "is no matrix", codes, with(good, func(in *ir.Init) { in.Pack.Source = ir.T(ir.F32, 24) })},
		{"short", "needs 112 bytes", ir.T(ir.I8, 4, 7), with(good, func(in *ir.Init) { in.Pack.Source = ir.T(ir.F32, 4, 7) })},
		{"absent", "not its content", codes, ir.Init{Kind: ir.InitAbsent, Pack: good.Pack}},
		{"cast", "cannot be made from", codes, with(good, func(in *ir.Init) { in.Pack.Format = quant.Cast })},
	}
	for _, c := range cases {
		r := NewReader()
		raw, err := r.Bytes("p", c.t, &c.in)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, %v, want %q", c.name, raw, err, c.want)
		}
		r.Close()
	}
	// The digest is of the floats, which a packed weight's file still holds.
	r := NewReader()
	defer r.Close()
	if got, err := r.SHA256("p", codes, &good); err != nil || got != good.File.SHA256 {
		t.Errorf("digest %s, %v, want %s", got, err, good.File.SHA256)
	}
}

func with(in ir.Init, change func(*ir.Init)) ir.Init {
	change(&in)
	return in
}

func TestCastAndUniform(t *testing.T) {
	from := ir.T(ir.F16, 9, 7)
	in := source(t, from, true, nil)
	in.Pack = ir.Packing{Source: from, Format: quant.Cast, Part: quant.PartCodes}
	to := ir.T(ir.F32, 9, 7)
	plain := NewReader()
	floats := make([]float32, 63)
	bare := in
	bare.Pack = ir.Packing{}
	if err := plain.Floats("w", from, &bare, floats, 0); err != nil {
		t.Fatal(err)
	}
	plain.Close()
	drawn := ir.Init{Kind: ir.InitUniform, Fill: 0.25, Seed: 9}
	want := make([]float32, 5000)
	for i := range want {
		want[i] = ir.UniformAt(9, int64(i)) * 0.25
	}
	for _, n := range []int64{1, 3, 4, 4096, 1 << 20} {
		r := NewReader()
		if got, err := inStretches(r, to, &in, n); err != nil || !bytes.Equal(got, encodeFloats(floats)) {
			t.Errorf("cast in stretches of %d: %v", n, err)
		}
		if got, err := inStretches(r, ir.T(ir.F32, 5000), &drawn, n); err != nil || !bytes.Equal(got, encodeFloats(want)) {
			t.Errorf("draws in stretches of %d: %v", n, err)
		}
		r.Close()
	}
}
