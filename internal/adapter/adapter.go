// Package adapter reads and writes low-rank adapters in the key styles of other tools, and adds them to the weights that they belong to. It
// knows names, safetensors files and matrices; it knows no graph, no pass and no training.
//
// A module is a layer by the name its author gave it (transformer_blocks.0.attn.to_q). Its adapter is A [rank, in...] and B [out, rank, 1...] and
// a number alpha: the layer's output gains alpha/rank * B(A(x)). Other scalings are written as the alpha that gives the same factor.
//
//	style      keys of a module
//	peft       base_model.model.<module>.lora_A.weight   .lora_B.weight   and adapter_config.json beside the file
//	diffusers  transformer.<module>.lora_A.weight   .lora_B.weight   .alpha where it is not the rank
//	kohya      lora_unet_<module, _ for .>.lora_down.weight   .lora_up.weight   .alpha
//
// Reading takes all of these, with and without prefix, and the older lora.down/lora.up and lora_linear_layer.down/up.
package adapter

import (
	"fmt"
	"strings"
)

// Style is a convention for keys.
type Style string

// The styles.
const (
	PEFT      Style = "peft"
	Diffusers Style = "diffusers"
	Kohya     Style = "kohya"
)

// Styles lists them.
func Styles() []Style { return []Style{PEFT, Diffusers, Kohya} }

// ParseStyle finds a style by name.
func ParseStyle(name string) (Style, error) {
	for _, s := range Styles() {
		if string(s) == name {
			return s, nil
		}
	}
	return "", fmt.Errorf("adapter style %q: want peft, diffusers or kohya", name)
}

// DefaultPrefix is what a style's keys begin with, its separator included.
func (s Style) DefaultPrefix() string {
	switch s {
	case PEFT:
		return "base_model.model."
	case Diffusers:
		return "transformer."
	}
	return "lora_unet_"
}

// keys are the names of a module's tensors.
func (s Style) keys(prefix, module string) (a, b, alpha string) {
	if s == Kohya {
		base := prefix + flat(module)
		return base + ".lora_down.weight", base + ".lora_up.weight", base + ".alpha"
	}
	base := prefix + module
	return base + ".lora_A.weight", base + ".lora_B.weight", base + ".alpha"
}

// part is what a key names within a module.
type part uint8

const (
	partNone part = iota
	partA
	partB
	partAlpha
)

// suffixes are the ends of keys, longer ones first where one ends in the other.
func suffixes() []struct {
	text string
	part part
} {
	return []struct {
		text string
		part part
	}{
		{".lora_A.weight", partA}, {".lora_B.weight", partB},
		{".lora_A.default.weight", partA}, {".lora_B.default.weight", partB},
		{".lora_down.weight", partA}, {".lora_up.weight", partB},
		{".lora.down.weight", partA}, {".lora.up.weight", partB},
		{".lora_linear_layer.down.weight", partA}, {".lora_linear_layer.up.weight", partB},
		{".alpha", partAlpha},
	}
}

// split cuts a key into module and part.
func split(key string) (module string, p part) {
	for _, s := range suffixes() {
		if m, ok := strings.CutSuffix(key, s.text); ok && m != "" {
			return m, s.part
		}
	}
	return "", partNone
}

// flat is a module's name with underscores for its dots.
func flat(module string) string { return strings.ReplaceAll(module, ".", "_") }

// prefixes are what tools put in front of a module's name.
func prefixes() []string {
	return []string{"base_model.model.", "base_model.", "transformer.", "unet.", "model.", "diffusion_model.", "text_encoder.", "text_encoder_2."}
}

// stripped lists a name, then the same without one prefix, two prefixes and so on.
func stripped(name string) []string {
	list := []string{name}
	for {
		rest, found := name, false
		for _, p := range prefixes() {
			if r, ok := strings.CutPrefix(name, p); ok && r != "" {
				rest, found = r, true
				break
			}
		}
		if !found {
			return list
		}
		name = rest
		list = append(list, name)
	}
}

// unkohya removes what kohya's keys begin with; ok is false for keys of another style.
func unkohya(name string) (string, bool) {
	for _, p := range []string{"lora_unet_", "lora_transformer_", "lora_te_", "lora_te1_", "lora_te2_", "lora_te3_"} {
		if r, ok := strings.CutPrefix(name, p); ok {
			return r, true
		}
	}
	return name, false
}
