//go:build long

package e2e

import "testing"

// thorough tells that time is no object: the tag long.
const thorough = true

// sampled is the whole collection.
func sampled(all []run) []run { return all }

// planned is every model of the collection, once.
func planned(t testing.TB) (out []run) {
	for _, r := range collection(t) {
		if r.file == "model.onnx" && readGolden(t, r.dir+"/"+r.golden).unbuilt() == "" {
			out = append(out, r)
		}
	}
	return out
}
