package devicetest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"aitk/ir"
	"aitk/ir/op"
	"aitk/ir/plan"
	"aitk/runtime"
)

// fuseCase is a product with its neighbours.
type fuseCase struct {
	decode *op.Dequantize // makes the second operand; nil: it is floats
	scale  []ir.Type      // of decode, and its further operands
	x, w   ir.Shape
	matmul op.MatMul
	add    ir.Shape // of what is added; nil: nothing is
	first  bool     // the addend is the Add's first operand
	over   bool     // the sum lies over the addend
	then   ir.Op    // nil: no activation
	fused  int      // instructions that become part of another
}

func fuseCases() []fuseCase {
	f := func(shape ...int64) []ir.Type { return []ir.Type{ir.T(ir.F32, shape...)} }
	code := func(format string, axis, block int64) *op.Dequantize {
		return &op.Dequantize{Format: format, Axis: axis, Block: block}
	}
	tall, wide, thin := ir.Shape{2, 68, 72}, ir.Shape{72, 200}, ir.Shape{200, 72}
	turned := op.MatMul{TransB: true}
	return []fuseCase{
		{x: ir.Shape{5, 7}, w: ir.Shape{7, 9}, add: ir.Shape{9}, then: op.Gelu{}, fused: 2},
		{x: ir.Shape{3, 70, 33}, w: ir.Shape{3, 33, 65}, add: ir.Shape{3, 70, 65}, over: true, then: op.Relu{}, fused: 2},
		{x: ir.Shape{4, 9}, w: ir.Shape{9, 6}, then: op.Gelu{Tanh: true}, fused: 1},
		{x: ir.Shape{4, 9}, w: ir.Shape{9, 6}, add: ir.Shape{4, 1}, fused: 0}, // a column is no bias
		{x: ir.Shape{9, 4}, w: ir.Shape{6, 9}, matmul: op.MatMul{TransA: true, TransB: true}, add: ir.Shape{1, 6}, first: true, then: op.LeakyRelu{Alpha: 0.1}, fused: 2},
		{x: tall, w: wide, add: ir.Shape{200}, then: op.Sigmoid{}, fused: 2},
		{x: tall, w: thin, matmul: turned, add: ir.Shape{2, 68, 200}, first: true, over: true, fused: 1},
		{x: ir.Shape{72, 136}, w: wide, matmul: op.MatMul{TransA: true}, then: op.Tanh{}, fused: 1},
		{x: ir.Shape{72, 136}, w: thin, matmul: op.MatMul{TransA: true, TransB: true}, add: ir.Shape{1}, then: op.Clip{Min: -1, Max: 2}, fused: 2},
		{decode: code("int8", 0, 0), scale: f(200), x: tall, w: thin, matmul: turned, add: ir.Shape{200}, then: op.Gelu{}, fused: 3},
		{decode: code("int8", 0, 0), scale: f(72), x: tall, w: wide, fused: 1},
		{decode: code("int8", 1, 0), scale: f(200), x: tall, w: wide, then: op.Softplus{}, fused: 2},
		{decode: code("int8", 0, 0), scale: f(), x: tall, w: thin, matmul: turned, fused: 1},
		{decode: code("uint8", 1, 16), scale: append(f(200, 5), ir.T(ir.U8, 200, 5)), x: tall, w: thin, matmul: turned, fused: 1},
		{decode: code("fp8", 0, 16), scale: f(13, 72), x: tall, w: thin, matmul: turned, fused: 1},
		{decode: code("int4", 0, 32), scale: f(3, 200), x: tall, w: wide, fused: 1},
		{decode: code("uint4", 1, 32), scale: append(f(72, 7), ir.T(ir.I4, 72, 7)), x: tall, w: wide, fused: 1},
		{decode: code("nf4", 1, 64), scale: f(200, 2), x: tall, w: thin, matmul: turned, add: ir.Shape{200}, fused: 2},
		{decode: code("nf4", 1, 64), scale: []ir.Type{ir.T(ir.I8, 200, 2), ir.T(ir.F32, 2), ir.T(ir.F32)}, x: tall, w: thin, matmul: turned, fused: 1},
		{decode: code("nf4", 0, 3), scale: f(3, 5), x: ir.Shape{3, 7}, w: ir.Shape{7, 5}, add: ir.Shape{5}, fused: 2},
		{decode: code("int8", 1, 5), scale: f(7, 2), x: ir.Shape{7, 3}, w: ir.Shape{7, 9}, matmul: op.MatMul{TransA: true}, fused: 1},
	}
}

// fuse runs chains as one kernel where the device is a runtime.Fuser, and each op by itself, and wants the same bits.
func (s *suite) fuse(t *testing.T) {
	dev := s.open(t)
	_, ok := dev.(runtime.Fuser)
	if err := dev.Close(); err != nil {
		t.Fatal(err)
	}
	if !ok {
		t.Skip("the device runs every op by itself")
	}
	for i, c := range fuseCases() {
		for _, d := range append([]ir.DType{ir.F32}, s.opt.DTypes...) {
			t.Run(fmt.Sprintf("%d %v", i, d), func(t *testing.T) {
				for _, poison := range []bool{true, false} {
					want, _ := s.runFused(t, c, d, runtime.Options{Apart: true, Poison: poison})
					got, n := s.runFused(t, c, d, runtime.Options{Poison: poison})
					if !slices.Equal(got, want) {
						t.Errorf("the bits differ from those of the ops apart")
					}
					if n != c.fused {
						t.Errorf("%d instructions are fused, want %d", n, c.fused)
					}
				}
			})
		}
	}
}

// runFused runs a case twice and gives the result's bytes and how many instructions were fused.
func (s *suite) runFused(t *testing.T, c fuseCase, d ir.DType, opt runtime.Options) ([]byte, int) {
	t.Helper()
	dev := s.open(t)
	m := newMaker(dev.Name())
	m.program("step")
	inputs := map[string]ir.Tensor{}
	r := rand.New(rand.NewPCG(3, 4))
	input := func(u ir.Type) plan.Ref {
		name := fmt.Sprint(len(inputs))
		x := ir.NewTensor(u)
		for k := range x.F {
			x.F[k] = r.Float64() - 0.4
		}
		for k := range x.I {
			x.I[k] = r.Int64N(16) - 8
			if u.DType == ir.U8 {
				x.I[k] += 8 + 16*r.Int64N(7)
			}
		}
		x.Round()
		inputs[name] = x
		return m.input(name, u)
	}
	x := input(ir.Type{DType: d, Shape: c.x})
	var w, addend plan.Ref
	var codes []plan.Ref
	if c.decode != nil {
		u := ir.Type{DType: map[string]ir.DType{"int8": ir.I8, "uint8": ir.U8, "fp8": ir.U8, "int4": ir.I4, "uint4": ir.I4, "nf4": ir.I4}[c.decode.Format], Shape: c.w}
		codes = append(codes, input(u))
		for _, u := range c.scale {
			codes = append(codes, input(u))
		}
	} else {
		w = input(ir.Type{DType: d, Shape: c.w})
	}
	if c.add != nil {
		addend = input(ir.Type{DType: d, Shape: c.add})
		if c.over { // inputs are not written over
			addend, _ = m.copy(plan.Compute, plan.CopySwapIn, ir.Device, addend)
		}
	}
	if c.decode != nil {
		o := *c.decode
		o.To = d
		w = m.mustExec(o, codes...)
	}
	y := m.mustExec(c.matmul, x, w)
	m.die(w)
	if c.add != nil {
		in, at := []plan.Ref{y, addend}, 1
		if c.first {
			in[0], in[1], at = addend, y, 0
		}
		over := -1
		if c.over {
			over = at
		}
		out, err := m.exec(op.Add{}, []int{over}, in...)
		if err != nil {
			t.Fatal(err)
		}
		m.die(y)
		y = out[0]
	}
	if c.then != nil {
		z := m.mustExec(c.then, y)
		m.die(y)
		y = z
	}
	// something follows: the values between are dead by then
	m.result("y", m.mustExec(op.Neg{}, y))
	e, err := runtime.Load(m.plan(), dev, opt)
	if err != nil {
		dev.Close()
		t.Fatal(err)
	}
	defer func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	}()
	out := make([]byte, y.Type.Bytes())
	for range 2 {
		for name, x := range inputs {
			if err := e.SetInput("step", name, x.Encode()); err != nil {
				t.Fatal(err)
			}
		}
		if err := e.Run(context.Background(), "step"); err != nil {
			t.Fatal(err)
		}
		if err := e.Result("step", "y", out); err != nil {
			t.Fatal(err)
		}
	}
	return out, e.Fused("step")
}
