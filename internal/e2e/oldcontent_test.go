package e2e

import (
	"bytes"
	"context"
	"testing"

	"aitk/ir"
	"aitk/ir/op"
	plancheck "aitk/ir/plan/check"
	"aitk/passes"
	"aitk/passes/cost"
	"aitk/runtime"
	"aitk/runtime/cpu"
)

// A program may return the old content of a parameter that it changes, as it is or reshaped, and read it behind the change; other programs see the new one.
func TestOldContentIsKept(t *testing.T) {
	old := ir.Tensor{Type: ir.T(ir.F32, 2, 2), F: []float64{1, 4, 9, 16}}
	batch := ir.Tensor{Type: old.Type, F: []float64{3, 4, 5, 6}}
	g := ir.NewGraph("step")
	x := g.AddInput("x", batch.Type)
	p := g.AddParam("p", old.Type)
	p.Role, p.Init = ir.Statistic, ir.Init{Kind: ir.InitLiteral, Literal: old.Encode()}
	b := &ir.Builder{G: g}
	flat := ir.Shape{4}
	before := b.Add(op.Reshape{Shape: flat}, p.Value)
	p.Next = b.Add(op.MovingAverage{Momentum: 0.5}, p.Value, x)
	behind := b.Add(op.Reshape{Shape: flat}, p.Value)
	g.Results = []ir.Result{
		{Name: "itself", Value: p.Value}, {Name: "flat", Value: before}, {Name: "sqrt", Value: b.Add(op.Sqrt{}, p.Value)},
		{Name: "sqrt of flat", Value: b.Add(op.Sqrt{}, before)}, {Name: "sqrt of later flat", Value: b.Add(op.Sqrt{}, behind)}, {Name: "next", Value: p.Next},
	}
	want := [][][]float64{
		{{1, 4, 9, 16}, {1, 4, 9, 16}, {1, 2, 3, 4}, {1, 2, 3, 4}, {1, 2, 3, 4}, {2, 4, 7, 11}},
		{{2, 4, 7, 11}, {2, 4, 7, 11}, nil, nil, nil, {2.5, 4, 6, 8.5}},
	}
	check(t, ir.Verify(g))
	ctx := &passes.Context{Programs: []*ir.Graph{g}}
	ctx.Assume(passes.Scheduled)
	plan, err := passes.Compile(ctx, passes.MemoryOptions{Profile: cost.CPUGeneric(), BudgetBytes: -1, HostBudgetBytes: -1})
	check(t, err)
	mem := runtime.NewMemory(plan)
	exe, err := runtime.Load(plan, cpu.Open(cpu.Options{}), runtime.Options{Storage: mem, Poison: true})
	check(t, err)
	defer exe.Close()
	check(t, exe.Run(context.Background(), "init"))
	for step, results := range want {
		check(t, exe.SetInput("step", "x", batch.Encode()))
		check(t, exe.Run(context.Background(), "step"))
		for i, r := range g.Results {
			if results[i] == nil {
				continue
			}
			got := make([]byte, r.Value.Type.Bytes())
			check(t, exe.Result("step", r.Name, got))
			if x := (ir.Tensor{Type: r.Value.Type, F: results[i]}); !bytes.Equal(got, x.Encode()) {
				t.Errorf("step %d: %s is %v, want %v", step, r.Name, floats(t, r.Value.Type, got), results[i])
			}
		}
	}
}

// What cannot be written over the old content that it reads has a plan without a budget and one in the smallest, with the same bits.
func TestUpdatesApartFromTheOldContent(t *testing.T) {
	g := ir.NewGraph("step")
	b := &ir.Builder{G: g}
	x := g.AddInput("x", ir.T(ir.F32, 16, 16))
	u, v, w := g.AddParam("u", x.Type), g.AddParam("v", x.Type), g.AddParam("w", x.Type)
	for _, p := range []*ir.Param{u, v, w} {
		p.Role, p.Init = ir.Statistic, ir.Init{Kind: ir.InitLiteral, Literal: make([]byte, x.Type.Bytes())}
	}
	e := b.Add(op.Exp{}, x)
	s := b.Add(op.Sigmoid{}, b.Add(op.MatMul{}, e, e))
	w.Next = b.Add(op.MatMul{}, w.Value, w.Value)
	v.Next = b.Add(op.Add{}, e, v.Value) // may take the place of e, which dies here
	u.Next = b.Add(op.Add{}, s, b.Add(op.Transpose{Perm: []int64{1, 0}}, u.Value))
	check(t, ir.Verify(g))
	ctx := &passes.Context{Programs: []*ir.Graph{g}}
	ctx.Assume(passes.Scheduled)
	o := passes.MemoryOptions{Profile: cost.CPUGeneric(), BudgetBytes: -1, HostBudgetBytes: -1}
	least, _, err := passes.Smallest(ctx, o)
	check(t, err)
	var want []byte
	for _, budget := range []int64{-1, least} {
		o.BudgetBytes = budget
		p, err := passes.Compile(ctx, o)
		check(t, err)
		check(t, plancheck.Check(p))
		got := trace(t, p, 1, cpu.Options{})
		if want == nil {
			want = got
		}
		if !bytes.Equal(got, want) {
			t.Errorf("other bits in %d bytes", budget)
		}
	}
}
