package op

import (
	"math"
	"testing"

	"aitk/ir"
)

// The known answers that the authors of Philox publish with their library (Random123, kat_vectors, philox4x32 10).
func TestPhiloxKnownAnswers(t *testing.T) {
	for _, c := range []struct {
		ctr  [4]uint32
		key  [2]uint32
		want [4]uint32
	}{
		{[4]uint32{}, [2]uint32{}, [4]uint32{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
		{[4]uint32{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, [2]uint32{0xffffffff, 0xffffffff}, [4]uint32{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
		{[4]uint32{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, [2]uint32{0xa4093822, 0x299f31d0}, [4]uint32{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
	} {
		if got := Philox4x32(c.ctr, c.key); got != c.want {
			t.Errorf("Philox4x32(%08x, %08x) = %08x, want %08x", c.ctr, c.key, got, c.want)
		}
	}
}

// Every word of seed, step, microbatch, stream and block must reach the bits: changing any of them, also above bit 32, changes them.
func TestStreamsDiffer(t *testing.T) {
	type point struct {
		seed, step, micro int64
		stream, block     uint64
	}
	bits := func(p point) [4]uint32 { return StreamBits(StepKey(p.seed, p.step, p.micro), p.stream, p.block) }
	seen := map[[4]uint32]point{}
	for _, p := range []point{
		{}, {seed: 1}, {seed: 1 << 32}, {step: 1}, {step: 1 << 32}, {micro: 1}, {micro: 1 << 32},
		{stream: 1}, {stream: 1 << 32}, {block: 1}, {block: 1 << 32}, {seed: -1}, {step: -1}, {micro: -1},
	} {
		b := bits(p)
		if q, ok := seen[b]; ok {
			t.Errorf("%+v and %+v have the same bits", p, q)
		}
		seen[b] = p
	}
}

func TestDropoutRate(t *testing.T) {
	const n = 1 << 16
	for _, ratio := range []float64{0, 0.1, 0.5, 0.9} {
		x, y := ir.NewTensor(ir.T(ir.F32, n)), ir.NewTensor(ir.T(ir.F32, n))
		for i := range x.F {
			x.F[i] = 1
		}
		Dropout{ratio, 7}.Eval([]ir.Tensor{x, sampleScalar(ir.I64, 3), sampleScalar(ir.I64, 4), sampleScalar(ir.I64, 5)}, []ir.Tensor{y})
		dropped := 0.0
		for _, v := range y.F {
			switch {
			case v == 0:
				dropped++
			case math.Abs(v-1/(1-ratio)) > 1e-12:
				t.Fatalf("ratio %v: a kept 1 became %v", ratio, v)
			}
		}
		if sigma := math.Sqrt(ratio * (1 - ratio) / n); math.Abs(dropped/n-ratio) > 4*sigma {
			t.Errorf("ratio %v: dropped %v of all", ratio, dropped/n)
		}
	}
}
