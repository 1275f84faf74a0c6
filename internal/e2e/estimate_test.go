package e2e

import (
	"os"
	"path/filepath"
	"testing"

	"aitk/importer"
	"aitk/passes"
	"aitk/passes/estimate"
)

// The bytes of FLUX.1-dev's weights in nf4 are those that testdata/make/weight_bytes.py counts, to the byte. The graph has no weights beside it.
func TestEstimateWeightBytes(t *testing.T) {
	path := filepath.Join("..", "..", "..", "shared", "models", "full", "flux1-dev", "model.onnx")
	if _, err := os.Stat(path); err != nil {
		t.Skip("the large graphs are not beside the repository")
	}
	m, err := importer.Import(path, importer.Options{Dims: map[string]int64{"batch": 1, "img_tokens": 1024, "txt_tokens": 512}})
	check(t, err)
	ctx := &passes.Context{}
	for _, s := range []passes.Setting{{Key: "loss", Value: "mse"}, {Key: "lora", Value: "*attn.to_*:rank=16,alpha=16"}, {Key: "quantize", Value: "*:nf4"}, {Key: "no-eval", Value: "true"}} {
		check(t, ctx.Options.Set(s.Key, s.Value))
	}
	check(t, passes.Run(ctx, m.Graph, passes.Pipeline(), passes.Order()))
	var r estimate.Report
	r.Count(ctx.Program("step"))
	const packed, all = 6_692_806_656, 6_698_977_408
	if len(r.Weights) == 0 || r.Weights[0] != (estimate.Row{Name: "nf4/64", Tensors: 504, Bytes: packed}) || r.WeightBytes != all {
		t.Errorf("%+v, in all %d; want %d of %d", r.Weights, r.WeightBytes, packed, all)
	}
	// 19 double blocks with to_q, to_k, to_v, to_out.0 and to_add_out, 38 single ones with to_q, to_k, to_v, all 3072 by 3072: 16*(3072+3072) numbers each.
	if want := int64(19*5+38*3) * 16 * (3072 + 3072) * 4; r.AdapterBytes != want || r.GradientBytes != want || r.OptimizerBytes != 2*want {
		t.Errorf("adapters %d, gradients %d, optimizer %d; want %d", r.AdapterBytes, r.GradientBytes, r.OptimizerBytes, want)
	}
}
