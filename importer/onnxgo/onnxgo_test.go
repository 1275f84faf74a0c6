package onnxgo

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/owulveryck/onnx-go"
	"github.com/owulveryck/onnx-go/backend"
	"github.com/owulveryck/onnx-go/backend/testbackend"
	_ "github.com/owulveryck/onnx-go/backend/testbackend/onnx" // registers the cases
	"gorgonia.org/tensor"

	"aitk/importer"
	"aitk/importer/onnxpb"
	"aitk/ir"
)

var _ backend.ComputationBackend = (*Graph)(nil)

// close compares data of two tensors; NaN equals NaN.
func close(a, b any) bool {
	x, y := fmt.Sprint(a), fmt.Sprint(b)
	if x == y {
		return true
	}
	f, ok := a.([]float32)
	g, also := b.([]float32)
	if !ok || !also || len(f) != len(g) {
		return false
	}
	for i := range f {
		d := math.Abs(float64(f[i]) - float64(g[i]))
		if !(d <= 2e-6*max(1, math.Abs(float64(f[i])))) && f[i] == f[i] {
			return false
		}
	}
	return true
}

// outcome runs a case the way onnx-go's own harness does, and says in a word how it ended.
func outcome(tc *testbackend.TestCase) (word string) {
	defer func() {
		if r := recover(); r != nil {
			word = fmt.Sprint("panic: ", r)
		}
	}()
	g := NewGraph()
	if p, err := onnxpb.Read(bytes.NewReader(tc.ModelB), int64(len(tc.ModelB)), onnxpb.Limits{}); err == nil { // which onnx-go does not tell
		g.Opset = p.OpsetImport[0].GetVersion()
	}
	m := onnx.NewModel(g)
	if err := m.UnmarshalBinary(tc.ModelB); err != nil {
		return "onnx-go cannot decode it: " + err.Error()
	}
	for i, in := range tc.Input {
		if err := m.SetInput(i, in); err != nil {
			return "onnx-go: " + err.Error()
		}
	}
	if err := g.Run(); err != nil {
		return err.Error()
	}
	out, err := m.GetOutputTensors()
	if err != nil {
		return err.Error()
	}
	if len(out) != len(tc.ExpectedOutput) {
		return fmt.Sprintf("%d outputs, want %d", len(out), len(tc.ExpectedOutput))
	}
	for i, want := range tc.ExpectedOutput {
		if !out[i].Shape().Eq(want.Shape()) || !close(listOf(want.Data()), listOf(out[i].Data())) {
			return fmt.Sprintf("is %.60v of shape %v, want %.60v of shape %v", out[i].Data(), out[i].Shape(), want.Data(), want.Shape())
		}
	}
	return ""
}

// TestBackendCases runs the cases that onnx-go brings. Those that cannot pass are listed with the reason; the list is exact.
func TestBackendCases(t *testing.T) {
	passed, failed := 0, map[string]string{}
	for _, make := range testbackend.GetAllRegisteredTests() {
		tc := make()
		word := outcome(tc)
		if word == "" {
			passed++
			continue
		}
		failed[tc.Title] = word
	}
	var surprises []string
	for title, word := range failed {
		reason, ok := cannot()[title]
		if !ok || !strings.Contains(word, reason) {
			surprises = append(surprises, fmt.Sprintf("%s: %.200s", title, strings.ReplaceAll(word, "\n", " ")))
		}
	}
	for title := range cannot() {
		if failed[title] == "" {
			surprises = append(surprises, title+" passes and is listed as one that cannot")
		}
	}
	slices.Sort(surprises)
	for _, s := range surprises {
		t.Error(s)
	}
	t.Logf("%d of %d cases pass", passed, passed+len(failed))
}

// TestImport decodes a model with onnx-go and gets the graph that the importer makes: inputs, trainable weights, result.
func TestImport(t *testing.T) {
	w := NewGraph() // built as onnx-go would: y = x·w + b, twice the same operand
	node := func(name string, v tensor.Tensor) *Node {
		n := w.NewNode().(*Node)
		n.SetName(name)
		w.AddNode(n)
		n.value = v
		return n
	}
	f := func(s ...int) tensor.Tensor { return tensor.New(tensor.WithShape(s...), tensor.Of(tensor.Float32)) }
	x, y, weight, bias, h := node("x", f(2, 3)), node("y", f(2, 4)), node("fc.weight", f(3, 4)), node("fc.bias", f(4)), node("h", nil)
	apply := func(op string, attrs map[string]interface{}, out *Node, in ...*Node) {
		for i, n := range in {
			w.SetWeightedEdge(w.NewWeightedEdge(out, n, float64(i)))
		}
		if err := w.ApplyOperation(onnx.Operation{Name: op, Attributes: attrs}, out); err != nil {
			t.Fatal(err)
		}
	}
	apply("Gemm", map[string]interface{}{"alpha": float32(1)}, h, x, weight, bias)
	apply("Add", nil, y, h, h)
	m, err := w.Import(&onnx.Model{Input: []int64{x.id}, Output: []int64{y.id}}, importer.Options{})
	if err != nil {
		t.Fatal(err)
	}
	g := m.Graph
	if len(g.Inputs) != 1 || g.Inputs[0].Name != "x" || g.Param("fc.weight") == nil || !g.Param("fc.weight").Trainable || !g.Result("y").Type.Equal(ir.T(ir.F32, 2, 4)) {
		t.Errorf("got\n%v", g)
	}
	if !w.HasEdgeFromTo(y.id, h.id) || w.HasEdgeFromTo(h.id, y.id) || !w.HasEdgeBetween(h.id, y.id) || w.From(h.id).Len() != 3 || w.To(h.id).Len() != 1 || w.Nodes().Len() != 5 {
		t.Error("the graph's edges are not what was given")
	}
}
