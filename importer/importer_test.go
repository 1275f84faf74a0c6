package importer

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"aitk/importer/onnxpb"
	"aitk/ir"
)

func TestImportMLP(t *testing.T) {
	path := save(t, mlp())
	m := mustImport(t, path, Options{Dims: map[string]int64{"batch": 8}})
	want := []string{"fc1.weight f32[3,4]", "fc1.bias f32[3]", "fc2.weight f32[2,3]", "fc2.bias f32[2]"}
	var got []string
	for _, p := range m.Graph.Params {
		got = append(got, fmt.Sprint(p.Name, " ", p.Type))
		if !p.Trainable || p.Role != ir.Weight || p.Reason == "" || p.Init.Kind != ir.InitFile || p.Init.File.Path != path {
			t.Errorf("%+v", p)
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("parameters %q, want %q", got, want)
	}
	if r := m.Graph.Result("y"); r == nil || !r.Type.Equal(ir.T(ir.F32, 8, 2)) {
		t.Errorf("result %v", r)
	}
	for _, n := range m.Graph.Nodes {
		o := n.Origin
		if o.File != path || o.OpType == "" || o.Opset != 13 || !strings.HasPrefix(o.Node, "/") {
			t.Errorf("origin %+v", o)
		}
	}
	if s := m.Graph.Nodes[0].Origin.Scope; s != "fc1" {
		t.Errorf("scope %q", s)
	}
	x := contents(t, m.Graph)["fc2.weight"]
	if x.F[5] != 5.0/8 {
		t.Errorf("content %v", x.F)
	}
}

func TestInspect(t *testing.T) {
	p := mlp()
	p.ProducerName = proto.String("hand")
	m, err := Inspect(save(t, p))
	if err != nil {
		t.Fatal(err)
	}
	if m.Graph != nil || m.Opset != 13 || m.Producer != "hand" || m.Nodes != 3 || len(m.Params) != 4 || m.Unsupported != nil {
		t.Errorf("%+v", m)
	}
	if got := fmt.Sprintf("%v %v %v %v", m.Ops, m.Inputs, m.Dims[0].Name, m.Dims[0].Where); got != `[{Gemm 2} {Relu 1}] [{x f32 [batch 4]}] batch [input "x" axis 0]` {
		t.Errorf("%s", got)
	}
}

// A negative size is what some exporters write for a dimension that is not known.
func TestNegativeDim(t *testing.T) {
	path := save(t, model(13, []*onnxpb.ValueInfoProto{vi("x", float, -1, 4)}, nil, node("Relu", "r", in("x"), in("y"))))
	m, err := Inspect(path)
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprintf("%v %v %v", m.Inputs, m.Dims[0].Name, m.Dims[0].Where); got != `[{x f32 [x.0 4]}] x.0 [input "x" axis 0]` {
		t.Errorf("%s", got)
	}
	m, err = Import(path, Options{Dims: map[string]int64{"x.0": 2}})
	if err != nil {
		t.Fatal(err)
	}
	if got := m.Graph.Inputs[0].Type.String(); got != "f32[2,4]" {
		t.Errorf("the input is %s", got)
	}
}

// TestErrors: each mistake has one message with what to do, and the kind that gives the exit code.
func TestErrors(t *testing.T) {
	x := []*onnxpb.ValueInfoProto{vi("x", float, 2, 3)}
	bound := map[string]int64{"batch": 2}
	for _, c := range []struct {
		name string
		m    *onnxpb.ModelProto
		opt  Options
		kind ir.Kind
		want []string
	}{
		{"unbound dims, all at once", model(13, []*onnxpb.ValueInfoProto{vi("x", float, "batch", "floor(H/2) + 1", nil)}, nil, node("Relu", "r", in("x"), in("y"))),
			Options{}, ir.Usage, []string{`"batch" (input "x" axis 0)`, `--dim batch=8 --dim 'floor(H/2) + 1'=8 --dim x.2=8`}},
		{"unknown dim", mlp(), Options{Dims: map[string]int64{"batch": 2, "bach": 3}}, ir.Usage, []string{`"bach"`, `"batch"`}},
		{"negative dim", mlp(), Options{Dims: map[string]int64{"batch": -2}}, ir.Usage, []string{"bound to -2"}},
		{"unknown input", mlp(), Options{Dims: bound, Inputs: map[string]ir.Tensor{"z": {}}}, ir.Usage, []string{`"z"`}},
		{"bound input of another type", mlp(), Options{Dims: bound, Inputs: map[string]ir.Tensor{"x": ir.NewTensor(ir.T(ir.F32, 2, 5))}}, ir.Usage, []string{"f32[2,4]", "f32[2,5]"}},
		{"batch norm mode", mlp(), Options{Dims: bound, BatchNorm: "eval"}, ir.Usage, []string{`"eval"`}},
		{"globs without a hit", mlp(), Options{Dims: bound, Select: []Selection{{"fc1*", false}, {"fc9*", true}, {"head", false}}}, ir.Usage, []string{`"fc9*"`, `"head"`}},
		{"unknown output", mlp(), Options{Dims: bound, Outputs: []string{"q"}}, ir.Usage, []string{`"q"`}},
		{"unknown ops, all at once", model(13, x, nil,
			node("Foo", "a", in("x"), in("a")), node("Foo", "b", in("a"), in("b")), node("ImageDecoder", "c", in("b"), in("c")), node("Foo", "", in("c"), in("y"))),
			Options{}, ir.Unsupported, []string{`2 ops are not supported`, `Foo (3 nodes): "a" "b" "y"`, `ImageDecoder (1 nodes): "c"`}},
		{"unknown domain", func() *onnxpb.ModelProto {
			m := model(13, x, nil, node("Relu", "a", in("x"), in("y")))
			m.Graph.Node[0].Domain = proto.String("com.acme")
			return m
		}(), Options{}, ir.Unsupported, []string{"com.acme.Relu"}},
		{"unknown attribute", model(13, x, nil, node("Relu", "a", in("x"), in("y"), attrInt("inplace", 1))), Options{}, ir.Unsupported, []string{`node "a" (Relu, #0)`, `"inplace"`, "opset 13"}},
		{"attribute of another type", model(13, x, nil, node("Softmax", "a", in("x"), in("y"), attrFloat("axis", 1))), Options{}, ir.Failed, []string{`"axis"`, "FLOAT"}},
		{"several broken nodes", model(13, x, []*onnxpb.TensorProto{floats("w", []int64{5, 5})},
			node("MatMul", "m1", in("x", "w"), in("a")), node("MatMul", "m2", in("x", "w"), in("b")), node("Add", "s", in("a", "b"), in("y"))),
			Options{}, ir.Failed, []string{`"m1"`, `"m2"`, "inner dimensions differ: 3 and 5"}},
		{"old opset", model(6, x, nil, node("Relu", "a", in("x"), in("y"))), Options{}, ir.Unsupported, []string{"opset 6 is older than 7", "convert_version"}},
		{"dynamic shape", model(13, append(x, vi("s", int64T, 2)), nil, node("Reshape", "a", in("x", "s"), in("y"))), Options{}, ir.Unsupported, []string{`node "a"`, "shape (operand 1", "constants"}},
		{"element type", model(13, []*onnxpb.ValueInfoProto{vi("x", onnxpb.TensorProto_COMPLEX64, 2)}, nil, node("Relu", "a", in("x"), in("y"))), Options{}, ir.Unsupported, []string{`input "x"`, "complex64"}},
		{"axis", model(13, x, nil, node("Softmax", "a", in("x"), in("y"), attrInt("axis", 2))), Options{}, ir.Failed, []string{"axis 2 is outside rank 2"}},
		{"missing operand", model(13, x, nil, node("Add", "a", in("x", ""), in("y"))), Options{}, ir.Failed, []string{"operand 1 is missing"}},
		{"index", model(13, x, []*onnxpb.TensorProto{longs("i", 0, 7)}, node("Gather", "a", in("x", "i"), in("y"))), Options{}, ir.Failed, []string{"index 7 is outside extent 2"}},
		{"training statistics without a home", model(15, []*onnxpb.ValueInfoProto{vi("x", float, 2, 3), vi("s", float, 3)}, nil,
			node("BatchNormalization", "bn", in("x", "s", "s", "s", "s"), in("y"))), Options{BatchNorm: BatchNormTrain}, ir.Unsupported, []string{`"s" is no constant`}},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := Import(save(t, c.m), c.opt)
			if err == nil {
				t.Fatal("accepted")
			}
			if k := ir.KindOf(err); k != c.kind {
				t.Errorf("kind %d, want %d", k, c.kind)
			}
			for _, w := range c.want {
				if !strings.Contains(err.Error(), w) {
					t.Errorf("%v\ndoes not say %q", err, w)
				}
			}
		})
	}
}

// TestLiterals: equal constants are one, large uniform ones are made where they are used, large ones of the file stay there, and what
// would be too large is left to run time.
func TestLiterals(t *testing.T) {
	x := []*onnxpb.ValueInfoProto{vi("x", float, 1, 3)}
	scalar := func(name string, v float32) *onnxpb.TensorProto { return floats(name, []int64{}, v) }
	m := mustImport(t, save(t, model(13, x, []*onnxpb.TensorProto{scalar("a", 2), scalar("b", 2), scalar("c", 3)},
		node("Mul", "1", in("x", "a"), in("p")), node("Mul", "2", in("p", "b"), in("q")), node("Mul", "3", in("q", "c"), in("y")))), Options{})
	if len(m.Graph.Consts) != 2 {
		t.Errorf("%d literals, want 2", len(m.Graph.Consts))
	}
	m = mustImport(t, save(t, model(13, x, []*onnxpb.TensorProto{scalar("a", 2), longs("s", 5000, 3)},
		node("Expand", "1", in("a", "s"), in("big")), node("Add", "2", in("x", "big"), in("y")))), Options{})
	if text := m.Graph.String(); len(m.Graph.Consts) != 0 || !strings.Contains(text, "Fill{") {
		t.Errorf("want a Fill:\n%s", text)
	}
	m = mustImport(t, save(t, model(13, x, []*onnxpb.TensorProto{scalar("a", 2), longs("s", 5<<20, 3)},
		node("Expand", "1", in("a", "s"), in("big")), node("Add", "2", in("x", "big"), in("y")))), Options{})
	if text := m.Graph.String(); !strings.Contains(text, "Expand{") || len(m.Graph.Consts) != 1 {
		t.Errorf("60 MiB were evaluated:\n%s", text)
	}
	table := floats("table", []int64{10000, 3})
	p := model(13, x, []*onnxpb.TensorProto{table}, node("Max", "2", in("x", "table"), in("y")))
	m = mustImport(t, save(t, p), Options{})
	if q := m.Graph.Param("table"); q == nil || q.Role != ir.Buffer || q.Trainable || len(m.Graph.Consts) != 0 {
		t.Errorf("want a buffer:\n%s", m.Graph)
	}
}

// TestCompact: a constant that was expanded to the whole batch is kept once, where the op broadcasts it anyway.
func TestCompact(t *testing.T) {
	x := []*onnxpb.ValueInfoProto{vi("x", float, 64, 4, 8)}
	inits := []*onnxpb.TensorProto{floats("val_1", []int64{1, 1, 8}), longs("s", 64, 4, 8)}
	m := mustImport(t, save(t, model(13, x, inits, node("Expand", "1", in("val_1", "s"), in("mask")), node("Max", "2", in("x", "mask"), in("y")))), Options{})
	if len(m.Graph.Consts) != 1 || !m.Graph.Consts[0].Type.Equal(ir.T(ir.F32, 1, 1, 8)) || !m.Graph.Result("y").Type.Equal(ir.T(ir.F32, 64, 4, 8)) {
		t.Errorf("%s", m.Graph)
	}
	one := []*onnxpb.ValueInfoProto{vi("x", float, 1, 1, 8)}
	m = mustImport(t, save(t, model(13, one, inits, node("Expand", "1", in("val_1", "s"), in("mask")), node("Max", "2", in("x", "mask"), in("y")))), Options{})
	if !m.Graph.Result("y").Type.Equal(ir.T(ir.F32, 64, 4, 8)) {
		t.Errorf("the result lost its type: %s", m.Graph)
	}
}

// TestFoldRounds: folding computes in the element type and not better.
func TestFoldRounds(t *testing.T) {
	m := mustImport(t, save(t, model(13, nil, []*onnxpb.TensorProto{floats("a", []int64{}, 1<<24), floats("b", []int64{}, 1), floats("c", []int64{}, -1<<24)},
		node("Add", "1", in("a", "b"), in("s")), node("Add", "2", in("s", "c"), in("y")))), Options{})
	if len(m.Graph.Nodes) != 0 || !bytes.Equal(m.Graph.Consts[0].Data, make([]byte, 4)) {
		t.Errorf("float32 gives 0:\n%s", m.Graph)
	}
}

func TestOutputs(t *testing.T) {
	m := mustImport(t, save(t, mlp()), Options{Dims: map[string]int64{"batch": 2}, Outputs: []string{"r"}})
	if len(m.Graph.Results) != 1 || m.Graph.Results[0].Name != "r" || m.Graph.Param("fc2.weight") != nil {
		t.Errorf("%s", m.Graph)
	}
}

func TestSelect(t *testing.T) {
	got := func(s ...Selection) (names []string) {
		m := mustImport(t, save(t, mlp()), Options{Dims: map[string]int64{"batch": 2}, Select: s})
		for _, p := range m.Graph.Params {
			if p.Trainable {
				names = append(names, p.Name)
			}
		}
		return names
	}
	if s := got(Selection{"*", false}, Selection{"*.bias", true}, Selection{"fc2.????", false}); !slices.Equal(s, []string{"fc1.bias"}) {
		t.Errorf("trained: %q", s)
	}
	if s := got(Selection{"fc1*", true}, Selection{"fc1*", false}); !slices.Equal(s, []string{"fc2.weight", "fc2.bias"}) {
		t.Errorf("trained: %q", s)
	}
}
