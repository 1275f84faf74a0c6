//go:build !long

package e2e

import (
	"path/filepath"
	"testing"
)

// thorough tells that time is no object: the tag long.
const thorough = false

// sampled is the part of the collection that is trained by default: each model once and the perceptron in all variants, but not those that take minutes.
func sampled(all []run) (out []run) {
	slow := map[string]bool{"flux_mini": true, "unet_sd_mini": true, "wan_mini": true, "gru_char": true, "lstm_char": true, "resnet18_mini": true}
	for _, r := range all {
		model := filepath.Base(r.dir)
		if model == "mlp_digits" || r.golden == "golden.json" && (r.file == "model.onnx" && !slow[model] || model == "gpt_mini") {
			out = append(out, r)
		}
	}
	return out
}

// planned are the models of the collection that are planned in many ways by default: one of each kind.
func planned(t testing.TB) []run {
	return []run{
		{dir: small(t, "mlp_mnist"), file: "model.onnx", golden: "golden_adamw.json"},
		{dir: small(t, "cnn_mnist"), file: "model.onnx", golden: "golden.json"},
		{dir: small(t, "gpt_mini"), file: "model.onnx", golden: "golden.json"},
		{dir: small(t, "resnet18_mini"), file: "model_ts.onnx", golden: "golden.json", batchNorm: "train"},
	}
}
