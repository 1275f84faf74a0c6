package importer

import (
	"path/filepath"
	"slices"
	"testing"

	"aitk/importer/onnxpb"
	"aitk/ir"
)

// TestRealLost: an import says exactly which parameters of the module its file has not in any form, for every export of every small model.
func TestRealLost(t *testing.T) {
	files, _ := filepath.Glob(filepath.Join(modelsDir, "*", "golden.json"))
	if len(files) == 0 {
		t.Skip("the real models lie outside the repository")
	}
	destroyed := 0
	for _, f := range files {
		name := filepath.Base(filepath.Dir(f))
		for _, o := range readGolden(t, name+"/golden.json").ONNX {
			m := importReal(t, name+"/"+o.File, Options{})
			var got []string
			for _, x := range m.Lost {
				if x.Code != FoldedBatchNorm && !slices.Contains(got, x.Parameter) {
					got = append(got, x.Parameter)
				}
			}
			folds := slices.ContainsFunc(m.Lost, func(x Finding) bool { return x.Code == FoldedBatchNorm })
			var want []string
			for p, where := range o.Elsewhere {
				if where.Missing {
					want = append(want, p)
				}
			}
			slices.Sort(got)
			slices.Sort(want)
			destroyed += len(want)
			if folds != (o.File == "trap_default_folded.onnx") {
				t.Errorf("%s/%s: batch norms folded: %v", name, o.File, folds)
			}
			if !folds && !slices.Equal(got, want) { // what was merged with a batch norm keeps its name and has other values
				t.Errorf("%s/%s: lost are %q, want %q", name, o.File, got, want)
			}
		}
	}
	if destroyed == 0 {
		t.Error("no export of the collection destroyed anything")
	}
}

// TestRaisedConstant: a tensor of a Constant node becomes a weight where the user names it, and only there.
func TestRaisedConstant(t *testing.T) {
	m := model(17, []*onnxpb.ValueInfoProto{vi("x", onnxpb.TensorProto_FLOAT, 2, 3)}, nil,
		node("Constant", "c", nil, in("scale"), attrTensor("value", floats("", []int64{3}, 1, 2, 3))), node("Mul", "m", in("x", "scale"), in("z")))
	path := save(t, m)
	if g := mustImport(t, path, Options{}).Graph; len(g.Params) != 0 {
		t.Errorf("a constant factor is a parameter: %v", g.Params[0].Name)
	}
	g := mustImport(t, path, Options{Select: []Selection{{"scale", true}}}).Graph
	if len(g.Params) != 1 || !g.Params[0].Trainable || g.Params[0].Role != ir.Weight || !g.Params[0].Type.Equal(ir.T(ir.F32, 3)) {
		t.Fatalf("--train scale gives %v", g)
	}
	for _, glob := range []string{"scal*", "other"} {
		if _, err := Import(path, Options{Select: []Selection{{glob, true}}}); ir.KindOf(err) != ir.Usage {
			t.Errorf("--train %s: %v", glob, err)
		}
	}
}

// TestFusedWeights: what ONNX Runtime's own ops take as a weight is one, and scales of a norm that an optimizer left nameless are told.
func TestFusedWeights(t *testing.T) {
	x := []*onnxpb.ValueInfoProto{vi("x", onnxpb.TensorProto_FLOAT, 2, 3)}
	fused := node("SkipLayerNormalization", "n", in("x", "x", "gamma", "beta", "bias"), in("y"))
	fused.Domain = new("com.microsoft")
	m := model(17, x, []*onnxpb.TensorProto{floats("gamma", []int64{3}, 1, 2, 3), floats("beta", []int64{3}, 1, 2, 3), floats("bias", []int64{3}, 1, 2, 3)}, fused)
	m.OpsetImport = append(m.OpsetImport, &onnxpb.OperatorSetIdProto{Domain: new("com.microsoft"), Version: new(int64(1))})
	trained := 0
	for _, p := range mustImport(t, save(t, m), Options{}).Graph.Params {
		if p.Trainable {
			trained++
		}
	}
	if trained != 3 {
		t.Errorf("%d of 3 weights of a fused norm train", trained)
	}
	scale := node("Mul", "s", in("c", "val_1"), in("d"))
	m = model(17, x, []*onnxpb.TensorProto{floats("val_1", []int64{3, 1}, 1, 2, 3), floats("val_2", []int64{3, 1}, 4, 5, 6), floats("one", []int64{3}, 1, 1, 1), floats("zero", []int64{3}), floats("val_9", []int64{3, 1}, 1, 2, 3)},
		node("Unsqueeze", "u", in("x", "last"), in("a")), node("InstanceNormalization", "n", in("a", "one", "zero"), in("c")), scale,
		node("Add", "b", in("d", "val_2"), in("e")), node("Mul", "unrelated", in("e", "val_9"), in("y")))
	m.Graph.Initializer = append(m.Graph.Initializer, longs("last", 2))
	findings, err := Lint(save(t, m), LintOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var hidden []string
	for _, f := range findings {
		if f.Code == HiddenWeight {
			hidden = append(hidden, f.Parameter)
		}
	}
	if !slices.Equal(hidden, []string{"val_1", "val_2"}) {
		t.Errorf("hidden weights %q, want the norm's scale and bias", hidden)
	}
	// A matrix whose product a named bias is added to is that layer's weight, in the module's orientation.
	for _, layer := range [][]*onnxpb.NodeProto{
		{node("MatMul", "m", in("x", "val_7"), in("a")), node("Add", "n", in("fc.bias", "a"), in("y"))},
		{node("Gemm", "m", in("x", "val_7", "fc.bias"), in("y"))},
	} {
		m = model(17, x, []*onnxpb.TensorProto{floats("val_7", []int64{3, 2}, 1, 2, 3, 4, 5, 6), floats("fc.bias", []int64{2}, 1, 2)}, layer...)
		g := mustImport(t, save(t, m), Options{}).Graph
		if p := g.Param("fc.weight"); p == nil || !p.Trainable || !p.Type.Shape.Equal(ir.Shape{2, 3}) || !slices.Equal(contents(t, g)["fc.weight"].F, []float64{1, 3, 5, 2, 4, 6}) {
			t.Errorf("%s beside fc.bias: %v", layer[0].GetOpType(), p)
		}
	}
	// A pattern that begins with letters reaches what stands where only a weight stands; "*" does not.
	m = model(17, x, []*onnxpb.TensorProto{floats("val_7", []int64{3, 2}, 1, 2, 3, 4, 5, 6), floats("val_8", []int64{2}, 1, 2)},
		node("MatMul", "m", in("x", "val_7"), in("a")), node("Mul", "n", in("a", "val_8"), in("y")))
	path := save(t, m)
	trains := func(glob string) (names []string) {
		got, err := Import(path, Options{Select: []Selection{{glob, true}}})
		if err != nil {
			return nil
		}
		for _, p := range got.Params {
			if p.Trainable {
				names = append(names, p.Name)
			}
		}
		return names
	}
	if got := trains("val_*"); !slices.Equal(got, []string{"val_7"}) {
		t.Errorf("--train val_* trains %q", got)
	}
	if got := trains("*"); got != nil {
		t.Errorf("--train * trains %q", got)
	}
}

// TestNamelessTie: a nameless head that holds the transpose of the embedding is the embedding; one with other values is not.
func TestNamelessTie(t *testing.T) {
	for _, c := range []struct {
		head []float32
		tied bool
	}{{[]float32{1, 3, 5, 2, 4, 6}, true}, {[]float32{1, 3, 5, 2, 4, 7}, false}} {
		m := model(17, []*onnxpb.ValueInfoProto{vi("ids", onnxpb.TensorProto_INT64, 2)}, []*onnxpb.TensorProto{floats("val_4", []int64{2, 3}, c.head...), floats("tok.weight", []int64{3, 2}, 1, 2, 3, 4, 5, 6)},
			node("Gather", "g", in("tok.weight", "ids"), in("a")), node("MatMul", "m", in("a", "val_4"), in("y")))
		path := save(t, m)
		g := mustImport(t, path, Options{}).Graph
		p := g.Param("tok.weight")
		if p == nil || slices.Contains(p.Aliases, "val_4") != c.tied || g.Param("val_4") != nil && c.tied {
			t.Errorf("tied %v: %v", c.tied, g)
		}
		if findings, err := Lint(path, LintOptions{}); err != nil || hasCode(findings, LostTie) != c.tied || hasCode(findings, HiddenWeight) == c.tied {
			t.Errorf("tied %v: lint says %v, %v", c.tied, findings, err)
		}
	}
}
