package e2e

import (
	"bytes"
	"context"
	"encoding/binary"
	"flag"
	"math"
	"os"
	"path/filepath"
	"testing"

	"aitk/internal/adapter"
	"aitk/internal/safetensors"
	"aitk/ir"
	"aitk/ir/plan"
	"aitk/passes"
	"aitk/runtime"
	"aitk/runtime/cpu"
)

// adapterOut is where TestAdapterFiles leaves what testdata/make/check_adapter.py holds against other libraries.
var adapterOut = flag.String("adapter-out", "", "folder for the adapter files of TestAdapterFiles")

// entriesOf are the adapters of a plan with their contents.
func entriesOf(t testing.TB, p *plan.Plan, content map[string][]byte) []adapter.Entry {
	t.Helper()
	list, err := plan.Adapters(p.Options)
	check(t, err)
	shape := map[string]ir.Shape{}
	for _, q := range p.Params {
		shape[q.Name] = q.Type.Shape
	}
	var out []adapter.Entry
	for _, a := range list {
		out = append(out, adapter.Entry{Module: a.Module(), Scale: a.Scale,
			A: adapter.Content{Shape: shape[a.A], Raw: content[a.A]}, B: adapter.Content{Shape: shape[a.B], Raw: content[a.B]}})
	}
	return out
}

// predict runs program eval on a batch and returns the model's output.
func (x *trainer) predict(t testing.TB, p *plan.Plan, batch int) []float64 {
	t.Helper()
	dev := cpu.Open(cpu.Options{})
	exe, err := runtime.Load(p, dev, runtime.Options{Storage: x.memory(p), Poison: true})
	if err != nil {
		dev.Close()
		t.Fatal(err)
	}
	defer exe.Close()
	ctx := context.Background()
	check(t, exe.Run(ctx, "init"))
	eval, _ := p.Program("eval")
	x.feed(t, exe, "eval", eval.Inputs, batch, 1)
	check(t, exe.Run(ctx, "eval"))
	for _, r := range eval.Results {
		if r.Name != "loss" {
			raw := make([]byte, r.Ref.Type.Bytes())
			check(t, exe.Result("eval", r.Name, raw))
			return floats(t, r.Ref.Type, raw)
		}
	}
	t.Fatal("the model has no output")
	return nil
}

// apart is the largest difference relative to the largest number.
func apart(a, b []float64) float64 {
	d, most := 0.0, 0.0
	for i := range a {
		d, most = max(d, math.Abs(a[i]-b[i])), max(most, math.Abs(a[i]))
	}
	return d / most
}

// trainedAdapter trains some steps and returns the trainer, its plan and what it left.
func trainedAdapter(t testing.TB, r run, steps int) (*trainer, *plan.Plan, outcome) {
	x := open(t, r)
	p := x.compile(t, unlimited())
	return x, p, x.train(t, p, steps, cpu.Options{})
}

// withInit is fluxLoRA that begins with an adapter file, whose rank and alpha it takes.
func withInit(t testing.TB, path string, more ...passes.Setting) run {
	r := run{dir: small(t, "flux_mini"), file: "model.onnx", golden: "golden_lora.json", plain: true}
	for _, glob := range []string{"*attn.to_q", "*attn.to_k", "*attn.to_v", "*attn.to_out.0"} {
		r.set = append(r.set, passes.Setting{Key: "lora", Value: glob + ":init=" + path})
	}
	r.set = append(r.set, more...)
	return r
}

// An adapter written and read back computes the same bits; merged into the weights it gives the same output within 1e-5 of its largest
// number, which is what adding two products in another order costs in float32.
func TestMergedAdapters(t *testing.T) {
	x, p, out := trainedAdapter(t, fluxPlain(t), 6)
	entries := entriesOf(t, p, out.final)
	first := x.predict(t, p, 0)
	var want []float64
	for _, style := range []adapter.Style{adapter.Diffusers, adapter.Kohya} {
		path := filepath.Join(t.TempDir(), "adapter.safetensors")
		check(t, adapter.Write(path, entries, adapter.Options{Style: style}))
		y := open(t, withInit(t, path))
		got := y.predict(t, y.compile(t, unlimited()), 0)
		if want == nil {
			want = got
			if apart(first, want) < 1e-3 {
				t.Fatalf("training moved the output by %.3g only: the comparison would mean nothing", apart(first, want))
			}
		}
		if d := apart(want, got); d != 0 {
			t.Errorf("%s: outputs are %.3g apart", style, d)
		}
	}
	merged := open(t, run{dir: x.dir, file: x.file, golden: x.golden, plain: true})
	list, err := plan.Adapters(p.Options)
	check(t, err)
	for i, a := range list {
		q := merged.ctx.Program("step").Param(a.Weight)
		d, err := adapter.NewDelta(q.Type, entries[i].A, entries[i].B, a.Scale, a.InOut)
		check(t, err)
		check(t, d.Apply(q.Type, merged.params[a.Weight]))
	}
	d := apart(want, merged.predict(t, merged.compile(t, unlimited()), 0))
	t.Logf("merged and unmerged outputs are %.2g apart", d)
	if !(d <= 1e-5) {
		t.Errorf("merged and unmerged outputs are %.3g apart", d)
	}
}

// Training that goes on from an adapter file alone is the training that never stopped, for an optimizer without state: bit for bit. The golden's
// two batches take turns, so six steps are a whole number of rounds.
func TestResumeFromAdapter(t *testing.T) {
	sgd := passes.Setting{Key: "optimizer", Value: "sgd:lr=0.05"}
	r := fluxPlain(t)
	r.set = append(r.set, sgd)
	_, p, half := trainedAdapter(t, r, 4)
	_, _, whole := trainedAdapter(t, r, 8)
	path := filepath.Join(t.TempDir(), "adapter.safetensors")
	check(t, adapter.Write(path, entriesOf(t, p, half.final), adapter.Options{Style: adapter.Diffusers}))
	_, _, rest := trainedAdapter(t, withInit(t, path, sgd), 4)
	for i, want := range whole.losses {
		got := append(append([]float64{}, half.losses...), rest.losses...)[i]
		if got != want {
			t.Errorf("step %d: loss %v, without the stop %v", i, got, want)
		}
	}
	for _, name := range sortedKeys(whole.final) {
		if !bytes.Equal(rest.final[name], whole.final[name]) {
			t.Errorf("%s differs", name)
		}
	}
}

// TestAdapterFiles leaves adapters in all styles with the inputs and the output of our evaluation beside them, for testdata/make/check_adapter.py.
func TestAdapterFiles(t *testing.T) {
	if *adapterOut == "" {
		t.Skip("writes files for another tool to check: give a folder with -adapter-out")
	}
	x, p, out := trainedAdapter(t, fluxPlain(t), 6)
	entries := entriesOf(t, p, out.final)
	for _, style := range adapter.Styles() {
		dir := filepath.Join(*adapterOut, string(style))
		check(t, os.MkdirAll(dir, 0o777))
		check(t, adapter.Write(filepath.Join(dir, "adapter_model.safetensors"), entries, adapter.Options{Style: style}))
	}
	y := open(t, withInit(t, filepath.Join(*adapterOut, "diffusers", "adapter_model.safetensors")))
	got := y.predict(t, y.compile(t, unlimited()), 0)
	raw := []byte{}
	for _, v := range got {
		raw = binary.LittleEndian.AppendUint32(raw, math.Float32bits(float32(v)))
	}
	spec := safetensors.Spec{Name: "prediction", Type: ir.T(ir.F32, int64(len(got)))}
	check(t, safetensors.WriteFile(filepath.Join(*adapterOut, "output.safetensors"), map[string]string{"model": x.file}, []safetensors.Spec{spec}, func(safetensors.Spec) ([]byte, error) { return raw, nil }))
}
