package importer

import (
	"path/filepath"
	"slices"
	"testing"

	"google.golang.org/protobuf/proto"

	"aitk/importer/onnxpb"
)

// TestSparse: a sparse initializer is a weight like any other, by positions and by coordinates.
func TestSparse(t *testing.T) {
	for _, coordinates := range []bool{false, true} {
		m := model(13, []*onnxpb.ValueInfoProto{vi("x", float, 2, 3)}, nil, node("MatMul", "mm", in("x", "w"), in("y")))
		indices := longs("", 1, 5)
		if coordinates {
			indices = &onnxpb.TensorProto{DataType: proto.Int32(7), Dims: []int64{2, 2}, Int64Data: []int64{0, 1, 2, 1}}
		}
		m.Graph.SparseInitializer = []*onnxpb.SparseTensorProto{{Values: floats("w", []int64{2}, 7, 9), Indices: indices, Dims: []int64{3, 2}}}
		path, out := save(t, m), filepath.Join(t.TempDir(), "out.onnx")
		got := mustImport(t, path, Options{})
		if err := Export(path, out, ExportOptions{}); err != nil {
			t.Fatal(err)
		}
		if again := contents(t, mustImport(t, out, Options{}).Graph)["w"].F; !slices.Equal(again, contents(t, got.Graph)["w"].F) {
			t.Errorf("exported as %v", again)
		}
		w := contents(t, got.Graph)["w"].F
		for i, want := range []float64{0, 7, 0, 0, 0, 9} {
			if w[i] != want {
				t.Errorf("coordinates %v: element %d is %v, want %v", coordinates, i, w[i], want)
			}
		}
		if !got.Graph.Param("w").Trainable {
			t.Error("is no weight")
		}
	}
}
