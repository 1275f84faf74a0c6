package cpu

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"aitk/ir"
	"aitk/ir/op"
	"aitk/ir/plan"
	"aitk/runtime"
)

// single is one op resolved on a device, with its operands in an arena of their own.
type single struct {
	kernel  runtime.Kernel
	in, out []runtime.Slice
	x       *plan.Exec
}

func newSingle(t testing.TB, dev *Device, o ir.Op, in ...ir.Type) *single {
	t.Helper()
	out, err := o.Infer(in)
	if err != nil {
		t.Fatal(err)
	}
	s := &single{x: &plan.Exec{Op: o, Scratch: plan.NoBuffer}}
	total := int64(0)
	place := func(types []ir.Type) (refs []plan.Ref, at []runtime.Slice) {
		for _, u := range types {
			refs = append(refs, plan.Ref{Type: u})
			at = append(at, runtime.Slice{Offset: total, Bytes: u.Bytes()})
			total += (u.Bytes() + 63) / 64 * 64
		}
		return refs, at
	}
	s.x.In, s.in = place(in)
	s.x.Out, s.out = place(out)
	arena, err := dev.Alloc(ir.Device, total)
	if err != nil {
		t.Fatal(err)
	}
	for i := range s.in {
		s.in[i].Arena = arena
	}
	for i := range s.out {
		s.out[i].Arena = arena
	}
	if s.kernel, err = dev.Kernel(s.x, s.in, s.out, runtime.Slice{}); err != nil {
		t.Fatal(err)
	}
	return s
}

// set fills the operands with numbers in [-1, 1) and the outputs with NaN.
func (s *single) set(t testing.TB, seed uint64) []ir.Tensor {
	r := rand.New(rand.NewPCG(seed, 0))
	var in []ir.Tensor
	for i, at := range s.in {
		x := ir.NewTensor(s.x.In[i].Type)
		for k := range x.F {
			x.F[k] = 2*r.Float64() - 1
		}
		x.Round()
		in = append(in, x)
		if err := at.Arena.Upload(at.Offset, x.Encode()); err != nil {
			t.Fatal(err)
		}
	}
	for _, at := range s.out {
		raw := at.Arena.Host()[at.Offset : at.Offset+at.Bytes]
		for k := range raw {
			raw[k] = 0xff
		}
	}
	return in
}

func (s *single) result(t testing.TB, i int) ir.Tensor {
	at := s.out[i]
	x, err := ir.DecodeTensor(s.x.Out[i].Type, at.Arena.Host()[at.Offset:at.Offset+at.Bytes])
	if err != nil {
		t.Fatal(err)
	}
	return x
}

func openTest(t testing.TB, opt Options) *Device {
	d := Open(opt)
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d
}

// TestMatMulExact: with one rounding at the end, the f32 result is the float64 sum in index order, bit for bit, whatever the tiles.
func TestMatMulExact(t *testing.T) {
	for _, c := range []struct{ m, n, k int64 }{
		{1, 1, 1}, {2, 4, 1}, {3, 5, 7}, {1, 700, 33}, {700, 1, 600}, {5, 300, 70}, {300, 5, 70}, {130, 131, 260}, {64, 10, 1030}, {9, 257, 513},
	} {
		for mode := range 4 {
			for _, d := range []ir.DType{ir.F32, ir.F64, ir.BF16, ir.F16} {
				o := op.MatMul{TransA: mode&1 != 0, TransB: mode&2 != 0}
				a, b := ir.Shape{c.m, c.k}, ir.Shape{c.k, c.n}
				if o.TransA {
					a = ir.Shape{c.k, c.m}
				}
				if o.TransB {
					b = ir.Shape{c.n, c.k}
				}
				t.Run(fmt.Sprintf("%v_%v_%v", d, a, b), func(t *testing.T) {
					dev := openTest(t, Options{Threads: 2})
					s := newSingle(t, dev, o, ir.Type{DType: d, Shape: a}, ir.Type{DType: d, Shape: b})
					in := s.set(t, 1)
					want := ir.NewTensor(s.x.Out[0].Type)
					o.Eval(in, []ir.Tensor{want})
					want.Round()
					if err := s.kernel.Run(); err != nil {
						t.Fatal(err)
					}
					got := s.result(t, 0)
					for i := range want.F {
						if got.F[i] != want.F[i] {
							t.Fatalf("element %d is %v, want %v", i, got.F[i], want.F[i])
						}
					}
				})
			}
		}
	}
}

func BenchmarkMatMul(b *testing.B) {
	for _, c := range []struct {
		name    string
		m, n, k int64
		o       op.MatMul
	}{
		{"512cubed", 512, 512, 512, op.MatMul{}},
		{"512cubedTA", 512, 512, 512, op.MatMul{TransA: true}},
		{"512cubedTB", 512, 512, 512, op.MatMul{TransB: true}},
		{"64x512x784TB", 64, 512, 784, op.MatMul{TransB: true}},
		{"512x784x64TA", 512, 784, 64, op.MatMul{TransA: true}},
		{"8x3072x768TB", 8, 3072, 768, op.MatMul{TransB: true}},
		{"32x10x128TB", 32, 10, 128, op.MatMul{TransB: true}},
		{"1x3072x768TB", 1, 3072, 768, op.MatMul{TransB: true}},
		{"1x3072x768", 1, 3072, 768, op.MatMul{}},
		{"3072x1x768", 3072, 1, 768, op.MatMul{}},
	} {
		for _, threads := range []int{1, 2} {
			b.Run(fmt.Sprintf("%s/threads=%d", c.name, threads), func(b *testing.B) {
				a, w := ir.Shape{c.m, c.k}, ir.Shape{c.k, c.n}
				if c.o.TransA {
					a = ir.Shape{c.k, c.m}
				}
				if c.o.TransB {
					w = ir.Shape{c.n, c.k}
				}
				s := newSingle(b, openTest(b, Options{Threads: threads}), c.o, ir.T(ir.F32, a...), ir.T(ir.F32, w...))
				s.set(b, 1)
				for b.Loop() {
					if err := s.kernel.Run(); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(b.N)*2*float64(c.m*c.n*c.k)/b.Elapsed().Seconds()/1e9, "GFLOP/s")
			})
		}
	}
}
