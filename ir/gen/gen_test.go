package gen

import (
	"fmt"
	"math"
	"testing"

	"aitk/ir"
	"aitk/ir/op"
	"aitk/runtime/ref"
)

// notMade are ops that the generator leaves to passes, with the reason. Everything else in op.All must turn up.
var notMade = map[string]string{
	"SwapOut": "memory passes", "SwapWait": "memory passes", "SwapIn": "memory passes",
	"RoundFloat": "its gradient is no slope", "Dequantize": "codes are parameters, which pass quantize makes",
	"AttentionGrad": "autodiff", "AttentionMaskGrad": "autodiff",
	"TanhGrad": "autodiff", "ErfGrad": "autodiff", "SigmoidGrad": "autodiff", "ReluGrad": "autodiff", "GeluGrad": "autodiff", "SwishGrad": "autodiff",
	"GatherNDGrad": "autodiff", "ConvGradInput": "autodiff", "ConvGradWeight": "autodiff", "MaxPoolGrad": "autodiff", "AvgPoolGrad": "autodiff",
	"SoftmaxGrad": "autodiff", "LogSoftmaxGrad": "autodiff", "LayerNormGrad": "autodiff", "RMSNormGrad": "autodiff", "BatchNormGrad": "autodiff",
	"BatchNormInferenceGrad": "autodiff", "SoftmaxCrossEntropyGrad": "autodiff",
}

func options(seed uint64) Options {
	o := Options{Seed: seed, Nodes: 5 + int(seed%40), Params: seed%2 == 0, Updates: seed%4 == 0, Loss: seed%3 == 0, NoRandom: seed%5 == 0}
	o.DType = []ir.DType{ir.F32, ir.F32, ir.F64, ir.F16, ir.BF16}[seed%7%5]
	return o
}

// TestGraphs makes many graphs and holds each against what the package promises.
func TestGraphs(t *testing.T) {
	made := map[string]int{}
	multi, views, deep := 0, 0, 0
	for seed := range uint64(400) {
		o := options(seed)
		g := Graph(o)
		if err := ir.Verify(g); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if len(g.Nodes) < o.Nodes || o.Loss != (g.Result("loss") != nil) || o.Params != (len(g.Params) > 0) && !o.Params {
			t.Errorf("seed %d: %d nodes, %d parameters, %v", seed, len(g.Nodes), len(g.Params), g.Results)
		}
		if text := g.String(); text != Graph(o).String() {
			t.Errorf("seed %d: two graphs for the same options", seed)
		}
		for _, n := range g.Nodes {
			made[ir.OpName(n.Op)]++
			if len(n.Out) > 1 {
				multi++
			}
			if ir.ViewOf(n) != nil {
				views++
			}
			for _, v := range n.In {
				if v.Def != nil && n.ID-v.Def.ID > 10 {
					deep++
				}
			}
			for _, v := range n.Out {
				if v.Type.Elems() > 256 {
					t.Errorf("seed %d: %v", seed, v.Type)
				}
			}
		}
		finite(t, g, seed)
	}
	for _, most := range []int64{1, 64, 100, 4096} { // no size makes the generator stumble
		if g := Graph(Options{Seed: uint64(most), Nodes: 2000, Params: true, Updates: true, Loss: true, MaxElems: most}); ir.Verify(g) != nil {
			t.Errorf("at most %d elements: %v", most, ir.Verify(g))
		}
	}
	if multi == 0 || views == 0 || deep == 0 {
		t.Errorf("%d nodes with several outputs, %d views, %d long lives", multi, views, deep)
	}
	for _, o := range op.All() {
		name := ir.OpName(o)
		if _, left := notMade[name]; left == (made[name] > 0) {
			t.Errorf("%s: made %d times", name, made[name])
		}
	}
}

// finite runs two steps of a graph and looks at every result and parameter.
func finite(t *testing.T, g *ir.Graph, seed uint64) {
	t.Helper()
	params, err := Params(g)
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range g.Nodes { // every value is looked at, not only results
		for _, x := range v.Out {
			g.Results = append(g.Results, ir.Result{Name: fmt.Sprintf("all%d", x.ID), Value: x})
		}
	}
	x := ref.New(params)
	for step := range uint64(2) {
		results, err := x.Run(g, Inputs(g, seed+step))
		if err != nil {
			t.Fatalf("seed %d: %v\n%v", seed, err, g)
		}
		for name, r := range results {
			for _, f := range r.F {
				if math.IsNaN(f) || math.IsInf(f, 0) || math.Abs(f) > 1.1*most*most {
					t.Fatalf("seed %d: %s is %v\n%v", seed, name, f, g)
				}
			}
		}
	}
}

// FuzzParse reads texts over the real vocabulary, whose shape rules must stand any attributes.
func FuzzParse(f *testing.F) {
	for seed := range uint64(10) {
		o := options(seed)
		o.Nodes = 4
		f.Add(Graph(o).String())
	}
	for _, o := range op.All() {
		for _, s := range o.(ir.Sampler).Samples() {
			f.Add(sampleText(s))
		}
	}
	vocab := op.Vocabulary()
	f.Fuzz(func(t *testing.T, text string) {
		g, err := ir.Parse(text, vocab)
		if err != nil {
			if b := new(ir.Bug); asBug(err, &b) {
				t.Fatal(err)
			}
			return
		}
		once := g.String()
		h, err := ir.Parse(once, vocab)
		if err != nil {
			t.Fatalf("cannot read what was printed: %v\n%s", err, once)
		}
		if twice := h.String(); once != twice {
			t.Fatalf("printed\n%s\nthen\n%s", once, twice)
		}
		for _, n := range g.Nodes { // nothing that is asked of a well-typed node may panic either
			in, out := types(n.In), types(n.Out)
			ir.WorkOf(n.Op, in, out)
			ir.AliasesOf(n.Op)
		}
	})
}
