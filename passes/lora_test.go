package passes_test

import (
	"strings"
	"testing"

	"aitk/ir"
	"aitk/ir/op"
	"aitk/passes"
)

// run takes text through the whole front half.
func front(t *testing.T, text string, settings ...passes.Setting) *passes.Context {
	t.Helper()
	g, err := ir.Parse(text, op.Vocabulary())
	if err != nil {
		t.Fatal(err)
	}
	ctx := &passes.Context{}
	ctx.Options.VerifyEach = true
	for _, s := range settings {
		if err := ctx.Options.Set(s.Key, s.Value); err != nil {
			t.Fatal(err)
		}
	}
	if err := passes.Run(ctx, g, passes.Pipeline(), passes.Order()); err != nil {
		t.Fatal(err)
	}
	return ctx
}

// Beside frozen weights nothing is kept or made that only they would need: no gradient, no optimizer state, and no backward reader of what
// goes into a frozen layer.
func TestFrozenWeightsCostNothing(t *testing.T) {
	const text = `graph @net
%0 = input "x" : f32[8,64]
%1 = param "fc1.weight" trainable weight : f32[48,64]
%2 = param "fc2.weight" trainable weight : f32[32,48]
%3 = param "fc3.weight" trainable weight : f32[16,32]
%4 "h1" = MatMul{transB=true} %0 %1
%5 "h2" = MatMul{transB=true} %4 %2
%6 "h3" = MatMul{transB=true} %5 %3
result "y" %6`
	loss := passes.Setting{Key: "loss", Value: "mse"}
	read := func(ctx *passes.Context, name string) (backward bool) {
		for _, n := range ctx.Program("step").Nodes {
			for _, v := range n.In {
				backward = backward || n.Phase == ir.Backward && v.Name == name
			}
		}
		return backward
	}
	full := front(t, text, loss)
	if !read(full, "h1") || !read(full, "h2") {
		t.Fatal("training all weights does not read their inputs again: the comparison means nothing")
	}
	ctx := front(t, text, loss, passes.Setting{Key: "lora", Value: "fc1:rank=2"}, passes.Setting{Key: "quantize", Value: "*:int8"})
	for _, h := range []string{"h1", "h2"} {
		if read(ctx, h) {
			t.Errorf("the backward half reads %s, which only a frozen weight's gradient needs, in\n%v", h, ctx.Program("step"))
		}
	}
	for _, p := range ctx.Program("step").Params {
		adapter := p.Of != "" && (p.Name == "fc1.lora_A.weight" || p.Name == "fc1.lora_B.weight")
		switch {
		case p.Role == ir.Moment && p.Of != "fc1.lora_A.weight" && p.Of != "fc1.lora_B.weight":
			t.Errorf("optimizer state %q of %q", p.Name, p.Of)
		case p.Role == ir.Weight && (p.Next != nil) != adapter:
			t.Errorf("%q is updated: %v", p.Name, p.Next != nil)
		}
	}
}

// The same seed draws the same adapters, another one others, and what one weight draws does not depend on the others.
func TestAdapterDraws(t *testing.T) {
	const text = `graph @net
%0 = input "x" : f32[8,64]
%1 = param "fc1.weight" trainable weight : f32[64,64]
%2 = param "fc2.weight" trainable weight : f32[32,64]
%3 = MatMul{transB=true} %0 %1
%4 = MatMul{transB=true} %3 %2
result "y" %4`
	draw := func(seed, glob string) ir.Init {
		ctx := front(t, text, passes.Setting{Key: "loss", Value: "mse"}, passes.Setting{Key: "lora", Value: glob}, passes.Setting{Key: "seed", Value: seed})
		return ctx.Program("step").Param("fc2.lora_A.weight").Init
	}
	one := draw("1", "*")
	if one.Kind != ir.InitUniform || one.Fill != 0.125 {
		t.Errorf("A begins as %+v", one)
	}
	if draw("1", "*").Seed != one.Seed || draw("1", "fc2").Seed != one.Seed {
		t.Error("the same weight draws otherwise")
	}
	if draw("2", "*").Seed == one.Seed {
		t.Error("two seeds draw the same")
	}
}

// A weight that something else reads without the adapter is marked, since merging would change what that reads; rank 0 for all is refused.
func TestSharedWeightAndNoAdapter(t *testing.T) {
	const text = `graph @net
%0 = input "ids" : i64[8]
%1 = param "wte.weight" trainable weight : f32[16,8]
%2 = param "fc.weight" trainable weight : f32[8,8]
%3 = Gather{axis=0} %1 %0
%4 = MatMul{transB=true} %3 %2
%5 = MatMul{transB=true} %4 %1
result "y" %5`
	ctx := front(t, text, passes.Setting{Key: "loss", Value: "mse"}, passes.Setting{Key: "lora", Value: "*:rank=2"})
	shared := map[string]bool{}
	for _, a := range ctx.Adapters {
		shared[a.Weight] = a.Shared
	}
	if len(shared) != 2 || !shared["wte.weight"] || shared["fc.weight"] {
		t.Errorf("shared: %v", shared)
	}
	g, err := ir.Parse(text, op.Vocabulary())
	if err != nil {
		t.Fatal(err)
	}
	none := &passes.Context{}
	if err := none.Options.Set("lora", "*:rank=0"); err != nil {
		t.Fatal(err)
	}
	if err := passes.Run(none, g, passes.Pipeline(), passes.Order()); ir.KindOf(err) != ir.Usage || !strings.Contains(err.Error(), "rank=0 leaves no adapter") {
		t.Error(err)
	}
}
