package passes

import (
	"strings"
	"testing"

	"aitk/ir"
	"aitk/ir/op"
	"aitk/ir/plan"
	"aitk/ir/plan/check"
	"aitk/passes/cost"
)

// twoLayers is a training step of y = relu(x w) u with a squared loss, written by hand.
func twoLayers() *ir.Graph {
	g := ir.NewGraph("step")
	x := g.AddInput("x", ir.T(ir.F32, 4, 8))
	lr := g.AddInput("$lr", ir.T(ir.F32))
	step := g.AddInput("$step", ir.T(ir.I64))
	w, u := g.AddParam("w", ir.T(ir.F32, 8, 16)), g.AddParam("u", ir.T(ir.F32, 16, 2))
	w.Trainable, u.Trainable = true, true
	b := ir.Builder{G: g}
	ok := b.Scalar(ir.Bool, 1)
	h := b.Add(op.MatMul{}, x, w.Value)
	a := b.Add(op.Relu{}, h)
	y := b.Add(op.MatMul{}, a, u.Value)
	flat := b.Add(op.Reshape{Shape: ir.Shape{8}}, y)
	loss := b.Add(op.ReduceMean{Axes: []int64{0}}, b.Add(op.Mul{}, flat, flat))
	b.Phase = ir.Backward
	dy := b.Add(op.Mul{}, y, b.Scalar(ir.F32, 0.25))
	du := b.Add(op.MatMul{TransA: true}, a, dy)
	da := b.Add(op.MatMul{TransB: true}, dy, u.Value)
	dh := b.Add(op.ReluGrad{}, a, da)
	dw := b.Add(op.MatMul{TransA: true}, x, dh)
	b.Phase = ir.Update
	ok = b.Add(op.AllFinite{}, ok, loss)
	u.Next = b.Add(op.SGD{}, u.Value, du, lr, step, ok)
	w.Next = b.Add(op.SGD{}, w.Value, dw, lr, step, ok)
	g.Results = []ir.Result{{Name: "loss", Value: loss}, {Name: "ok", Value: ok}}
	return g
}

func TestLowerUnlimited(t *testing.T) {
	for _, prof := range []*cost.Profile{cost.CPUGeneric(), must(cost.GPU("rtx-4090"))} {
		g := twoLayers()
		literals(g)
		place, err := place([]*ir.Graph{g}, prof)
		if err != nil {
			t.Fatal(err)
		}
		p := lower(place, prof)
		if err := check.Check(p); err != nil {
			t.Errorf("%s: %v", prof.Name, err)
		}
	}
}

// A parameter larger than the staging buffers goes through them in pieces, by turns.
func TestLowerStagesInPieces(t *testing.T) {
	g := twoLayers()
	big := g.AddParam("big", ir.T(ir.F32, 3*stagingLimit/4+5))
	big.Role = ir.Buffer
	literals(g)
	place, err := place([]*ir.Graph{g}, must(cost.GPU("rtx-4090")))
	if err != nil {
		t.Fatal(err)
	}
	p := lower(place, must(cost.GPU("rtx-4090")))
	if err := check.Check(p); err != nil {
		t.Error(err)
	}
	pieces := 0
	init, _ := p.Program("init")
	for _, in := range init.Instrs {
		if c, ok := in.(*plan.Copy); ok && c.Lane == plan.H2D && p.Buffers[c.Dst.Buffer].Name == "big" {
			pieces++
		}
	}
	if pieces != 4 {
		t.Errorf("%d pieces, want 4", pieces)
	}
	if got := p.Arena(ir.Pinned).Bytes; got != 2*stagingLimit {
		t.Errorf("pinned arena of %d bytes, want two staging buffers of %d", got, stagingLimit)
	}
}

// A golden of testdata/lower is a step as the memory pass leaves it, and the instructions and buffers of the plan, as EXPLAIN shows them.
func TestLower(t *testing.T) {
	eachGolden(t, "lower", func(t *testing.T, file string, sections map[string]string) {
		prof := must(cost.GPU(strings.TrimSpace(sections["profile"])))
		place, err := place([]*ir.Graph{parseGolden(t, sections["step.ir"])}, prof)
		if err != nil {
			t.Fatal(err)
		}
		p := lower(place, prof)
		if err := check.Check(p); err != nil {
			t.Error(err)
		}
		var b strings.Builder
		if err := plan.WriteExplain(&b, p); err != nil {
			t.Fatal(err)
		}
		compareGolden(t, file, "explain", b.String(), sections["explain"])
	})
}

func must[T any](x T, err error) T {
	if err != nil {
		panic(err)
	}
	return x
}
