package passes_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"aitk/ir"
	"aitk/ir/gen"
	"aitk/ir/op"
	"aitk/passes"
	"aitk/runtime/ref"
)

// outcome is all that a run of a graph leaves behind, by name.
type outcome map[string]ir.Tensor

func evaluate(t *testing.T, g *ir.Graph, inputs, params map[string]ir.Tensor) outcome {
	t.Helper()
	results, changed, err := ref.Run(g, inputs, params)
	if err != nil {
		t.Fatalf("%v\n%v", err, g)
	}
	all := outcome{}
	for name, x := range results {
		all["result "+name] = x
	}
	for name, x := range changed {
		all["parameter "+name] = x
	}
	return all
}

// differs says where got misses something of want or differs from it: bit by bit, or with a tolerance relative to the largest element.
func differs(want, got outcome, tolerance float64) error {
	for name, x := range want {
		y, ok := got[name]
		switch {
		case !ok:
			return fmt.Errorf("%s is gone", name)
		case !x.Type.Equal(y.Type):
			return fmt.Errorf("%s is %v, was %v", name, y.Type, x.Type)
		}
		for i := range x.I {
			if x.I[i] != y.I[i] {
				return fmt.Errorf("%s[%d] is %d, was %d", name, i, y.I[i], x.I[i])
			}
		}
		scale := 1.0
		for _, f := range x.F {
			scale = max(scale, math.Abs(f))
		}
		for i, f := range x.F {
			same := math.Float64bits(f) == math.Float64bits(y.F[i])
			if !same && !(tolerance > 0 && math.Abs(f-y.F[i]) <= tolerance*scale) {
				return fmt.Errorf("%s[%d] is %v, was %v", name, i, y.F[i], f)
			}
		}
	}
	return nil
}

// randomGraphs calls test with graphs of many kinds.
func randomGraphs(t *testing.T, n int, o gen.Options, test func(t *testing.T, seed uint64, g *ir.Graph)) {
	t.Helper()
	for seed := range uint64(n) {
		o.Seed = seed
		o.Nodes = 10 + int(seed%5)*15
		g := gen.Graph(o)
		if err := ir.Verify(g); err != nil {
			t.Fatalf("seed %d: the generator: %v", seed, err)
		}
		test(t, seed, g)
		if t.Failed() {
			t.Fatalf("seed %d:\n%v", seed, g)
		}
	}
}

// Every pass that claims to leave results alone is held to it, alone and after those before it.
func TestContracts(t *testing.T) {
	var simple []passes.Pass
	for _, p := range passes.Pipeline() {
		if p.Preserves == passes.Bits || p.Preserves == passes.Values {
			if p.Needs == 0 {
				simple = append(simple, p)
			}
		}
	}
	if len(simple) < 9 {
		t.Fatalf("only %d passes to hold to their contract", len(simple))
	}
	randomGraphs(t, 60, gen.Options{DType: ir.F64, Params: true, Updates: true}, func(t *testing.T, seed uint64, g *ir.Graph) {
		inputs := gen.Inputs(g, seed)
		params, err := gen.Params(g)
		if err != nil {
			t.Fatal(err)
		}
		want := evaluate(t, g, inputs, params)
		hold := func(g *ir.Graph, list []passes.Pass) {
			tolerance := 0.0
			name := ""
			for _, p := range list {
				name += " " + p.Name
				if p.Preserves == passes.Values {
					tolerance = 1e-9
				}
			}
			ctx := &passes.Context{Options: passes.Options{VerifyEach: true}}
			if err := passes.Run(ctx, g, list, passes.Order()); err != nil {
				t.Errorf("%s: %v", name, err)
				return
			}
			if err := differs(want, evaluate(t, g, inputs, params), tolerance); err != nil {
				t.Errorf("%s: %v\n%v", name, err, g)
			}
		}
		for _, p := range simple {
			hold(g.Clone(), []passes.Pass{p})
		}
		hold(g.Clone(), simple)
	})
}

// Simplifying twice changes nothing more than simplifying once.
func TestFixedPoint(t *testing.T) {
	list := pick(t, []string{"canonicalize", "fold", "cse", "dce"})
	randomGraphs(t, 60, gen.Options{Params: true, Updates: true}, func(t *testing.T, seed uint64, g *ir.Graph) {
		text := func() string {
			for range 3 { // a folded literal may make a rule fit
				if err := passes.Run(&passes.Context{}, g, list, passes.Order()); err != nil {
					t.Fatal(err)
				}
			}
			g.Renumber()
			return g.String()
		}
		once := text()
		if twice := text(); once != twice {
			t.Errorf("once:\n%s\ntwice:\n%s", once, twice)
		}
	})
}

// Gradients agree with central differences along a random direction. Where the two one-sided differences disagree the function has a
// kink and the seed says nothing.
func TestGradientsOfRandomGraphs(t *testing.T) {
	checked := 0
	randomGraphs(t, 360, gen.Options{DType: ir.F64, Params: true, Loss: true}, func(t *testing.T, seed uint64, g *ir.Graph) {
		inputs := gen.Inputs(g, seed)
		params, err := gen.Params(g)
		if err != nil {
			t.Fatal(err)
		}
		if blindSpot(g) {
			return
		}
		before := evaluate(t, g, inputs, params)
		forward := g.Clone()
		ctx := &passes.Context{Options: passes.Options{VerifyEach: true, GradResult: true}}
		ctx.Assume(passes.HasLoss | passes.Split)
		if err := passes.Run(ctx, g, pick(t, []string{"autodiff"}), passes.Order()); err != nil {
			if ir.KindOf(err) == ir.Usage || ir.KindOf(err) == ir.Unsupported {
				g.Nodes = forward.Nodes
				return
			}
			t.Error(err)
			return
		}
		after := evaluate(t, g, inputs, params)
		if err := differs(before, after, 0); err != nil {
			t.Errorf("autodiff: %v", err)
		}
		r := rand.New(rand.NewPCG(seed, 7))
		direction, slope := map[string][]float64{}, 0.0
		for _, p := range g.Params {
			grad, ok := after["result grad/"+p.Name]
			if !ok {
				continue
			}
			d := make([]float64, len(grad.F))
			for i := range d {
				d[i] = r.NormFloat64()
				slope += d[i] * grad.F[i]
			}
			direction[p.Name] = d
		}
		const h = 1e-6
		at := func(h float64) float64 {
			moved := map[string]ir.Tensor{}
			for name, x := range params {
				y := ir.Tensor{Type: x.Type, F: append([]float64(nil), x.F...), I: x.I}
				for i, d := range direction[name] {
					y.F[i] += h * d
				}
				moved[name] = y
			}
			return evaluate(t, forward, inputs, moved)["result loss"].F[0]
		}
		up, mid, down := at(h), at(0), at(-h)
		left, right := (mid-down)/h, (up-mid)/h
		scale := 1 + math.Abs(slope) + math.Abs(left)
		if math.Abs(left-right) > 1e-3*scale {
			return
		}
		checked++
		if math.Abs((left+right)/2-slope) > 1e-4*scale {
			t.Errorf("slope %v, differences %v and %v", slope, left, right)
		}
	})
	if checked < 80 {
		t.Errorf("only %d graphs were smooth enough to say anything", checked)
	}
}

// blindSpot tells whether something that depends on a trainable parameter is read where no gradient comes from by definition, which differences
// do not know: running statistics by BatchNormInference, and the second output of Attention by anybody.
func blindSpot(g *ir.Graph) bool {
	varied := make([]bool, g.NumValues())
	for _, p := range g.Params {
		varied[p.ID] = p.Trainable
	}
	for _, n := range g.Nodes {
		for i, v := range n.In {
			if !varied[v.ID] {
				continue
			}
			if _, ok := n.Op.(op.BatchNormInference); ok && i >= 3 {
				return true
			}
			if v.Def != nil && v.Index == 1 {
				if _, ok := v.Def.Op.(op.Attention); ok {
					return true
				}
			}
			for _, y := range n.Out {
				varied[y.ID] = true
			}
		}
	}
	return false
}
