package importer

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"aitk/importer/onnxpb"
	"aitk/ir"
)

// TestClassify pins the rule for files without metadata, name by name. A line is "name type role trained|frozen".
func TestClassify(t *testing.T) {
	x := []*onnxpb.ValueInfoProto{vi("x", float, 2, 4)}
	constant := func(name string, v *onnxpb.TensorProto) *onnxpb.NodeProto {
		return node("Constant", "const_"+name, nil, in(name), attrTensor("value", v))
	}
	for _, c := range []struct {
		name string
		m    *onnxpb.ModelProto
		want []string
	}{
		{"weight, bias, scale", model(13, x, []*onnxpb.TensorProto{floats("w", []int64{4, 3}), floats("b", []int64{3}), floats("s", []int64{3})},
			node("MatMul", "m", in("x", "w"), in("h")), node("Add", "a", in("h", "b"), in("i")), node("Mul", "s", in("i", "s"), in("y"))),
			[]string{"w f32[4,3] weight trained", "b f32[3] weight trained", "s f32[3] weight trained"}},
		{"through ops that move", model(13, x, []*onnxpb.TensorProto{floats("w", []int64{3, 4})},
			node("Identity", "i", in("w"), in("w2")), node("Transpose", "t", in("w2"), in("w3")), node("MatMul", "m", in("x", "w3"), in("y"))),
			[]string{"w f32[3,4] weight trained"}},
		{"buffers by name", model(13, x, []*onnxpb.TensorProto{floats("rope.inv_freq", []int64{20000}), floats("w", []int64{4, 20000})},
			node("MatMul", "m", in("x", "w"), in("h")), node("Mul", "s", in("h", "rope.inv_freq"), in("y"))),
			[]string{"rope.inv_freq f32[20000] buffer frozen", "w f32[4,20000] weight trained"}},
		{"tables of a rotary embedding", model(13, x, []*onnxpb.TensorProto{floats("rope.freqs_cos", []int64{20000}), floats("rope.sin_cached", []int64{20000}), floats("w", []int64{4, 20000})},
			node("MatMul", "m", in("x", "w"), in("h")), node("Mul", "c", in("h", "rope.freqs_cos"), in("i")), node("Mul", "s", in("i", "rope.sin_cached"), in("y"))),
			[]string{"rope.freqs_cos f32[20000] buffer frozen", "rope.sin_cached f32[20000] buffer frozen", "w f32[4,20000] weight trained"}},
		{"a traced call's result", model(13, x, []*onnxpb.TensorProto{floats("unsqueeze_1", []int64{1, 20000}), floats("w", []int64{4, 20000})},
			node("MatMul", "m", in("x", "w"), in("h")), node("Mul", "s", in("h", "unsqueeze_1"), in("y"))),
			[]string{"unsqueeze_1 f32[1,20000] buffer frozen", "w f32[4,20000] weight trained"}},
		{"a norm without a scale", model(17, x, []*onnxpb.TensorProto{floats("val_3", []int64{4}, 1, 1, 1, 1), floats("val_4", []int64{4}, 1, 2, 1, 1)},
			node("LayerNormalization", "/a/norm/LayerNormalization", in("x", "val_3"), in("h")), node("LayerNormalization", "/b/norm/LayerNormalization", in("h", "val_4"), in("y"))),
			[]string{"b.norm.weight f32[4] weight trained"}},
		{"scalars are constants", model(13, x, []*onnxpb.TensorProto{floats("alpha", nil)}, node("Mul", "s", in("x", "alpha"), in("y"))), nil},
		{"constants that nobody weighs with", model(13, x, []*onnxpb.TensorProto{floats("limit", []int64{4})}, node("Max", "s", in("x", "limit"), in("y"))), nil},
		{"temporary without a scope", model(13, x, []*onnxpb.TensorProto{floats("val_7", []int64{4, 20000})}, node("MatMul", "s", in("x", "val_7"), in("y"))),
			[]string{"val_7 f32[4,20000] buffer frozen"}},
		{"temporary with a scope", model(13, x, []*onnxpb.TensorProto{floats("onnx::MatMul_7", []int64{4, 3}), floats("onnx::Conv_9", []int64{2, 3, 1})},
			node("MatMul", "/layers/layers.0/fc/MatMul", in("x", "onnx::MatMul_7"), in("h")), node("Unsqueeze", "u", in("h", "axes"), in("i")),
			node("Conv", "/conv/Conv", in("i", "onnx::Conv_9"), in("y"))),
			[]string{"layers.0.fc.weight f32[3,4] weight trained", "conv.weight f32[2,3,1] weight trained"}},
		{"temporary whose name is taken", model(13, x, []*onnxpb.TensorProto{floats("onnx::MatMul_7", []int64{4, 3}), floats("fc.weight", []int64{3})},
			node("MatMul", "/fc/MatMul", in("x", "onnx::MatMul_7"), in("h")), node("Add", "a", in("h", "fc.weight"), in("y"))),
			[]string{"onnx::MatMul_7 f32[3,4] weight trained", "fc.weight f32[3] weight trained"}},
		{"weight in a Constant", model(13, x, nil, constant("w", floats("", []int64{4, 3})), constant("mask", floats("", []int64{3})),
			node("MatMul", "m", in("x", "w"), in("h")), node("Add", "a", in("h", "mask"), in("y"))),
			[]string{"w f32[4,3] weight trained"}},
		{"weight in a ConstantOfShape", model(13, x, []*onnxpb.TensorProto{longs("s", 4, 3)}, node("ConstantOfShape", "c", in("s"), in("w"), attrTensor("value", floats("", []int64{1}, 0.5))),
			node("MatMul", "m", in("x", "w"), in("y"))),
			[]string{"w f32[4,3] weight trained"}},
		{"listed as an input too", func() *onnxpb.ModelProto {
			m := model(13, append(slices.Clone(x), vi("w", float, 4, 3)), []*onnxpb.TensorProto{floats("w", []int64{4, 3})}, node("MatMul", "m", in("x", "w"), in("y")))
			m.IrVersion = proto.Int64(3)
			return m
		}(), []string{"w f32[4,3] weight trained"}},
		{"equal when exported", model(13, x, []*onnxpb.TensorProto{floats("ln1.weight", []int64{4})},
			node("Identity", "i", in("ln1.weight"), in("ln2.weight")), node("Mul", "a", in("x", "ln1.weight"), in("h")), node("Mul", "b", in("h", "ln2.weight"), in("y"))),
			[]string{"ln1.weight f32[4] weight trained", "ln2.weight f32[4] weight trained"}},
		{"statistics", model(15, x, []*onnxpb.TensorProto{floats("s", []int64{4}), floats("b", []int64{4}), floats("m", []int64{4}), floats("v", []int64{4})},
			node("BatchNormalization", "bn", in("x", "s", "b", "m", "v"), in("y"))),
			[]string{"s f32[4] weight trained", "b f32[4] weight trained", "m f32[4] statistic frozen", "v f32[4] statistic frozen"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if strings.Contains(c.name, "with a scope") {
				c.m.Graph.Initializer = append(c.m.Graph.Initializer, longs("axes", -1))
			}
			m := mustImport(t, save(t, c.m), Options{})
			var got []string
			for _, p := range m.Graph.Params {
				word := "frozen"
				if p.Trainable {
					word = "trained"
				}
				got = append(got, fmt.Sprint(p.Name, " ", p.Type, " ", p.Role, " ", word))
				if p.Reason == "" {
					t.Errorf("%s has no reason", p.Name)
				}
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("got\n  %s\nwant\n  %s", strings.Join(got, "\n  "), strings.Join(c.want, "\n  "))
			}
		})
	}
}

// TestPromote: a buffer trains where it is named outright.
func TestPromote(t *testing.T) {
	m := model(13, []*onnxpb.ValueInfoProto{vi("x", float, 2, 4)}, []*onnxpb.TensorProto{floats("limit", []int64{4})}, node("Max", "s", in("x", "limit"), in("y")))
	g := mustImport(t, save(t, m), Options{Select: []Selection{{"limit", true}}}).Graph
	if p := g.Param("limit"); p == nil || !p.Trainable {
		t.Errorf("%s", g)
	}
	if _, err := Import(save(t, m), Options{Select: []Selection{{"*", true}}}); ir.KindOf(err) != ir.Usage {
		t.Errorf("a pattern promoted a buffer: %v", err)
	}
}

// TestPromoteScalar: a scalar is a constant until it is named outright, as a learned temperature is.
func TestPromoteScalar(t *testing.T) {
	m := model(13, []*onnxpb.ValueInfoProto{vi("x", float, 2, 4)}, []*onnxpb.TensorProto{floats("logit_scale", nil, 2)},
		node("Exp", "e", in("logit_scale"), in("s")), node("Mul", "m", in("x", "s"), in("y")))
	g := mustImport(t, save(t, m), Options{Select: []Selection{{"logit_scale", true}}}).Graph
	if p := g.Param("logit_scale"); p == nil || !p.Trainable || p.Role != ir.Weight || !p.Type.Equal(ir.T(ir.F32)) {
		t.Errorf("%s", g)
	}
	for _, glob := range []string{"*", "logit*"} {
		if _, err := Import(save(t, m), Options{Select: []Selection{{glob, true}}}); ir.KindOf(err) != ir.Usage {
			t.Errorf("--train %s promoted a scalar: %v", glob, err)
		}
	}
}

// TestTypedData: each field of a tensor decodes, whichever type it holds.
func TestTypedData(t *testing.T) {
	half := func(d onnxpb.TensorProto_DataType, bits ...int32) *onnxpb.TensorProto {
		return &onnxpb.TensorProto{DataType: proto.Int32(int32(d)), Dims: []int64{int64(len(bits))}, Int32Data: bits}
	}
	for _, c := range []struct {
		name string
		p    *onnxpb.TensorProto
		want string
	}{
		{"float", &onnxpb.TensorProto{DataType: proto.Int32(1), Dims: []int64{2}, FloatData: []float32{1.5, -2}}, "[1.5 -2] []"},
		{"double", &onnxpb.TensorProto{DataType: proto.Int32(11), Dims: []int64{1}, DoubleData: []float64{1e300}}, "[1e+300] []"},
		{"half", half(onnxpb.TensorProto_FLOAT16, 0x3e00, 0xc000), "[1.5 -2] []"},
		{"bfloat16", half(onnxpb.TensorProto_BFLOAT16, 0x3fc0, 0xc000), "[1.5 -2] []"},
		{"int64", longs("", -5, math.MaxInt64), "[] [-5 9223372036854775807]"},
		{"int32", half(onnxpb.TensorProto_INT32, -7, 7), "[] [-7 7]"},
		{"int8", half(onnxpb.TensorProto_INT8, -7, 127), "[] [-7 127]"},
		{"uint8", half(onnxpb.TensorProto_UINT8, 200), "[] [200]"},
		{"bool", half(onnxpb.TensorProto_BOOL, 0, 1), "[] [0 1]"},
		{"empty", &onnxpb.TensorProto{DataType: proto.Int32(1), Dims: []int64{0, 3}}, "[] []"},
	} {
		f := &file{path: "m.onnx"}
		x, err := f.tensor(c.p)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		y, err := ir.DecodeTensor(x.typ, x.init.Literal)
		if got := fmt.Sprint(y.F, " ", y.I); err != nil || got != c.want {
			t.Errorf("%s: %s, %v, want %s", c.name, got, err, c.want)
		}
	}
}

// TestTransposedLiteral: a weight that is held in memory is turned there.
func TestTransposedLiteral(t *testing.T) {
	w := &onnxpb.TensorProto{Name: proto.String("onnx::MatMul_3"), DataType: proto.Int32(1), Dims: []int64{2, 3}, FloatData: []float32{1, 2, 3, 4, 5, 6}}
	m := model(13, []*onnxpb.ValueInfoProto{vi("x", float, 1, 2)}, []*onnxpb.TensorProto{w}, node("MatMul", "/fc/MatMul", in("x", "onnx::MatMul_3"), in("y")))
	g := mustImport(t, save(t, m), Options{}).Graph
	p := g.Param("fc.weight")
	if p == nil || !p.Type.Equal(ir.T(ir.F32, 3, 2)) || p.Init.File.Transposed {
		t.Fatalf("%s", g)
	}
	if got := fmt.Sprint(contents(t, g)["fc.weight"].F); got != "[1 4 2 5 3 6]" {
		t.Errorf("%s", got)
	}
}

// TestMetadata reads what PyTorch writes beside a graph.
func TestMetadata(t *testing.T) {
	g := &onnxpb.GraphProto{MetadataProps: []*onnxpb.StringStringEntryProto{{Key: proto.String(keySignature),
		Value: proto.String("\n# inputs\np_fc_weight: PARAMETER target='fc.weight'\nb_pos: BUFFER target='pos' persistent=True\nx: USER_INPUT\n")}},
		ValueInfo: []*onnxpb.ValueInfoProto{{Name: proto.String("val_3"), MetadataProps: []*onnxpb.StringStringEntryProto{
			{Key: proto.String(keyFolded), Value: proto.String(`['fc.weight', "it's"]`)}}}}}
	m := readMetadata(g)
	if got := fmt.Sprint(m.order, m.kind["pos"], m.input["fc.weight"], m.foldedFrom["val_3"]); got != "[fc.weight pos]BUFFERp_fc_weight[fc.weight it's]" {
		t.Errorf("%s", got)
	}
	for _, s := range []string{"", "[", "['a'", "['a", "x", `["a']`} {
		if l := pythonList(s); len(l) != 0 && s != "['a'" {
			t.Errorf("%q is no list, read %q", s, l)
		}
	}
	for _, c := range []struct{ name, namespace, module, call string }{
		{"/layer1/layer1.0/conv1/Conv", "", "layer1.0.conv1", "Conv"},
		{"/fc/Gemm", "", "fc", "Gemm"},
		{"/Relu", "", "", "Relu"},
		{"Relu_1", "", "", ""},
		{"n", ": M/fc1: torch.nn.modules.linear.Linear/linear: aten.linear.default", "fc1", "aten.linear.default"},
		{"n", "view: aten.view.default", "", "aten.view.default"},
	} {
		n := node("X", c.name, nil, nil)
		if c.namespace != "" {
			n.MetadataProps = []*onnxpb.StringStringEntryProto{{Key: proto.String(keyNamespace), Value: proto.String(c.namespace)}}
		}
		if s := scopeOf(n); s.module != c.module || s.call != c.call {
			t.Errorf("%q %q: %+v", c.name, c.namespace, s)
		}
	}
}
