package adapter

import (
	"encoding/binary"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"aitk/internal/safetensors"
	"aitk/ir"
)

func content(first float32, shape ...int64) Content {
	c := Content{Shape: shape}
	for i := range ir.Shape(shape).Elems() {
		c.Raw = binary.LittleEndian.AppendUint32(c.Raw, math.Float32bits(first+float32(i)/4))
	}
	return c
}

func entries() []Entry {
	return []Entry{
		{"blocks.0.attn.to_q", content(1, 4, 8), content(2, 6, 4), 1},
		{"blocks.0.attn.to_out.0", content(3, 2, 8), content(4, 6, 2), 1.5},
		{"conv_in", content(5, 4, 3, 3, 3), content(6, 8, 4, 1, 1), 2},
	}
}

// What is written in any style is found again under the authors' names, with the same scale.
func TestStyles(t *testing.T) {
	for _, style := range Styles() {
		for _, o := range []Options{{Style: style}, {Style: style, NoPrefix: style != Kohya}, {Style: style, Prefix: style.DefaultPrefix()}} {
			path := filepath.Join(t.TempDir(), "a.safetensors")
			if err := Write(path, entries(), o); err != nil {
				t.Fatal(err)
			}
			f, err := Open(path)
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range entries() {
				m, ok := f.Find(e.Module)
				if !ok {
					t.Fatalf("%s: no %q in %+v", style, e.Module, f.Modules)
				}
				scale := m.Alpha / float64(m.Rank())
				if style == PEFT { // the configuration says it
					scale = e.Scale
				}
				if !m.A.Type.Equal(ir.T(ir.F32, e.A.Shape...)) || !m.B.Type.Equal(ir.T(ir.F32, e.B.Shape...)) || scale != e.Scale {
					t.Errorf("%s: %q is %v, %v, scale %v", style, e.Module, m.A.Type, m.B.Type, scale)
				}
				raw, err := os.ReadFile(path)
				if err != nil {
					t.Fatal(err)
				}
				if got := raw[m.B.Init.File.Offset:][:m.B.Init.File.Bytes]; !slices.Equal(got, e.B.Raw) {
					t.Errorf("%s: %q: other bytes", style, e.Module)
				}
			}
			if list := f.Unused(); len(list) > 0 {
				t.Errorf("%s: unused %v", style, list)
			}
		}
	}
}

func TestConfig(t *testing.T) {
	dir := t.TempDir()
	if err := Write(filepath.Join(dir, "adapter_model.safetensors"), entries(), Options{Style: PEFT}); err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(filepath.Join(dir, "adapter_config.json"))
	if err != nil {
		t.Fatal(err)
	}
	var c config
	if err := json.Unmarshal(raw, &c); err != nil {
		t.Fatal(err)
	}
	if c.Rank != 4 || c.Alpha != 4 || c.RankPattern["blocks.0.attn.to_out.0"] != 2 || c.AlphaPattern["blocks.0.attn.to_out.0"] != 3 || c.AlphaPattern["conv_in"] != 8 || len(c.Targets) != 3 {
		t.Errorf("%+v", c)
	}
}

// PEFT keeps alphas beside the file: they come back from the file and from its folder, by pattern, and with use_rslora.
func TestConfigIsRead(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "adapter_model.safetensors")
	if err := Write(path, entries(), Options{Style: PEFT}); err != nil {
		t.Fatal(err)
	}
	for _, p := range []string{path, dir} {
		f, err := Open(p)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries() {
			if m, ok := f.Find(e.Module); !ok || m.Alpha != e.alpha() {
				t.Errorf("%s: %q has alpha %v, want %v", p, e.Module, m.Alpha, e.alpha())
			}
		}
	}
	for text, want := range map[string]float64{
		`{"r":2,"lora_alpha":32}`:                                 32,
		`{"r":2,"lora_alpha":32,"use_rslora":true}`:               32 * math.Sqrt(2),
		`{"lora_alpha":32,"alpha_pattern":{"q":8,"0.q":6,"x":3}}`: 6,
		`{}`: 2,
	} {
		write(t, path, map[string]Content{"base_model.model.layers.0.q.lora_A.weight": content(0, 2, 4), "base_model.model.layers.0.q.lora_B.weight": content(0, 3, 2)})
		if err := os.WriteFile(filepath.Join(dir, "adapter_config.json"), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		f, err := Open(path)
		if err != nil {
			t.Fatal(err)
		}
		if m, ok := f.Find("layers.0.q"); !ok || m.Alpha != want {
			t.Errorf("%s: alpha %v, want %v", text, m.Alpha, want)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "adapter_config.json"), []byte("{"), 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(path); err == nil || !strings.Contains(err.Error(), "adapter_config.json") {
		t.Error(err)
	}
}

// Keys as other tools write them.
func TestKeys(t *testing.T) {
	for _, c := range []struct{ a, b, module string }{
		{"base_model.model.layers.0.q.lora_A.weight", "base_model.model.layers.0.q.lora_B.weight", "layers.0.q"},
		{"base_model.model.layers.0.q.lora_A.default.weight", "base_model.model.layers.0.q.lora_B.default.weight", "layers.0.q"},
		{"base_model.model.model.layers.0.q.lora_A.weight", "base_model.model.model.layers.0.q.lora_B.weight", "model.layers.0.q"},
		{"transformer.blocks.1.to_k.lora_A.weight", "transformer.blocks.1.to_k.lora_B.weight", "blocks.1.to_k"},
		{"blocks.1.to_k.lora_A.weight", "blocks.1.to_k.lora_B.weight", "transformer.blocks.1.to_k"},
		{"unet.mid.to_q.lora.down.weight", "unet.mid.to_q.lora.up.weight", "mid.to_q"},
		{"lora_unet_single_blocks_1_linear1.lora_down.weight", "lora_unet_single_blocks_1_linear1.lora_up.weight", "single_blocks.1.linear1"},
		{"lora_te_layers_1_q.lora_down.weight", "lora_te_layers_1_q.lora_up.weight", "text_encoder.layers.1.q"},
	} {
		path := filepath.Join(t.TempDir(), "a.safetensors")
		write(t, path, map[string]Content{c.a: content(0, 2, 4), c.b: content(0, 3, 2)})
		f, err := Open(path)
		if err != nil {
			t.Fatal(err)
		}
		if m, ok := f.Find(c.module); !ok || m.Rank() != 2 || m.Alpha != 2 {
			t.Errorf("%s is not found in %+v", c.module, f.Modules)
		}
		if _, ok := f.Find("other"); ok {
			t.Error("a module that is not there is found")
		}
	}
}

func write(t *testing.T, path string, tensors map[string]Content) {
	t.Helper()
	var specs []safetensors.Spec
	for name, c := range tensors {
		specs = append(specs, safetensors.Spec{Name: name, Type: ir.T(ir.F32, c.Shape...)})
	}
	if err := safetensors.WriteFile(path, nil, specs, func(s safetensors.Spec) ([]byte, error) { return tensors[s.Name].Raw, nil }); err != nil {
		t.Fatal(err)
	}
}

func TestBadFiles(t *testing.T) {
	zero := Content{ir.Shape{}, make([]byte, 4)}
	for _, c := range []struct {
		want    string
		tensors map[string]Content
	}{
		{`tensor "w" is no part of an adapter`, map[string]Content{"w": content(0, 2)}},
		{`module "m" has not both A and B`, map[string]Content{"m.lora_A.weight": content(0, 2, 4)}},
		{`A [2,4] and B [3,3] do not multiply`, map[string]Content{"m.lora_A.weight": content(0, 2, 4), "m.lora_B.weight": content(0, 3, 3)}},
		{`"m.alpha" is f32[2], want one float`, map[string]Content{"m.lora_A.weight": content(0, 2, 4), "m.lora_B.weight": content(0, 3, 2), "m.alpha": content(0, 2)}},
		{`"m.alpha" is 0, want a number other than 0`, map[string]Content{"m.lora_A.weight": content(0, 2, 4), "m.lora_B.weight": content(0, 3, 2), "m.alpha": zero}},
		{"it holds no adapter", nil},
	} {
		path := filepath.Join(t.TempDir(), "a.safetensors")
		write(t, path, c.tensors)
		if _, err := Open(path); err == nil || !strings.Contains(err.Error(), c.want) || ir.KindOf(err) != ir.Usage {
			t.Errorf("%v, want %q", err, c.want)
		}
	}
	twice := []Entry{{"a.b", content(0, 2, 4), content(0, 3, 2), 1}, {"a_b", content(0, 2, 4), content(0, 3, 2), 1}}
	if err := Write(filepath.Join(t.TempDir(), "a.safetensors"), twice, Options{Style: Kohya}); err == nil {
		t.Error("two modules share a key")
	}
}

// A merged weight is the weight plus scale*B*A, in either orientation and for kernels.
func TestMerge(t *testing.T) {
	for _, c := range []struct {
		weight ir.Type
		a, b   Content
		inOut  bool
	}{
		{ir.T(ir.F32, 3, 4), content(1, 2, 4), content(-1, 3, 2), false},
		{ir.T(ir.F32, 4, 3), content(1, 2, 4), content(-1, 3, 2), true},
		{ir.T(ir.BF16, 3, 2, 2, 1), content(1, 2, 2, 2, 1), content(-1, 3, 2, 1, 1), false},
	} {
		d, err := NewDelta(c.weight, c.a, c.b, 0.5, c.inOut)
		if err != nil {
			t.Fatal(err)
		}
		w := ir.NewTensor(c.weight)
		for i := range w.F {
			w.F[i] = float64(i)
		}
		raw := w.Encode()
		if err := d.Apply(c.weight, raw); err != nil {
			t.Fatal(err)
		}
		got, err := ir.DecodeTensor(c.weight, raw)
		if err != nil {
			t.Fatal(err)
		}
		for o := range 3 {
			for i := range 4 {
				want := 0.0
				for k := range 2 {
					want += 0.5 * float64(d.B[o*2+k]) * float64(d.A[k*4+i])
				}
				at := o*4 + i
				if c.inOut {
					at = i*3 + o
				}
				if want += float64(at); math.Abs(got.F[at]-want) > 0.01*math.Abs(want) || c.weight.DType == ir.F32 && math.Abs(got.F[at]-want) > 1e-6 {
					t.Errorf("%v: element %d is %v, want %v", c.weight, at, got.F[at], want)
				}
			}
		}
	}
	if _, err := NewDelta(ir.T(ir.F32, 3, 5), content(1, 2, 4), content(-1, 3, 2), 1, false); err == nil {
		t.Error("a weight that does not fit is merged")
	}
}
