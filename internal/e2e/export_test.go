package e2e

import (
	"context"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"aitk/importer"
	"aitk/internal/safetensors"
	"aitk/internal/weights"
	"aitk/ir"
	"aitk/passes"
	"aitk/passes/cost"
	"aitk/runtime"
	"aitk/runtime/cpu"
)

// exportOut is where TestExportedModels leaves what testdata/make/check_export.py holds against ONNX Runtime.
var exportOut = flag.String("export-out", "", "folder for the models of TestExportedModels")

// TestExportedModels trains every file of every golden model, exports it as ONNX, reads that again and evaluates it: it gives the bits that the trained
// weights give in the graph that they were trained in. With -export-out the models stay, each with the inputs and outputs of one batch beside it.
func TestExportedModels(t *testing.T) {
	list := collection(t)
	if *exportOut == "" {
		list = sampled(list)
	}
	for _, r := range list {
		if r.golden != "golden.json" {
			continue
		}
		t.Run(r.String(), func(t *testing.T) {
			r.plain = true
			x := open(t, r)
			trained := x.train(t, x.compile(t, unlimited()), min(x.steps, 4), cpu.Options{}).final
			dir := *exportOut
			if dir == "" {
				dir = t.TempDir()
			}
			name := filepath.Join(dir, filepath.Base(r.dir)+"_"+strings.TrimSuffix(r.file, ".onnx"))
			written := 0
			check(t, importer.Export(filepath.Join(r.dir, r.file), name+".onnx", importer.ExportOptions{Value: func(name string, typ ir.Type, dst []byte) (bool, error) {
				raw, ok := trained[name]
				if !ok || len(raw) != len(dst) {
					return false, nil
				}
				written++
				copy(dst, raw)
				return true, nil
			}}))
			if written == 0 {
				t.Fatal("no trained weight was asked for")
			}
			want, _ := x.evaluate(t, filepath.Join(r.dir, r.file), trained)
			got, in := x.evaluate(t, name+".onnx", nil)
			for _, port := range sortedKeys(want) {
				if string(want[port].Encode()) != string(got[port].Encode()) {
					t.Errorf("output %q of the exported model is another one", port)
				}
			}
			if *exportOut != "" {
				check(t, writeBatch(name+".safetensors", in, got))
			}
		})
	}
}

// evaluate runs a model of the golden's kind in the form for inference on the first batch, on the device, with other content in its parameters if there is
// any.
func (x *trainer) evaluate(t *testing.T, path string, content map[string][]byte) (out, in map[string]ir.Tensor) {
	t.Helper()
	m, err := importer.Import(path, importer.Options{Dims: x.bound, Eval: true})
	check(t, err)
	g := m.Graph
	g.Name = "eval"
	p, err := passes.Compile(&passes.Context{Programs: []*ir.Graph{g}}, passes.MemoryOptions{Profile: cost.CPUGeneric(), BudgetBytes: -1, HostBudgetBytes: -1})
	check(t, err)
	reader := weights.NewReader()
	defer reader.Close()
	mem := runtime.NewMemory(p)
	for i, q := range p.Params {
		if q.Init.Kind != ir.InitFile {
			continue
		}
		raw, ok := content[q.Name]
		if !ok {
			raw, err = reader.Bytes(q.Name, q.Type, &q.Init)
			check(t, err)
		}
		mem.Set(int32(i), raw)
	}
	dev := cpu.Open(cpu.Options{})
	exe, err := runtime.Load(p, dev, runtime.Options{Storage: mem, Poison: true})
	if err != nil {
		dev.Close()
		t.Fatal(err)
	}
	defer exe.Close()
	ctx := context.Background()
	check(t, exe.Run(ctx, "init"))
	program, _ := p.Program("eval")
	in, out = map[string]ir.Tensor{}, map[string]ir.Tensor{}
	for _, port := range program.Inputs {
		raw := make([]byte, port.Ref.Type.Bytes())
		x.content(t, port.Name, raw, 0, 1)
		check(t, exe.SetInput("eval", port.Name, raw))
		if in[port.Name], err = ir.DecodeTensor(port.Ref.Type, raw); err != nil {
			t.Fatal(err)
		}
	}
	check(t, exe.Run(ctx, "eval"))
	for _, r := range program.Results {
		raw := make([]byte, r.Ref.Type.Bytes())
		check(t, exe.Result("eval", r.Name, raw))
		if out[r.Name], err = ir.DecodeTensor(r.Ref.Type, raw); err != nil {
			t.Fatal(err)
		}
	}
	return out, in
}

// writeBatch writes inputs and outputs under "input.<name>" and "output.<name>".
func writeBatch(path string, in, out map[string]ir.Tensor) error {
	all := map[string]ir.Tensor{}
	for name, x := range in {
		all["input."+name] = x
	}
	for name, x := range out {
		all["output."+name] = x
	}
	var specs []safetensors.Spec
	for _, name := range sortedKeys(all) {
		specs = append(specs, safetensors.Spec{Name: name, Type: all[name].Type})
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		return err
	}
	return safetensors.WriteFile(path, nil, specs, func(s safetensors.Spec) ([]byte, error) { return all[s.Name].Encode(), nil })
}
