package ref

import (
	"math"
	"strings"
	"testing"

	"aitk/ir"
	"aitk/ir/op"
)

func parse(t *testing.T, text string) *ir.Graph {
	t.Helper()
	g, err := ir.Parse(text, op.Vocabulary())
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func floats(d ir.DType, xs ...float64) ir.Tensor {
	return ir.Tensor{Type: ir.T(d, int64(len(xs))), F: xs}
}

func ints(d ir.DType, xs ...int64) ir.Tensor {
	return ir.Tensor{Type: ir.T(d, int64(len(xs))), I: xs}
}

func TestRounding(t *testing.T) {
	third := 1.0 / 3
	for d, want := range map[ir.DType]float64{ir.F64: third, ir.F32: third, ir.F16: 0.333251953125, ir.BF16: 0.333984375} {
		g := parse(t, "graph @g\n%0 = input \"x\" : "+d.String()+"[1]\n%1 = Reciprocal %0\nresult \"y\" %1")
		got, _, err := Run(g, map[string]ir.Tensor{"x": floats(d, 3)}, nil)
		if err != nil || got["y"].F[0] != want {
			t.Errorf("%v: %v, %v; want %v", d, got, err, want)
		}
	}
	g := parse(t, "graph @g\n%0 = input \"x\" : u8[1]\n%1 = Add %0 %0\nresult \"y\" %1")
	if got, _, err := Run(g, map[string]ir.Tensor{"x": ints(ir.U8, 200)}, nil); err != nil || got["y"].I[0] != 144 {
		t.Errorf("%v, %v", got, err)
	}
}

// TestStateAndSwaps runs w = w + x twice, with x gone to the host and back in between.
func TestStateAndSwaps(t *testing.T) {
	g := parse(t, `graph @step
%0 = input "x" : f32[2]
%1 = param "w" trainable : f32[2]
%2 = param "still" : f32[1]
%3 = SwapOut{to=pinned} %0
= SwapWait %0 %3
%4 =b SwapIn %3
%5 =u Add %1 %4
update %1 %5
result "old" %1
result "new" %5`)
	start := map[string]ir.Tensor{"w": floats(ir.F32, 10, 20), "still": floats(ir.F32, 7)}
	x := New(start)
	for i, want := range []float64{11, 12} {
		got, err := x.Run(g, map[string]ir.Tensor{"x": floats(ir.F32, 1, 2), "unused": floats(ir.F32)})
		if err != nil {
			t.Fatal(err)
		}
		if got["new"].F[0] != want || got["old"].F[0] != want-1 || x.Params()["w"].F[0] != want || x.Params()["still"].F[0] != 7 {
			t.Errorf("run %d: %v, %v", i, got, x.Params())
		}
	}
	if start["w"].F[0] != 10 {
		t.Error("the caller's tensor was changed")
	}
}

func TestErrors(t *testing.T) {
	g := parse(t, `graph @g
%0 = input "x" : f32[3]
%1 = input "i" : i64[2]
%2 = param "w" : f32[1]
%3 = Gather %0 %1 ; emb/Gather op=Gather index=4 file=m.onnx
result "y" %3`)
	good := map[string]ir.Tensor{"x": floats(ir.F32, 1, 2, 3), "i": ints(ir.I64, -3, 2)}
	w := map[string]ir.Tensor{"w": floats(ir.F32, 0)}
	if got, _, err := Run(g, good, w); err != nil || got["y"].F[0] != 1 || got["y"].F[1] != 3 {
		t.Fatal(got, err)
	}
	cases := []struct {
		inputs, params map[string]ir.Tensor
		want           []string
	}{
		{nil, nil, []string{`input "x" is missing`, `input "i" is missing`, `parameter "w" is missing`}},
		{map[string]ir.Tensor{"x": floats(ir.F64, 1, 2, 3), "i": good["i"]}, w, []string{`input "x" is f64[3], the graph wants f32[3]`}},
		{map[string]ir.Tensor{"x": {Type: ir.T(ir.F32, 3)}, "i": good["i"]}, w, []string{`input "x" has 0 elements`}},
		{map[string]ir.Tensor{"x": good["x"], "i": ints(ir.I64, 0, 3)}, w, []string{`m.onnx: node "emb/Gather" (Gather, #4)`, "index 3", "%3 = Gather %0 %1"}},
		{map[string]ir.Tensor{"x": good["x"], "i": ints(ir.I64, -4, 0)}, w, []string{"index -4"}},
	}
	for _, c := range cases {
		_, _, err := Run(g, c.inputs, c.params)
		for _, want := range c.want {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("got %v, want %q", err, want)
			}
		}
	}
}

// Square has no Eval: the interpreter takes it apart.
type Square struct{}

func (Square) Infer(in []ir.Type) ([]ir.Type, error) { return in, nil }
func (Square) Decompose(b *ir.Builder, in []*ir.Value) []*ir.Value {
	return []*ir.Value{b.Add(op.Mul{}, in[0], in[0])}
}

// Riddle has no meaning at all, Faulty panics.
type (
	Riddle struct{}
	Faulty struct{}
)

func (Riddle) Infer(in []ir.Type) ([]ir.Type, error) { return in, nil }
func (Faulty) Infer(in []ir.Type) ([]ir.Type, error) { return in, nil }
func (Faulty) Eval(in, out []ir.Tensor)              { out[0].F[99] = 1 }

func TestDecomposes(t *testing.T) {
	run := func(o ir.Op) (map[string]ir.Tensor, error) {
		g := ir.NewGraph("g")
		b := ir.Builder{G: g, Origin: ir.Origin{Node: "here"}}
		g.Results = []ir.Result{{Name: "y", Value: b.Add(o, g.AddInput("x", ir.T(ir.F64, 2)))}}
		got, _, err := Run(g, map[string]ir.Tensor{"x": floats(ir.F64, 3, math.Inf(-1))}, nil)
		return got, err
	}
	if got, err := run(Square{}); err != nil || got["y"].F[0] != 9 || !math.IsInf(got["y"].F[1], 1) {
		t.Error(got, err)
	}
	if _, err := run(Riddle{}); err == nil || !strings.Contains(err.Error(), `node "here": Riddle has neither`) {
		t.Error(err)
	}
	defer func() {
		if b, ok := recover().(*ir.Bug); !ok || !strings.Contains(b.Msg, "evaluating %1 = Faulty %0") {
			t.Error(b)
		}
	}()
	_, err := run(Faulty{})
	t.Error("no panic", err)
}
