package cpu

import (
	"testing"

	"aitk/ir"
	"aitk/ir/op"
)

// BenchmarkAttention times attention beside the two products that it holds.
func BenchmarkAttention(b *testing.B) {
	dev := openTest(b, Options{})
	for _, s := range []struct {
		name                string
		heads, length, size int64
	}{{"8x128x64", 8, 128, 64}, {"8x512x64", 8, 512, 64}, {"1x512x512", 1, 512, 512}} {
		q := ir.T(ir.F32, 1, s.heads, s.length, s.size)
		p := ir.T(ir.F32, 1, s.heads, s.length, s.length)
		l := ir.T(ir.F32, 1, s.heads, s.length)
		for _, c := range []struct {
			name string
			o    ir.Op
			in   []ir.Type
		}{
			{"forward", op.Attention{Scale: 0.1}, []ir.Type{q, q, q}},
			{"backward", op.AttentionGrad{Scale: 0.1}, []ir.Type{q, q, q, q, l, q}},
			{"scores alone", op.MatMul{TransB: true}, []ir.Type{q, q}},
			{"values alone", op.MatMul{}, []ir.Type{p, q}},
			{"softmax alone", op.Softmax{Axis: 3}, []ir.Type{p}},
		} {
			b.Run(s.name+"/"+c.name, func(b *testing.B) {
				k := newSingle(b, dev, c.o, c.in...)
				k.set(b, 1)
				for b.Loop() {
					if err := k.kernel.Run(); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
