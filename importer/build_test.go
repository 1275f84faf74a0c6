package importer

import (
	"encoding/binary"
	"math"
	"os"
	"path/filepath"
	"testing"

	"google.golang.org/protobuf/proto"

	"aitk/importer/onnxpb"
	"aitk/ir"
)

// Helpers that build small models.

func vi(name string, elem onnxpb.TensorProto_DataType, dims ...any) *onnxpb.ValueInfoProto {
	shape := &onnxpb.TensorShapeProto{}
	for _, d := range dims {
		dim := &onnxpb.TensorShapeProto_Dimension{}
		switch d := d.(type) {
		case int:
			dim.Value = &onnxpb.TensorShapeProto_Dimension_DimValue{DimValue: int64(d)}
		case string:
			dim.Value = &onnxpb.TensorShapeProto_Dimension_DimParam{DimParam: d}
		}
		shape.Dim = append(shape.Dim, dim)
	}
	return &onnxpb.ValueInfoProto{Name: proto.String(name), Type: &onnxpb.TypeProto{Value: &onnxpb.TypeProto_TensorType{
		TensorType: &onnxpb.TypeProto_Tensor{ElemType: proto.Int32(int32(elem)), Shape: shape}}}}
}

const (
	float  = onnxpb.TensorProto_FLOAT
	int64T = onnxpb.TensorProto_INT64
)

func floats(name string, shape []int64, xs ...float32) *onnxpb.TensorProto {
	t := &onnxpb.TensorProto{Name: proto.String(name), DataType: proto.Int32(int32(float)), Dims: shape}
	n := ir.Shape(shape).Elems()
	t.RawData = make([]byte, 4*n)
	for i := range n {
		x := float32(i) / 8
		if len(xs) > 0 {
			x = xs[int(i)%len(xs)]
		}
		binary.LittleEndian.PutUint32(t.RawData[4*i:], math.Float32bits(x))
	}
	return t
}

func longs(name string, xs ...int64) *onnxpb.TensorProto {
	return &onnxpb.TensorProto{Name: proto.String(name), DataType: proto.Int32(int32(int64T)), Dims: []int64{int64(len(xs))}, Int64Data: xs}
}

func node(op, name string, in, out []string, attrs ...*onnxpb.AttributeProto) *onnxpb.NodeProto {
	return &onnxpb.NodeProto{OpType: proto.String(op), Name: proto.String(name), Input: in, Output: out, Attribute: attrs}
}

func attrInt(name string, i int64) *onnxpb.AttributeProto {
	return &onnxpb.AttributeProto{Name: proto.String(name), I: proto.Int64(i), Type: onnxpb.AttributeProto_INT.Enum()}
}

func attrFloat(name string, f float32) *onnxpb.AttributeProto {
	return &onnxpb.AttributeProto{Name: proto.String(name), F: proto.Float32(f), Type: onnxpb.AttributeProto_FLOAT.Enum()}
}

func attrTensor(name string, t *onnxpb.TensorProto) *onnxpb.AttributeProto {
	return &onnxpb.AttributeProto{Name: proto.String(name), T: t, Type: onnxpb.AttributeProto_TENSOR.Enum()}
}

func in(names ...string) []string { return names }

// model is a graph whose outputs are the last node's.
func model(opset int64, inputs []*onnxpb.ValueInfoProto, inits []*onnxpb.TensorProto, nodes ...*onnxpb.NodeProto) *onnxpb.ModelProto {
	g := &onnxpb.GraphProto{Name: proto.String("g"), Node: nodes, Initializer: inits, Input: inputs}
	if len(nodes) > 0 {
		for _, o := range nodes[len(nodes)-1].Output[:1] {
			g.Output = append(g.Output, vi(o, float))
		}
	}
	return &onnxpb.ModelProto{IrVersion: proto.Int64(8), Graph: g, OpsetImport: []*onnxpb.OperatorSetIdProto{{Version: proto.Int64(opset)}}}
}

func save(t testing.TB, m *onnxpb.ModelProto) string {
	t.Helper()
	raw, err := proto.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return saveBytes(t, raw)
}

func saveBytes(t testing.TB, raw []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "m.onnx")
	if err := os.WriteFile(path, raw, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func mustImport(t testing.TB, path string, opt Options) *Model {
	t.Helper()
	m, err := Import(path, opt)
	if err != nil {
		t.Fatal(err)
	}
	if err := ir.Verify(m.Graph); err != nil {
		t.Fatal(err)
	}
	return m
}

// mlp is x -> Gemm -> Relu -> Gemm, with a dynamic batch.
func mlp() *onnxpb.ModelProto {
	return model(13, []*onnxpb.ValueInfoProto{vi("x", float, "batch", 4)},
		[]*onnxpb.TensorProto{floats("fc1.weight", []int64{3, 4}), floats("fc1.bias", []int64{3}), floats("fc2.weight", []int64{2, 3}), floats("fc2.bias", []int64{2})},
		node("Gemm", "/fc1/Gemm", in("x", "fc1.weight", "fc1.bias"), in("h"), attrInt("transB", 1)),
		node("Relu", "/Relu", in("h"), in("r")),
		node("Gemm", "/fc2/Gemm", in("r", "fc2.weight", "fc2.bias"), in("y"), attrInt("transB", 1)))
}
