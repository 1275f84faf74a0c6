package cpu

import (
	"fmt"
	"testing"

	"aitk/ir"
	"aitk/ir/op"
)

func square(stride, pad, group int64) op.Conv {
	return op.Conv{Strides: []int64{stride, stride}, Dilations: []int64{1, 1}, Pads: []int64{pad, pad, pad, pad}, Group: group}
}

func BenchmarkConv(b *testing.B) {
	for _, c := range []struct {
		name string
		conv op.Conv
		x, w ir.Shape
	}{
		{"8x64x56x56k3", square(1, 1, 1), ir.Shape{8, 64, 56, 56}, ir.Shape{64, 64, 3, 3}},
		{"64x1x28x28k5", square(1, 2, 1), ir.Shape{64, 1, 28, 28}, ir.Shape{16, 1, 5, 5}},
		{"64x16x14x14k5", square(1, 2, 1), ir.Shape{64, 16, 14, 14}, ir.Shape{32, 16, 5, 5}},
		{"32x8x8x8k3", square(1, 1, 1), ir.Shape{32, 8, 8, 8}, ir.Shape{16, 8, 3, 3}},
		{"8x64x28x28k3s2", square(2, 1, 1), ir.Shape{8, 64, 28, 28}, ir.Shape{128, 64, 3, 3}},
		{"8x64x28x28k3depthwise", square(1, 1, 64), ir.Shape{8, 64, 28, 28}, ir.Shape{64, 1, 3, 3}},
		{"8x64x28x28k1", square(1, 0, 1), ir.Shape{8, 64, 28, 28}, ir.Shape{64, 64, 1, 1}},
	} {
		out, err := c.conv.Infer([]ir.Type{ir.T(ir.F32, c.x...), ir.T(ir.F32, c.w...)})
		if err != nil {
			b.Fatal(err)
		}
		x, w, y := ir.T(ir.F32, c.x...), ir.T(ir.F32, c.w...), out[0]
		o := c.conv
		flops := 2 * float64(y.Elems()*c.w[1:].Elems())
		for _, pass := range []struct {
			name string
			o    ir.Op
			in   []ir.Type
		}{
			{"forward", o, []ir.Type{x, w}},
			{"input", op.ConvGradInput{Strides: o.Strides, Dilations: o.Dilations, Pads: o.Pads, Group: o.Group, Shape: c.x}, []ir.Type{w, y}},
			{"weight", op.ConvGradWeight{Strides: o.Strides, Dilations: o.Dilations, Pads: o.Pads, Group: o.Group, Shape: c.w}, []ir.Type{x, y}},
		} {
			for _, threads := range []int{1, 2} {
				b.Run(fmt.Sprintf("%s/%s/threads=%d", c.name, pass.name, threads), func(b *testing.B) {
					s := newSingle(b, openTest(b, Options{Threads: threads}), pass.o, pass.in...)
					s.set(b, 1)
					for b.Loop() {
						if err := s.kernel.Run(); err != nil {
							b.Fatal(err)
						}
					}
					b.ReportMetric(float64(b.N)*flops/b.Elapsed().Seconds()/1e9, "GFLOP/s")
				})
			}
		}
	}
}
