package passes_test

import (
	"math"
	"strings"
	"testing"

	"aitk/ir"
	"aitk/ir/op"
	"aitk/passes"
	"aitk/runtime/ref"
)

// raised builds a graph twice, raises one of the two, and compares their results on the same inputs.
func raised(t *testing.T, build func(b *ir.Builder) *ir.Value) (*passes.Context, *ir.Graph) {
	t.Helper()
	var graphs [2]*ir.Graph
	for i := range graphs {
		graphs[i] = ir.NewGraph("step")
		graphs[i].Results = []ir.Result{{Name: "y", Value: build(&ir.Builder{G: graphs[i]})}}
	}
	ctx := &passes.Context{Options: passes.Options{StopAfter: "dce", VerifyEach: true}}
	if err := passes.Run(ctx, graphs[1], passes.Pipeline(), passes.Order()); err != nil {
		t.Fatal(err)
	}
	var got [2]ir.Tensor
	for i, g := range graphs {
		inputs := map[string]ir.Tensor{}
		for k, v := range g.Inputs {
			x := ir.NewTensor(v.Type)
			for e := range x.F {
				x.F[e] = math.Sin(float64(7*e+k*13+1)) * 2
			}
			for e := range x.I {
				x.I[e] = int64(e+k) % 2
			}
			x.Round()
			inputs[v.Name] = x
		}
		out, _, err := ref.Run(g, inputs, nil)
		if err != nil {
			t.Fatal(err)
		}
		got[i] = out["y"]
	}
	tolerance := 1e-9
	if got[0].Type.DType == ir.BF16 || got[0].Type.DType == ir.F16 {
		tolerance = 2e-2
	} else if got[0].Type.DType == ir.F32 {
		tolerance = 1e-6
	}
	for i, want := range got[0].F {
		if g := got[1].F[i]; !(math.Abs(g-want) <= tolerance*max(1, math.Abs(want))) && !(math.IsNaN(g) && math.IsNaN(want)) {
			t.Fatalf("element %d is %v, before %v", i, g, want)
		}
	}
	return ctx, graphs[1]
}

// count is how many nodes of a graph have an op.
func count[T ir.Op](g *ir.Graph) (n int) {
	for _, x := range g.Nodes {
		if _, ok := x.Op.(T); ok {
			n++
		}
	}
	return n
}

func perm(p ...int64) op.Transpose { return op.Transpose{Perm: p} }

func TestRaiseAttention(t *testing.T) {
	f := func(d ir.DType, s ...int64) ir.Type { return ir.T(d, s...) }
	in := func(b *ir.Builder, name string, t ir.Type) *ir.Value { return b.G.AddInput(name, t) }
	soft := func(b *ir.Builder, s *ir.Value) *ir.Value {
		return b.Add(op.Softmax{Axis: int64(len(s.Type.Shape)) - 1}, s)
	}
	for _, c := range []struct {
		name  string
		want  int
		note  string
		build func(b *ir.Builder) *ir.Value
	}{
		{"keys turned, both sides scaled", 1, "", func(b *ir.Builder) *ir.Value {
			q, k, v := in(b, "q", f(ir.F32, 2, 3, 4, 5)), in(b, "k", f(ir.F32, 2, 3, 6, 5)), in(b, "v", f(ir.F32, 2, 3, 6, 2))
			k = b.Add(op.Reshape{Shape: ir.Shape{2, 3, 5, 6}}, b.Add(perm(0, 2, 1), b.Add(op.Reshape{Shape: ir.Shape{6, 6, 5}}, k)))
			half := b.Scalar(ir.F32, 0.5)
			return b.Add(op.MatMul{}, soft(b, b.Add(op.MatMul{}, b.Add(op.Mul{}, q, half), b.Add(op.Mul{}, k, half))), v)
		}},
		{"rank 3, mask and divided scores", 1, "", func(b *ir.Builder) *ir.Value {
			q, v, m := in(b, "q", f(ir.F32, 2, 4, 5)), in(b, "v", f(ir.F32, 2, 4, 3)), in(b, "m", f(ir.F32, 2, 1, 4))
			s := b.Add(op.Div{}, b.Add(op.MatMul{TransB: true}, q, q), b.Scalar(ir.F32, 2))
			return b.Add(op.MatMul{}, soft(b, b.Add(op.Add{}, m, s)), v)
		}},
		{"rows without a key", 1, "", func(b *ir.Builder) *ir.Value {
			q, c := in(b, "q", f(ir.F32, 1, 2, 4, 5)), in(b, "c", f(ir.I64, 4, 4))
			hide := b.Add(op.Less{}, b.Add(op.Iota{DType: ir.I64, Shape: ir.Shape{4, 1}, Axis: 0, Step: 1}, []*ir.Value{}...), c)
			s := b.Add(op.Where{}, hide, b.Scalar(ir.F32, math.Inf(-1)), b.Add(op.MatMul{TransB: true}, q, q))
			p := soft(b, s)
			p = b.Add(op.Where{}, b.Add(op.IsNaN{}, p), b.Scalar(ir.F32, 0), p)
			return b.Add(op.MatMul{}, p, q)
		}},
		{"heads that share keys", 1, "", func(b *ir.Builder) *ir.Value {
			q, k, v := in(b, "q", f(ir.F32, 2, 6, 4, 5)), in(b, "k", f(ir.F32, 2, 2, 7, 5)), in(b, "v", f(ir.F32, 2, 2, 7, 3))
			many := func(x *ir.Value) *ir.Value {
				s := x.Type.Shape
				x = b.Add(op.Reshape{Shape: ir.Shape{s[0], s[1], 1, s[2], s[3]}}, x)
				return b.Add(op.Reshape{Shape: ir.Shape{s[0], 6, s[2], s[3]}}, b.Add(op.Expand{Shape: ir.Shape{s[0], s[1], 3, s[2], s[3]}}, x))
			}
			return b.Add(op.MatMul{}, soft(b, b.Add(op.MatMul{TransB: true}, q, many(k))), many(v))
		}},
		{"groups as rows", 1, "", func(b *ir.Builder) *ir.Value {
			q, k, m := in(b, "q", f(ir.F32, 2, 2, 12, 5)), in(b, "k", f(ir.F32, 2, 2, 7, 5)), in(b, "m", f(ir.F32, 4, 7))
			s := b.Add(op.Reshape{Shape: ir.Shape{2, 6, 4, 7}}, b.Add(op.MatMul{TransB: true}, q, k))
			p := b.Add(op.Reshape{Shape: ir.Shape{2, 2, 12, 7}}, soft(b, b.Add(op.Add{}, s, m)))
			return b.Add(op.MatMul{}, p, k)
		}},
		{"bf16 with a softmax in f32", 1, "", func(b *ir.Builder) *ir.Value {
			q, v := in(b, "q", f(ir.BF16, 1, 2, 4, 8)), in(b, "v", f(ir.BF16, 1, 2, 4, 8))
			p := soft(b, b.Add(op.Cast{To: ir.F32}, b.Add(op.MatMul{TransB: true}, q, q)))
			return b.Add(op.MatMul{}, b.Add(op.Cast{To: ir.BF16}, p), v)
		}},
		{"scores are read elsewhere", 0, "read elsewhere", func(b *ir.Builder) *ir.Value {
			q := in(b, "q", f(ir.F32, 1, 2, 4, 4))
			s := b.Add(op.MatMul{TransB: true}, q, q)
			return b.Add(op.Add{}, b.Add(op.MatMul{}, soft(b, s), q), s)
		}},
		{"a mask that is not negative enough", 0, "not negative enough", func(b *ir.Builder) *ir.Value {
			q, c := in(b, "q", f(ir.F32, 1, 2, 4, 4)), in(b, "c", f(ir.Bool, 4, 4))
			s := b.Add(op.Where{}, c, b.Add(op.MatMul{TransB: true}, q, q), b.Scalar(ir.F32, -5))
			return b.Add(op.MatMul{}, soft(b, s), q)
		}},
		{"capped scores", 0, "capped", func(b *ir.Builder) *ir.Value {
			q := in(b, "q", f(ir.F32, 1, 2, 4, 4))
			return b.Add(op.MatMul{}, soft(b, b.Add(op.Tanh{}, b.Add(op.MatMul{TransB: true}, q, q))), q)
		}},
		{"a softmax of an input", 0, "", func(b *ir.Builder) *ir.Value {
			return b.Add(op.MatMul{}, soft(b, in(b, "s", f(ir.F32, 2, 3, 4))), in(b, "v", f(ir.F32, 2, 4, 5)))
		}},
		{"a softmax along another axis", 0, "", func(b *ir.Builder) *ir.Value {
			q := in(b, "q", f(ir.F32, 1, 2, 4, 4))
			return b.Add(op.MatMul{}, b.Add(op.Softmax{Axis: 2}, b.Add(op.MatMul{TransB: true}, q, q)), q)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			ctx, g := raised(t, c.build)
			if n := count[op.Attention](g); n != c.want {
				t.Errorf("%d attentions, want %d\n%v\n%q", n, c.want, g, ctx.Notes)
			}
			if n := count[op.Softmax](g); n != 1-c.want {
				t.Errorf("%d softmaxes are left\n%v", n, g)
			}
			if notes := strings.Join(ctx.Notes, "\n"); (c.note == "") != (notes == "") || !strings.Contains(notes, c.note) {
				t.Errorf("notes %q, want %q", notes, c.note)
			}
		})
	}
}

func TestRaiseNormsAndActivations(t *testing.T) {
	for _, d := range []ir.DType{ir.F32, ir.BF16} {
		x := func(b *ir.Builder) (x, w, c *ir.Value) {
			return b.G.AddInput("x", ir.T(d, 3, 4, 8)), b.G.AddInput("w", ir.T(d, 8)), b.G.AddInput("c", ir.T(d, 8))
		}
		wide := func(b *ir.Builder, v *ir.Value) *ir.Value {
			if d == ir.F32 {
				return v
			}
			return b.Add(op.Cast{To: ir.F32}, v)
		}
		narrow := func(b *ir.Builder, v *ir.Value) *ir.Value {
			if v.Type.DType == d {
				return v
			}
			return b.Add(op.Cast{To: d}, v)
		}
		mean := op.ReduceMean{Axes: []int64{2}, KeepDims: true}
		for _, c := range []struct {
			name  string
			what  func(*ir.Graph) int
			build func(b *ir.Builder) *ir.Value
		}{
			{"RMSNorm, scale after rounding", count[op.RMSNorm], func(b *ir.Builder) *ir.Value {
				x, w, _ := x(b)
				v := wide(b, x)
				r := b.Add(op.Reciprocal{}, b.Add(op.Sqrt{}, b.Add(op.Add{}, b.Add(mean, b.Add(op.Pow{}, v, b.Scalar(ir.F32, 2))), b.Scalar(ir.F32, 1e-6))))
				return b.Add(op.Mul{}, w, narrow(b, b.Add(op.Mul{}, v, r)))
			}},
			{"RMSNorm, scale before rounding", count[op.RMSNorm], func(b *ir.Builder) *ir.Value {
				x, w, _ := x(b)
				v := wide(b, x)
				r := b.Add(op.Rsqrt{}, b.Add(op.Add{}, b.Scalar(ir.F32, 1e-5), b.Add(mean, b.Add(op.Mul{}, v, v))))
				return narrow(b, b.Add(op.Mul{}, b.Add(op.Mul{}, r, v), wide(b, w)))
			}},
			{"RMSNorm without scale", count[op.RMSNorm], func(b *ir.Builder) *ir.Value {
				x, _, _ := x(b)
				v := wide(b, x)
				s := b.Add(op.Sqrt{}, b.Add(op.Add{}, b.Add(mean, b.Add(op.Mul{}, v, v)), b.Scalar(ir.F32, 1e-5)))
				return narrow(b, b.Add(op.Div{}, v, s))
			}},
			{"LayerNorm", count[op.LayerNorm], func(b *ir.Builder) *ir.Value {
				x, w, c := x(b)
				v := wide(b, x)
				z := b.Add(op.Sub{}, v, b.Add(mean, v))
				s := b.Add(op.Sqrt{}, b.Add(op.Add{}, b.Add(mean, b.Add(op.Pow{}, z, b.Scalar(ir.F32, 2))), b.Scalar(ir.F32, 1e-5)))
				return narrow(b, b.Add(op.Add{}, b.Add(op.Mul{}, b.Add(op.Div{}, z, s), wide(b, w)), wide(b, c)))
			}},
			{"Gelu by erf", count[op.Gelu], func(b *ir.Builder) *ir.Value {
				x, _, _ := x(b)
				e := b.Add(op.Add{}, b.Add(op.Erf{}, b.Add(op.Div{}, x, b.Scalar(d, math.Sqrt2))), b.Scalar(d, 1))
				return b.Add(op.Mul{}, b.Add(op.Mul{}, x, e), b.Scalar(d, 0.5))
			}},
			{"Gelu by tanh, gated", count[op.Gelu], func(b *ir.Builder) *ir.Value {
				x, w, _ := x(b)
				cube := b.Add(op.Mul{}, b.Scalar(d, 0.044715), b.Add(op.Pow{}, x, b.Scalar(d, 3)))
				u := b.Add(op.Tanh{}, b.Add(op.Mul{}, b.Add(op.Add{}, x, cube), b.Scalar(d, math.Sqrt(2/math.Pi))))
				return b.Add(op.Mul{}, b.Add(op.Mul{}, b.Add(op.Mul{}, x, b.Scalar(d, 0.5)), b.Add(op.Add{}, u, b.Scalar(d, 1))), w)
			}},
			{"SiLU, gated", count[op.Swish], func(b *ir.Builder) *ir.Value {
				x, w, _ := x(b)
				return b.Add(op.Mul{}, b.Add(op.Mul{}, b.Add(op.Sigmoid{}, x), x), w)
			}},
			{"Gelu by a sigmoid", count[op.Swish], func(b *ir.Builder) *ir.Value {
				x, _, _ := x(b)
				return b.Add(op.Mul{}, x, b.Add(op.Sigmoid{}, b.Add(op.Mul{}, x, b.Scalar(d, 1.702))))
			}},
		} {
			t.Run(c.name+"/"+d.String(), func(t *testing.T) {
				if _, g := raised(t, c.build); c.what(g) != 1 || count[op.Sqrt](g)+count[op.Tanh](g)+count[op.Erf](g)+count[op.Sigmoid](g) != 0 {
					t.Errorf("not recognised, or pieces are left:\n%v", g)
				}
			})
		}
	}
}
