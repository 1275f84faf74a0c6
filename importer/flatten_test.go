package importer

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"aitk/importer/onnxpb"
	"aitk/ir"
	"aitk/runtime/ref"
)

func attrGraph(name string, g *onnxpb.GraphProto) *onnxpb.AttributeProto {
	return &onnxpb.AttributeProto{Name: proto.String(name), G: g, Type: onnxpb.AttributeProto_GRAPH.Enum()}
}

func attrRef(name, of string, t onnxpb.AttributeProto_AttributeType) *onnxpb.AttributeProto {
	return &onnxpb.AttributeProto{Name: proto.String(name), RefAttrName: proto.String(of), Type: t.Enum()}
}

func inDomain(n *onnxpb.NodeProto, domain string) *onnxpb.NodeProto {
	n.Domain = proto.String(domain)
	return n
}

func function(name string, inputs, outputs []string, nodes ...*onnxpb.NodeProto) *onnxpb.FunctionProto {
	return &onnxpb.FunctionProto{Name: proto.String(name), Domain: proto.String("local"), Input: inputs, Output: outputs, Node: nodes,
		OpsetImport: []*onnxpb.OperatorSetIdProto{{Version: proto.Int64(18)}, {Domain: proto.String("local"), Version: proto.Int64(1)}}}
}

// withFunctions adds functions and the domain that they live in.
func withFunctions(m *onnxpb.ModelProto, fs ...*onnxpb.FunctionProto) *onnxpb.ModelProto {
	m.Functions = fs
	m.OpsetImport = append(m.OpsetImport, &onnxpb.OperatorSetIdProto{Domain: proto.String("local"), Version: proto.Int64(1)})
	return m
}

func body(name string, inputs []*onnxpb.ValueInfoProto, outputs []string, nodes ...*onnxpb.NodeProto) *onnxpb.GraphProto {
	g := &onnxpb.GraphProto{Name: proto.String(name), Input: inputs, Node: nodes}
	for _, o := range outputs {
		g.Output = append(g.Output, vi(o, float))
	}
	return g
}

// runs imports a model with the one input x and compares its one output.
func runs(t *testing.T, m *onnxpb.ModelProto, x, want []float64) *Model {
	t.Helper()
	got := mustImport(t, save(t, m), Options{})
	in := map[string]ir.Tensor{"x": {Type: ir.T(ir.F32, int64(len(x))), F: x}}
	out, _, err := ref.Run(got.Graph, in, contents(t, got.Graph))
	if err != nil {
		t.Fatal(err)
	}
	for _, y := range out {
		if len(y.F) != len(want) {
			t.Fatalf("result %v, want %v", y.F, want)
		}
		for i := range want {
			if math.Abs(y.F[i]-want[i]) > 1e-6 {
				t.Errorf("result %v, want %v", y.F, want)
				break
			}
		}
	}
	return got
}

// A function calls another one; attributes come from the call, from a default, or not at all; inner names are the same in both and in the graph; an input
// is left out; an output is an input.
func TestFunctions(t *testing.T) {
	inner := function("scaled", in("x", "y", "none"), in("z"),
		node("LeakyRelu", "leaky", in("x"), in("h"), attrRef("alpha", "slope", onnxpb.AttributeProto_FLOAT)),
		node("Elu", "elu", in("h"), in("e"), attrRef("alpha", "bend", onnxpb.AttributeProto_FLOAT)), // nobody gives it: 1
		node("Add", "add", in("e", "y"), in("z")))
	inner.AttributeProto = []*onnxpb.AttributeProto{attrFloat("slope", 0.5)}
	outer := function("twice", in("x"), in("z", "x"),
		inDomain(node("scaled", "first", in("x", "x"), in("h")), "local"),
		inDomain(node("scaled", "second", in("h", "x"), in("z"), attrRef("slope", "slope", onnxpb.AttributeProto_FLOAT)), "local"))
	m := withFunctions(model(18, []*onnxpb.ValueInfoProto{vi("x", float, 3)}, nil,
		inDomain(node("twice", "call", in("x"), in("h", "same"), attrFloat("slope", 0.25)), "local"),
		node("Add", "sum", in("h", "same"), in("y"))), inner, outer)
	f := func(x, y, slope float64) float64 {
		if x < 0 {
			x *= slope
		}
		if x < 0 {
			x = math.Exp(x) - 1
		}
		return x + y
	}
	xs := []float64{-1, 0.5, 2}
	want := make([]float64, 3)
	for i, x := range xs {
		want[i] = f(f(x, x, 0.5), x, 0.25) + x
	}
	got := runs(t, m, xs, want)
	if name := got.Graph.Nodes[0].Origin.Node; name != "call/first/leaky" {
		t.Errorf("the first node is called %q", name)
	}
}

// Loop, Scan and If nest; their bodies shadow names, capture names from outside, have initializers and hold weights.
func TestControlFlow(t *testing.T) {
	w := floats("w", []int64{2}, 0.5, 2)
	branch := func(op string) *onnxpb.GraphProto {
		g := body(op, nil, in("h"), node(op, "inside", in("x", "w"), in("h")))
		g.Initializer = []*onnxpb.TensorProto{w}
		return g
	}
	turn := body("turn", []*onnxpb.ValueInfoProto{vi("i", int64T), vi("go", onnxpb.TensorProto_BOOL), vi("s", float, 2)}, in("more", "next", "seen"),
		node("Identity", "", in("go"), in("more")),
		node("Equal", "", in("i", "zero"), in("first")),
		node("If", "if", in("first"), in("h"), attrGraph("then_branch", branch("Mul")), attrGraph("else_branch", branch("Add"))),
		node("Add", "", in("s", "h"), in("next")),
		node("Identity", "", in("next"), in("seen")))
	m := model(16, []*onnxpb.ValueInfoProto{vi("x", float, 2)},
		[]*onnxpb.TensorProto{{Name: proto.String("n"), DataType: proto.Int32(7), Int64Data: []int64{3}}, {Name: proto.String("zero"), DataType: proto.Int32(7), Int64Data: []int64{0}}},
		node("Loop", "loop", in("n", "", "x"), in("h", "all"), attrGraph("body", turn)),
		node("ReduceSum", "sum", in("all"), in("y"), attrInt("keepdims", 0)))
	// x=(1,2): h is x*w once, then x+w twice: s = x + x*w = (1.5, 6), then (3, 10), then (4.5, 14).
	got := runs(t, m, []float64{1, 2}, []float64{1.5 + 6 + 3 + 10 + 4.5 + 14})
	if len(got.Params) != 2 {
		t.Errorf("parameters %+v, want the weight of each branch", got.Params)
	}
	for _, p := range got.Params {
		if !p.Trainable || !strings.HasPrefix(p.Name, "w") {
			t.Errorf("parameter %+v", p)
		}
	}
}

func TestFlattenRefuses(t *testing.T) {
	x := []*onnxpb.ValueInfoProto{vi("x", float, 2)}
	call := func(name string) *onnxpb.NodeProto { return inDomain(node(name, "c", in("x"), in("y")), "local") }
	var chain []*onnxpb.FunctionProto // f0 calls f1 four times, which calls f2 ...
	for i := range 40 {
		f := function(fmt.Sprint("f", i), in("x"), in("y"))
		from := "x"
		for k := range 4 {
			to := fmt.Sprint("h", k)
			if k == 3 {
				to = "y"
			}
			f.Node = append(f.Node, inDomain(node(fmt.Sprint("f", i+1), "", in(from), in(to)), "local"))
			from = to
		}
		chain = append(chain, f)
	}
	endless := body("b", []*onnxpb.ValueInfoProto{vi("i", int64T), vi("go", onnxpb.TensorProto_BOOL), vi("s", float, 2)}, in("go", "n"), node("Relu", "", in("s"), in("n")))
	data := body("b", []*onnxpb.ValueInfoProto{vi("i", int64T), vi("go", onnxpb.TensorProto_BOOL), vi("s", float, 2)}, in("c", "n"),
		node("ReduceSum", "", in("s"), in("r"), attrInt("keepdims", 0)), node("Cast", "", in("r"), in("c"), attrInt("to", 9)), node("Relu", "", in("s"), in("n")))
	inner := body("b", nil, in("h"), node("Relu", "", in("x"), in("h")))
	yes := []*onnxpb.TensorProto{{Name: proto.String("yes"), DataType: proto.Int32(9), Int32Data: []int32{1}}}
	nested := branchOf(80)
	for _, c := range []struct {
		name string
		m    *onnxpb.ModelProto
		want string
	}{
		{"a function that calls itself", withFunctions(model(18, x, nil, call("f")), function("f", in("x"), in("y"), call("f"))), "calls itself"},
		{"functions that grow without end", withFunctions(model(18, x, nil, call("f0")), chain...), "functions expand to more than"},
		{"a loop without end", model(18, x, yes, node("Loop", "l", in("", "yes", "x"), in("y"), attrGraph("body", endless))), "at most 4096 are unrolled"},
		{"a condition that follows from data", model(18, x, yes, node("Loop", "l", in("", "yes", "x"), in("y"), attrGraph("body", data))), `it depends on ["x"]`},
		{"a name of a branch outside", model(18, x, yes, node("If", "if", in("yes"), in("g"), attrGraph("then_branch", inner), attrGraph("else_branch", inner)), node("Relu", "", in("h"), in("y"))), `"h" is defined nowhere`},
		{"branches in branches", model(18, x, yes, nested), "nest deeper"},
		{"an unknown op in the branch taken", model(18, x, yes, node("If", "if", in("yes"), in("y"),
			attrGraph("then_branch", body("b", nil, in("h"), node("Foo", "foo", in("x"), in("h")))), attrGraph("else_branch", inner))), "Foo"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := Import(save(t, c.m), Options{})
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want %q", err, c.want)
			}
		})
	}
}

// branchOf is an If in an If, and so on.
func branchOf(depth int) *onnxpb.NodeProto {
	n := node("Relu", "", in("x"), in("y"))
	for range depth {
		g := body("b", nil, in("y"), n)
		n = node("If", "", in("yes"), in("y"), attrGraph("then_branch", g), attrGraph("else_branch", body("e", nil, in("z"), node("Relu", "", in("x"), in("z")))))
	}
	return n
}
