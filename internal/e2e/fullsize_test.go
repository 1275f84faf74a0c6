package e2e

import (
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"aitk/importer"
	"aitk/ir/op"
	"aitk/passes"
)

// TestFullSizeGraphs imports, lints and differentiates every graph of a full-size model without its weights, in seconds and in little memory, and
// finds an attention for each softmax that it has.
func TestFullSizeGraphs(t *testing.T) {
	files, _ := filepath.Glob(filepath.Join("..", "..", "..", "shared", "models", "full", "*", "model.onnx"))
	if len(files) == 0 {
		t.Skip("the graphs of full-size models are not at hand")
	}
	for _, path := range files {
		t.Run(filepath.Base(filepath.Dir(path)), func(t *testing.T) {
			start := time.Now()
			findings, err := importer.Lint(path, importer.LintOptions{})
			if err != nil || !importer.Trainable(findings) {
				t.Fatalf("lint: %v, %v", err, findings)
			}
			seen, err := importer.Inspect(path)
			if err != nil {
				t.Fatal(err)
			}
			dims := map[string]int64{}
			for _, d := range seen.Dims {
				dims[d.Name] = 2
				if !strings.Contains(d.Name, "batch") {
					dims[d.Name] = 48
				}
			}
			m, err := importer.Import(path, importer.Options{Dims: dims})
			if err != nil {
				t.Fatal(err)
			}
			ctx := &passes.Context{Options: passes.Options{Loss: passes.LossSpec{Name: "mse"}, Optimizer: passes.OptimizerSpec{Name: "sgd"}, StopAfter: "late-dce", NoEval: true}}
			if err := passes.Run(ctx, m.Graph, passes.Pipeline(), passes.Order()); err != nil {
				t.Fatal(err)
			}
			softmax, trained := 0, 0
			for _, n := range m.Graph.Nodes {
				if _, ok := n.Op.(op.Softmax); ok {
					softmax++
				}
			}
			for _, p := range m.Graph.Params {
				if p.Next != nil {
					trained++
				}
			}
			var mem runtime.MemStats
			runtime.ReadMemStats(&mem)
			t.Logf("%v, %d nodes, %d parameters change, %d MiB from the system", time.Since(start).Round(time.Millisecond), len(m.Graph.Nodes), trained, mem.Sys>>20)
			if softmax != 0 || trained == 0 {
				t.Errorf("%d softmaxes are left, %d parameters change: %q", softmax, trained, ctx.Notes)
			}
			if mem.Sys > 1<<30 {
				t.Errorf("%d bytes of memory", mem.Sys)
			}
		})
	}
}
