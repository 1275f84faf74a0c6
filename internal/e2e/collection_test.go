//go:build !long

package e2e

import "testing"

// thorough tells that time is no object: the tag long.
const thorough = false

// planned are the models of the collection that are planned in many ways by default: one of each kind.
func planned(t testing.TB) []run {
	return []run{
		{dir: small(t, "mlp_mnist"), file: "model.onnx", golden: "golden_adamw.json"},
		{dir: small(t, "cnn_mnist"), file: "model.onnx", golden: "golden.json"},
		{dir: small(t, "gpt_mini"), file: "model.onnx", golden: "golden.json"},
		batchNormTraining(t),
	}
}
