package e2e

import (
	"path/filepath"
	"strings"
	"testing"

	"aitk/importer"
	"aitk/passes"
)

// TestRaisedForms counts what is recognised in graphs of full-size models, whose weights are not needed.
func TestRaisedForms(t *testing.T) {
	for _, want := range []struct {
		model            string
		attentions, rmsn int64
	}{
		{"bert-large", 24, 0},
		{"clip-l-text", 12, 0},
		{"flux-vae-decoder", 1, 0},
		{"flux-vae-encoder", 1, 0},
		{"flux1-dev", 57, 152},
		{"flux1-dev-op23", 57, 0},
		{"gpt2-xl", 48, 0},
		{"llama3-8b", 32, 65},
		{"llama3-8b-op23", 32, 0},
		{"ltx-video-2b", 56, 168},
		{"resnet50", 0, 0},
		{"sd15-unet-512", 32, 0},
		{"sd15-unet-512-op23", 32, 0},
		{"sdxl-unet-1024", 140, 0},
		{"t5-xxl-encoder", 24, 49},
		{"vit-l-16", 24, 0},
		{"wan21-t2v-14b-480p", 80, 160},
		{"wan21-t2v-1b-480p", 60, 120},
		{"whisper-small", 36, 0},
	} {
		t.Run(want.model, func(t *testing.T) {
			path := filepath.Join("..", "..", "..", "shared", "models", "full", want.model, "model.onnx")
			seen, err := importer.Inspect(path)
			if err != nil {
				t.Skipf("the graphs of full-size models are not at hand: %v", err)
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
			ctx := &passes.Context{Options: passes.Options{StopAfter: "dce"}}
			if err := passes.Run(ctx, m.Graph, passes.Pipeline(), passes.Order()); err != nil {
				t.Fatal(err)
			}
			counts := map[string]int64{}
			for _, s := range ctx.Stats {
				for _, c := range s.Counts {
					counts[c.What] += c.N
				}
			}
			t.Log(counts["attentions"], counts["RMSNorms"], counts["LayerNorms"], counts["Gelus"], counts["Swishes"], ctx.Notes)
			if counts["attentions"] != want.attentions || counts["RMSNorms"] != want.rmsn {
				t.Errorf("recognised %d attentions and %d RMSNorms, want %d and %d; %q", counts["attentions"], counts["RMSNorms"], want.attentions, want.rmsn, ctx.Notes)
			}
		})
	}
}
