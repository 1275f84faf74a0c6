package e2e

import (
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"aitk/internal/safetensors"
	"aitk/ir"
	"aitk/passes"
	"aitk/runtime/cpu"
)

// goldens lists the trainings of the first road. Those in testdata run everywhere.
func goldens(t testing.TB) []run {
	here := filepath.Join("..", "..", "testdata", "golden", "mlp_digits")
	out := []run{
		{dir: here, file: "model.onnx", golden: "golden.json"},
		{dir: here, file: "model.onnx", golden: "golden_adamw.json"},
		{dir: here, file: "model.onnx", golden: "golden_clip.json"},
		{dir: here, file: "model.onnx", golden: "golden_accumulate4.json"},
		{dir: here, file: "model.onnx", golden: "golden_sgd_nesterov.json"},
	}
	return out
}

func outside(t testing.TB) []run {
	at := func(model, file, golden, bn string) run {
		return run{dir: small(t, model), file: file, golden: golden, batchNorm: bn}
	}
	return []run{
		at("mlp_mnist", "model.onnx", "golden.json", ""),
		at("mlp_mnist", "model.onnx", "golden_adamw.json", ""),
		at("cnn_mnist", "model.onnx", "golden.json", ""),
		at("gpt_mini", "model.onnx", "golden.json", ""),
		at("gpt_mini", "model.onnx", "golden_decay_groups.json", ""),
		at("llama_mini", "model.onnx", "golden.json", ""),
		at("bert_mini", "model.onnx", "golden.json", ""),
		at("vit_mini", "model.onnx", "golden.json", ""),
		at("resnet18_mini", "model.onnx", "golden_frozen_bn.json", "frozen"),
	}
}

// batchNormTraining is the training whose batch norms use statistics of the batch.
func batchNormTraining(t testing.TB) run {
	return run{dir: small(t, "resnet18_mini"), file: "model_ts.onnx", golden: "golden.json", batchNorm: "train"}
}

// Losses, gradients and parameters of a training without a budget stay within three times PyTorch's own float32 deviation.
func TestParity(t *testing.T) {
	for _, r := range goldens(t) {
		t.Run(r.String(), func(t *testing.T) { parity(t, r) })
	}
	t.Run("collection", func(t *testing.T) {
		for _, r := range outside(t) {
			t.Run(r.String(), func(t *testing.T) { parity(t, r) })
		}
	})
}

func parity(t *testing.T, r run) {
	x := open(t, r)
	p := x.compile(t, passes.MemoryOptions{BudgetBytes: -1, HostBudgetBytes: -1})
	out := x.train(t, p, x.steps, cpu.Options{})
	worst := 0.0
	for i, want := range x.g.LossesF64 {
		limit := max(3*x.g.Deviation.Losses.MaxAbs, 1e-6*math.Abs(want))
		d := math.Abs(out.losses[i] - want)
		worst = max(worst, d/limit)
		if !(d <= limit) {
			t.Errorf("step %d: loss %.9g, golden %.9g, %.3g apart, limit %.3g", i, out.losses[i], want, d, limit)
		}
	}
	t.Logf("losses: worst %.2f of the limit", worst)
	x.compareFinal(t, out)
	x.compareGrads(t, out)
}

// compareFinal holds final parameters against the golden's file, or against its samples.
func (x *trainer) compareFinal(t *testing.T, out outcome) {
	var file *safetensors.File
	if x.g.FinalFile != "" {
		var err error
		file, err = safetensors.Open(filepath.Join(x.dir, x.g.FinalFile))
		check(t, err)
		defer file.Close()
	}
	worst, worstName, compared := 0.0, "", 0
	for _, name := range sortedKeys(x.g.Final) {
		f := x.g.Final[name]
		if slices.Contains(x.g.Noise, name) {
			continue
		}
		raw, ok := out.final[name]
		if !ok {
			t.Errorf("parameter %q was not trained", name)
			continue
		}
		got := floats(t, ir.T(ir.F32, f.Shape...), raw)
		dev := f.Dev
		if f.Quiet != nil {
			dev = *f.Quiet
		}
		if file != nil {
			if info, ok := file.Info(name); ok {
				want := tensor(t, file, info)
				first := floats(t, ir.T(ir.F32, f.Shape...), x.params[name])
				noise := x.noiseElements(t, name)
				d, u := 0.0, 0.0
				for i := range want {
					if noise != nil && noise[i] {
						continue
					}
					d += (got[i] - want[i]) * (got[i] - want[i])
					u += (want[i] - first[i]) * (want[i] - first[i])
				}
				rel, limit := math.Sqrt(d)/math.Sqrt(u), max(3*dev.UpdateRelL2, 1e-6)
				compared++
				if rel/limit > worst {
					worst, worstName = rel/limit, name
				}
				if !(rel <= limit) {
					t.Errorf("%s: update off by %.3g (relative L2), limit %.3g", name, rel, limit)
				}
				continue
			}
		}
		for at, want := range f.Samples {
			i, err := strconv.Atoi(at)
			check(t, err)
			d, limit := math.Abs(got[i]-want), max(3*dev.MaxAbs, 1e-6)
			if d/limit > worst {
				worst, worstName = d/limit, name
			}
			compared++
			if !(d <= limit) {
				t.Errorf("%s[%d]: %.9g, golden %.9g, limit %.3g", name, i, got[i], want, limit)
			}
		}
	}
	if compared == 0 {
		t.Error("no parameter was compared")
	}
	t.Logf("parameters: worst %.2f of the limit at %s (%d comparisons)", worst, worstName, compared)
}

// noiseElements marks the elements that the golden leaves out of deviation_f32_quiet: their gradient of step 0 is not zero but below 1e-5 of the
// tensor's largest, so that rounding decides it. nil if there are none.
func (x *trainer) noiseElements(t *testing.T, name string) []bool {
	if x.g.Final[name].Elements == 0 || x.g.GradFile == "" {
		return nil
	}
	file, err := safetensors.Open(filepath.Join(x.dir, x.g.GradFile))
	check(t, err)
	defer file.Close()
	info, ok := file.Info(name)
	if !ok {
		return nil
	}
	grad := tensor(t, file, info)
	most := 0.0
	for _, v := range grad {
		most = max(most, math.Abs(v))
	}
	noise, n := make([]bool, len(grad)), int64(0)
	for i, v := range grad {
		noise[i] = v != 0 && math.Abs(v) < 1e-5*most
		if noise[i] {
			n++
		}
	}
	if n != x.g.Final[name].Elements {
		t.Errorf("%s: %d noise elements, the golden counts %d", name, n, x.g.Final[name].Elements)
	}
	return noise
}

func (x *trainer) compareGrads(t *testing.T, out outcome) {
	if x.g.GradFile == "" || len(out.grads) == 0 {
		return
	}
	file, err := safetensors.Open(filepath.Join(x.dir, x.g.GradFile))
	check(t, err)
	defer file.Close()
	worst, worstName, seen := 0.0, "", 0
	for _, info := range file.Infos() {
		raw, ok := out.grads[info.Name]
		if slices.Contains(x.g.Noise, info.Name) {
			continue
		}
		if !ok {
			t.Errorf("no gradient of %q", info.Name)
			continue
		}
		want, got := tensor(t, file, info), floats(t, ir.T(ir.F32, info.Type.Shape...), raw)
		d, n := 0.0, 0.0
		for i := range want {
			d += (got[i] - want[i]) * (got[i] - want[i])
			n += want[i] * want[i]
		}
		if n == 0 {
			continue
		}
		seen++
		rel, limit := math.Sqrt(d/n), max(3*x.g.Final[info.Name].GradDev, 1e-6)
		if rel/limit > worst {
			worst, worstName = rel/limit, info.Name
		}
		if !(rel <= limit) {
			t.Errorf("gradient of %s: off by %.3g (relative L2), limit %.3g", info.Name, rel, limit)
		}
	}
	t.Logf("%d gradients: worst %.2f of the limit at %s", seen, worst, worstName)
}

func tensor(t testing.TB, f *safetensors.File, info safetensors.Info) []float64 {
	raw := make([]byte, info.Type.Bytes())
	check(t, f.ReadTensor(info.Name, raw))
	return floats(t, info.Type, raw)
}

func floats(t testing.TB, typ ir.Type, raw []byte) []float64 {
	x, err := ir.DecodeTensor(typ, raw)
	check(t, err)
	if x.F == nil {
		t.Fatalf("%v is no float type", typ)
	}
	return x.F
}

func sortedKeys[V any](m map[string]V) []string {
	var out []string
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}

// Batch norm in training mode: float32 itself flips a ReLU after two steps, so only the first losses are held to the figure.
func TestParityBatchNormTraining(t *testing.T) {
	x := open(t, batchNormTraining(t))
	p := x.compile(t, passes.MemoryOptions{BudgetBytes: -1, HostBudgetBytes: -1})
	out := x.train(t, p, x.steps, cpu.Options{})
	for i, want := range x.g.LossesF64 {
		limit := 1e-2
		if i < 2 {
			limit = max(3*x.g.Deviation.Losses.MaxAbs, 1e-6*math.Abs(want))
		}
		if d := math.Abs(out.losses[i] - want); !(d <= limit) {
			t.Errorf("step %d: loss %.9g, golden %.9g, %.3g apart, limit %.3g", i, out.losses[i], want, d, limit)
		}
	}
}
