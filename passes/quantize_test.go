package passes_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"aitk/internal/quant"
	"aitk/ir"
	"aitk/ir/op"
	"aitk/ir/plan"
	"aitk/passes"
)

// contents is a WeightReader over matrices in memory.
type contents map[string][]float32

func (c contents) Floats(name string, t ir.Type, _ *ir.Init, x []float32, row int64) error {
	data, ok := c[name]
	if !ok {
		return fmt.Errorf("no content of %q", name)
	}
	copy(x, data[row*t.Shape[1:].Elems():])
	return nil
}

const threeWeights = `graph @net
%0 = input "x" : f32[8,64]
%1 = param "normal.weight" frozen weight : f32[64,64]
%2 = param "flat.weight" frozen weight : f32[64,64]
%3 = param "wild.weight" frozen weight : f32[64,64]
%4 = MatMul{transB=true} %0 %1
%5 = MatMul{transB=true} %4 %2
%6 = MatMul{transB=true} %5 %3
result "y" %6`

// three fills the weights: bell-shaped, of two values that 4 bits hold, and with a few large numbers among small ones.
func three() contents {
	r := rand.New(rand.NewPCG(5, 6))
	c := contents{}
	fill := func(name string, f func() float32) {
		for range 64 * 64 {
			c[name] = append(c[name], f())
		}
	}
	fill("normal.weight", func() float32 { return float32(r.NormFloat64()) })
	fill("flat.weight", func() float32 { return float32(2*r.IntN(2)-1) * 0.5 })
	fill("wild.weight", func() float32 {
		if r.IntN(64) == 0 {
			return 50
		}
		return float32(r.NormFloat64())
	})
	return c
}

// quantizeOnly runs the pass by itself.
func quantizeOnly(t *testing.T, c contents, spec string) (*passes.Context, error) {
	t.Helper()
	g, err := ir.Parse(threeWeights, op.Vocabulary())
	if err != nil {
		t.Fatal(err)
	}
	ctx := &passes.Context{}
	ctx.Options.VerifyEach = true
	ctx.Options.Weights = c
	if err := ctx.Options.Set("quantize", spec); err != nil {
		t.Fatal(err)
	}
	return ctx, passes.Run(ctx, g, pick(t, []string{"quantize"}), passes.Order())
}

// auto takes the format that saves most within the error, weight by weight.
func TestQuantizeAuto(t *testing.T) {
	for _, c := range []struct {
		max  string
		want [3]string
	}{
		{"0.2", [3]string{"nf4/64", "nf4/64", "nf4/64"}},
		{"0.05", [3]string{"int8", "nf4/64", "fp8"}},
		{"0.008", [3]string{"int8", "nf4/64", "fp8"}},
		{"0.0001", [3]string{"", "nf4/64", ""}},
	} {
		ctx, err := quantizeOnly(t, three(), "auto:max-error="+c.max)
		if err != nil {
			t.Fatal(err)
		}
		for i, q := range ctx.Quantized {
			if c.want[i] == "" && q.Skipped == "" || q.Format != c.want[i] && !(q.Format == "int4/64" && c.want[i] == "nf4/64") {
				t.Errorf("max-error %s: %s as %q (error %.4f, %s), want %q", c.max, q.Name, q.Format, q.RelL2, q.Skipped, c.want[i])
			}
			if limit := 0.0; q.Skipped == "" {
				fmt.Sscan(c.max, &limit)
				if !(q.RelL2 <= limit) || q.WorstBlock < q.RelL2 {
					t.Errorf("max-error %s: %s has error %v, worst block %v", c.max, q.Name, q.RelL2, q.WorstBlock)
				}
			}
		}
	}
}

// The total error is that of all weights together, and what is not there is not measured.
func TestQuantizeErrors(t *testing.T) {
	ctx, err := quantizeOnly(t, three(), "*:int8")
	if err != nil {
		t.Fatal(err)
	}
	errs, squares := 0.0, 0.0
	for i, x := range []string{"normal.weight", "flat.weight", "wild.weight"} {
		s := 0.0
		for _, v := range three()[x] {
			s += float64(v) * float64(v)
		}
		squares += s
		errs += s * ctx.Quantized[i].RelL2 * ctx.Quantized[i].RelL2
	}
	if want := math.Sqrt(errs / squares); math.Abs(ctx.QuantizedRelL2-want) > 1e-9 || want == 0 {
		t.Errorf("total error %v, want %v", ctx.QuantizedRelL2, want)
	}
	if _, err = quantizeOnly(t, nil, "*:int8"); err == nil {
		t.Error("contents that cannot be read are measured")
	}

	bad := three()
	bad["flat.weight"][70] = float32(math.NaN())
	_, err = quantizeOnly(t, bad, "*:nf4")
	if err == nil || !strings.Contains(err.Error(), `"flat.weight"`) || !strings.Contains(err.Error(), "element [1,6] is NaN") {
		t.Errorf("NaN: %v", err)
	}
	g, err := ir.Parse(threeWeights, op.Vocabulary())
	if err != nil {
		t.Fatal(err)
	}
	unread := &passes.Context{}
	if err := unread.Options.Set("quantize", "*:int8"); err != nil {
		t.Fatal(err)
	}
	if err := passes.Run(unread, g, pick(t, []string{"quantize"}), passes.Order()); err != nil {
		t.Fatal(err)
	}
	if q := unread.Quantized[0]; q.RelL2 != plan.NotMeasured || unread.QuantizedRelL2 != plan.NotMeasured || q.Format != "int8" {
		t.Errorf("without contents: %+v", q)
	}
}

// casts is a WeightReader that takes note of how it is asked.
type casts map[string]string

func (c casts) Floats(name string, t ir.Type, in *ir.Init, x []float32, _ int64) error {
	c[name] = fmt.Sprint(t, in.Packed())
	for i := range x {
		x[i] = float32(i%7) - 3
	}
	return nil
}

// Weights of which the file holds other floats than the graph are packed from the file's.
func TestQuantizeCastWeights(t *testing.T) {
	g, err := ir.Parse(threeWeights, op.Vocabulary())
	if err != nil {
		t.Fatal(err)
	}
	p := g.Param("flat.weight")
	p.Init.Pack = ir.Packing{Format: quant.Cast, Part: quant.PartCodes, Source: ir.T(ir.F16, 64, 64)}
	ctx, asked := &passes.Context{}, casts{}
	ctx.Options.VerifyEach, ctx.Options.Weights = true, asked
	if err := ctx.Options.Set("quantize", "flat*:int8"); err != nil {
		t.Fatal(err)
	}
	if err := passes.Run(ctx, g, pick(t, []string{"quantize"}), passes.Order()); err != nil {
		t.Fatal(err)
	}
	if len(ctx.Quantized) != 1 || ctx.Quantized[0].Format != "int8" || asked["flat.weight"] != "f16[64,64] false" {
		t.Errorf("%+v, asked for %v", ctx.Quantized, asked)
	}
	if k := g.Param("flat.weight"); k.Type.DType != ir.I8 || !k.Init.Pack.Source.Equal(ir.T(ir.F16, 64, 64)) {
		t.Errorf("%v packed from %v", k.Type, k.Init.Pack.Source)
	}
}
