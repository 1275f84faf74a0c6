package e2e

import (
	"math/rand/v2"
	"testing"

	"aitk/internal/adapter"
	"aitk/ir"
	"aitk/ir/op"
	"aitk/passes"
	"aitk/runtime/ref"
)

// Whatever way a weight stands in the graph, the model with an adapter computes what the model with the merged weight does.
func TestAdaptersAgreeWithMergedWeights(t *testing.T) {
	const x = "%0 = input \"x\" : f32[2,6,5]\n"
	for name, text := range map[string]string{
		"stored out,in":   x + "%1 = param \"w.weight\" trainable weight : f32[7,5]\n%2 = MatMul{transB=true} %0 %1",
		"stored in,out":   x + "%1 = param \"w.weight\" trainable weight : f32[5,7]\n%2 = MatMul %0 %1",
		"turned":          x + "%1 = param \"w.weight\" trainable weight : f32[7,5]\n%3 = Transpose{perm=[1,0]} %1\n%2 = MatMul %0 %3",
		"square in,out":   x + "%1 = param \"w.weight\" trainable weight : f32[5,5]\n%2 = MatMul %0 %1",
		"first":           x + "%1 = param \"w.weight\" trainable weight : f32[4,6]\n%2 = MatMul %1 %0",
		"first, turned":   x + "%1 = param \"w.weight\" trainable weight : f32[6,6]\n%2 = MatMul{transA=true} %1 %0",
		"x turned":        x + "%1 = param \"w.weight\" trainable weight : f32[6,3]\n%2 = MatMul{transA=true} %0 %1",
		"x turned, right": x + "%1 = param \"w.weight\" trainable weight : f32[4,5]\n%2 = MatMul{transB=true} %1 %0",
		"convolution":     "%0 = input \"x\" : f32[2,3,7,6]\n%1 = param \"w.weight\" trainable weight : f32[4,3,3,2]\n%2 = Conv{strides=[2,1],dilations=[1,2],pads=[1,0,0,1],group=1} %0 %1",
		"convolution, 1":  "%0 = input \"x\" : f32[2,3,9]\n%1 = param \"w.weight\" trainable weight : f32[4,3,3]\n%2 = Conv{strides=[1],dilations=[1],pads=[1,1],group=1} %0 %1",
	} {
		t.Run(name, func(t *testing.T) { orientation(t, "graph @g\n"+text+"\nresult \"y\" %2") })
	}
}

func orientation(t *testing.T, text string) {
	plain, err := ir.Parse(text, op.Vocabulary())
	check(t, err)
	g := plain.Clone()
	ctx := &passes.Context{}
	check(t, ctx.Options.Set("lora", "w:rank=2,alpha=3"))
	var lora []passes.Pass
	for _, p := range passes.Pipeline() {
		if p.Name == "lora" {
			lora = append(lora, p)
		}
	}
	check(t, passes.Run(ctx, g, lora, passes.Order()))
	check(t, ir.Verify(g))
	r := rand.New(rand.NewPCG(1, 2))
	draw := func(typ ir.Type) ir.Tensor {
		x := ir.NewTensor(typ)
		for i := range x.F {
			x.F[i] = r.NormFloat64()
		}
		x.Round()
		return x
	}
	inputs := map[string]ir.Tensor{"x": draw(g.Input("x").Type)}
	params := map[string]ir.Tensor{}
	for _, p := range g.Params {
		params[p.Name] = draw(p.Type)
	}
	got, _, err := ref.Run(g, inputs, params)
	check(t, err)

	a := ctx.Adapters[0]
	content := func(name string) adapter.Content {
		return adapter.Content{Shape: params[name].Type.Shape, Raw: params[name].Encode()}
	}
	w := params["w.weight"]
	d, err := adapter.NewDelta(w.Type, content(a.A), content(a.B), a.Scale, a.InOut)
	check(t, err)
	raw := w.Encode()
	check(t, d.Apply(w.Type, raw))
	merged, err := ir.DecodeTensor(w.Type, raw)
	check(t, err)
	want, _, err := ref.Run(plain, inputs, map[string]ir.Tensor{"w.weight": merged})
	check(t, err)
	if diff := apart(want["y"].F, got["y"].F); !(diff <= 1e-6) {
		t.Errorf("outputs are %.3g apart", diff)
	}
	if a.Scale != 1.5 {
		t.Errorf("scale %v", a.Scale)
	}
}
