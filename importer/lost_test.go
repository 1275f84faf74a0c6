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
