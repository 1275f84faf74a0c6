package adapter

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"aitk/internal/durable"
	"aitk/internal/safetensors"
	"aitk/ir"
)

// Entry is the adapter of one layer, to be written.
type Entry struct {
	Module string
	A, B   Content
	Scale  float64 // of B*A; written as alpha = Scale * rank
}

// Content is a float32 tensor in memory, row-major and little-endian.
type Content struct {
	Shape ir.Shape
	Raw   []byte
}

// Options of Write.
type Options struct {
	Style    Style
	Prefix   string // "": the style's own
	NoPrefix bool   // keys begin with the module
	Metadata map[string]string
}

func (o *Options) prefix() string {
	switch {
	case o.NoPrefix:
		return ""
	case o.Prefix != "":
		return o.Prefix
	}
	return o.Style.DefaultPrefix()
}

// Write writes adapters to a safetensors file, which is replaced as a whole or not at all. In style peft it writes adapter_config.json beside it.
// The same entries give the same bytes.
func Write(path string, entries []Entry, o Options) error {
	var specs []safetensors.Spec
	content := map[string][]byte{}
	add := func(name string, c Content) error {
		if _, taken := content[name]; taken {
			return fmt.Errorf("two modules would be written as %q: choose another style", name)
		}
		content[name] = c.Raw
		specs = append(specs, safetensors.Spec{Name: name, Type: ir.T(ir.F32, c.Shape...)})
		return nil
	}
	for _, e := range entries {
		a, b, alpha := o.Style.keys(o.prefix(), e.Module)
		if err := add(a, e.A); err != nil {
			return err
		}
		if err := add(b, e.B); err != nil {
			return err
		}
		if o.Style == Kohya || o.Style == Diffusers && e.alpha() != float64(e.rank()) {
			raw := binary.LittleEndian.AppendUint32(nil, math.Float32bits(float32(e.alpha())))
			if err := add(alpha, Content{ir.Shape{}, raw}); err != nil {
				return err
			}
		}
	}
	metadata := map[string]string{"format": "pt"}
	maps.Copy(metadata, o.Metadata)
	if o.Style == Kohya && len(entries) > 0 {
		metadata["ss_network_module"] = "networks.lora"
		metadata["ss_network_dim"], metadata["ss_network_alpha"] = fmt.Sprint(entries[0].rank()), fmt.Sprint(entries[0].alpha())
	}
	if err := safetensors.WriteFile(path, metadata, specs, func(s safetensors.Spec) ([]byte, error) { return content[s.Name], nil }); err != nil {
		return err
	}
	if o.Style != PEFT {
		return nil
	}
	return writeConfig(filepath.Join(filepath.Dir(path), configFile), entries)
}

func (e *Entry) rank() int64    { return e.A.Shape[0] }
func (e *Entry) alpha() float64 { return e.Scale * float64(e.rank()) }

// config is PEFT's adapter_config.json, as far as it says anything.
type config struct {
	PeftType     string             `json:"peft_type"`
	Inference    bool               `json:"inference_mode"`
	Rank         int64              `json:"r"`
	Alpha        float64            `json:"lora_alpha"`
	Dropout      float64            `json:"lora_dropout"`
	RSLoRA       bool               `json:"use_rslora,omitempty"`
	Bias         string             `json:"bias"`
	FanInFanOut  bool               `json:"fan_in_fan_out"`
	Targets      []string           `json:"target_modules"`
	RankPattern  map[string]int64   `json:"rank_pattern"`
	AlphaPattern map[string]float64 `json:"alpha_pattern"`
}

// writeConfig names each module in full. The first entry's rank and alpha are the rule, others are patterns.
func writeConfig(path string, entries []Entry) error {
	c := config{PeftType: "LORA", Inference: true, Bias: "none", RankPattern: map[string]int64{}, AlphaPattern: map[string]float64{}}
	for i, e := range entries {
		if i == 0 {
			c.Rank, c.Alpha = e.rank(), e.alpha()
		}
		if e.rank() != c.Rank {
			c.RankPattern[e.Module] = e.rank()
		}
		if e.alpha() != c.Alpha {
			c.AlphaPattern[e.Module] = e.alpha()
		}
		c.Targets = append(c.Targets, e.Module)
	}
	slices.Sort(c.Targets)
	raw, err := json.MarshalIndent(c, "", "  ")
	if err != nil {
		return err
	}
	return durable.WriteFile(path, func(w io.Writer) error {
		_, err := w.Write(append(raw, '\n'))
		return err
	})
}

// IsParam tells whether a parameter's name is that of an adapter, and of which module and half.
func IsParam(name string) (module string, isB, ok bool) {
	if m, found := strings.CutSuffix(name, ".lora_A.weight"); found {
		return m, false, true
	}
	if m, found := strings.CutSuffix(name, ".lora_B.weight"); found {
		return m, true, true
	}
	return "", false, false
}
