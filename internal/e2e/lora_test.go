package e2e

import (
	"path/filepath"
	"testing"

	"aitk/passes"
)

// fluxLoRA is the golden training of adapters: the globs name exactly its modules.
func fluxLoRA(t testing.TB, file string, more ...passes.Setting) run {
	dir := small(t, "flux_mini")
	r := run{dir: dir, file: file, golden: "golden_lora.json"}
	for _, glob := range []string{"*attn.to_q", "*attn.to_k", "*attn.to_v", "*attn.to_out.0"} {
		r.set = append(r.set, passes.Setting{Key: "lora", Value: glob + ":rank=4,alpha=4,init=" + filepath.Join(dir, "lora_init.safetensors")})
	}
	r.set = append(r.set, more...)
	return r
}
