package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"aitk/importer"
	"aitk/ir/plan"
	"aitk/passes"
	"aitk/passes/cost"
)

// fullSize lists the graphs of full-size models; it skips the test where there are none.
func fullSize(t *testing.T) []string {
	files, _ := filepath.Glob(filepath.Join("..", "..", "..", "shared", "models", "full", "*", "model.onnx"))
	if len(files) == 0 {
		t.Skip("the graphs of full-size models are not at hand")
	}
	return files
}

// torchSaved is what about.json says of the bytes that PyTorch's autograd saves for the backward half.
type torchSaved struct {
	Inputs map[string][]int64
	Plain  struct{ Bytes int64 }
}

// TestNothingIsKeptThatNeedNotBe: without a budget and with every parameter trained, no more bytes live from the forward to the backward half than PyTorch
// saves with fused attention.
func TestNothingIsKeptThatNeedNotBe(t *testing.T) {
	for _, path := range fullSize(t) {
		var about struct {
			Saved *torchSaved `json:"torch_saved_bytes"`
		}
		raw, err := os.ReadFile(filepath.Join(filepath.Dir(path), "about.json"))
		if err != nil || json.Unmarshal(raw, &about) != nil || about.Saved == nil || about.Saved.Plain.Bytes == 0 {
			continue
		}
		t.Run(filepath.Base(filepath.Dir(path)), func(t *testing.T) {
			p := planFull(t, path, dimsOf(t, path, about.Saved.Inputs), passes.MemoryOptions{BudgetBytes: -1, HostBudgetBytes: -1},
				passes.Setting{Key: "loss", Value: "mse"}, passes.Setting{Key: "optimizer", Value: "sgd"}, passes.Setting{Key: "no-eval", Value: "true"})
			t.Logf("%d bytes saved, PyTorch %d", p.Report.SavedBytes, about.Saved.Plain.Bytes)
			if p.Report.SavedBytes > about.Saved.Plain.Bytes || p.Report.RecomputedNodes != 0 {
				t.Errorf("%d bytes saved with %d nodes recomputed, PyTorch saves %d", p.Report.SavedBytes, p.Report.RecomputedNodes, about.Saved.Plain.Bytes)
			}
		})
	}
}

// dimsOf binds a graph's dimensions by the shapes of its inputs.
func dimsOf(t *testing.T, path string, shapes map[string][]int64) map[string]int64 {
	t.Helper()
	seen, err := importer.Inspect(path)
	check(t, err)
	dims := map[string]int64{}
	for _, in := range seen.Inputs {
		for axis, size := range shapes[in.Name] {
			if name := in.Shape[axis]; slices.ContainsFunc(seen.Dims, func(d importer.Dim) bool { return d.Name == name }) {
				dims[name] = size
			}
		}
	}
	return dims
}

// planFull plans a graph without its weights for a card. Compile holds the plan against the independent checker.
func planFull(t *testing.T, path string, dims map[string]int64, o passes.MemoryOptions, settings ...passes.Setting) *plan.Plan {
	t.Helper()
	p, err := tryFull(t, path, dims, o, settings...)
	check(t, err)
	return p
}

// tryFull is planFull that returns the smallest plan and why where nothing fits.
func tryFull(t *testing.T, path string, dims map[string]int64, o passes.MemoryOptions, settings ...passes.Setting) (*plan.Plan, error) {
	t.Helper()
	m, err := importer.Import(path, importer.Options{Dims: dims})
	check(t, err)
	ctx := &passes.Context{}
	for _, s := range settings {
		check(t, ctx.Options.Set(s.Key, s.Value))
	}
	check(t, passes.Run(ctx, m.Graph, passes.Pipeline(), passes.Order()))
	o.Profile, err = cost.GPU("rtx-3090")
	check(t, err)
	return passes.Compile(ctx, o)
}
