package e2e

import (
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"aitk/importer"
	"aitk/internal/safetensors"
	"aitk/ir"
	"aitk/passes"
	"aitk/runtime/cpu"
)

// goldens are the trainings in testdata, which run everywhere.
func goldens(t testing.TB) []run {
	here := filepath.Join("..", "..", "testdata", "golden", "mlp_digits")
	return []run{
		{dir: here, file: "model.onnx", golden: "golden.json"},
		{dir: here, file: "model.onnx", golden: "golden_adamw.json"},
		{dir: here, file: "model.onnx", golden: "golden_clip.json"},
		{dir: here, file: "model.onnx", golden: "golden_accumulate4.json"},
		{dir: here, file: "model.onnx", golden: "golden_sgd_nesterov.json"},
	}
}

// Losses, gradients and parameters of a training without a budget stay within three times PyTorch's own float32 deviation.
func TestParity(t *testing.T) {
	for _, r := range goldens(t) {
		t.Run(r.String(), func(t *testing.T) { parity(t, open(t, r)) })
	}
}

// fractions say how much of its limit each comparison with a golden used up at most; a negative one: nothing to compare.
type fractions struct{ losses, params, grads float64 }

// parity trains to the golden and compares.
func parity(t *testing.T, x *trainer) fractions {
	t.Helper()
	p := x.compile(t, passes.MemoryOptions{BudgetBytes: -1, HostBudgetBytes: -1})
	out := x.train(t, p, x.steps, cpu.Options{})
	x.params, out.final, out.grads = x.g.adapterNames(x.params), x.g.adapterNames(out.final), x.g.adapterNames(out.grads)
	f := fractions{losses: x.compareLosses(t, out.losses), params: -1, grads: -1}
	if !x.branches() {
		f.params = max(x.compareFinal(t, out), x.compareStatistics(t, out))
	}
	f.grads = x.compareGrads(t, out)
	return f
}

// branches tells trainings in which float32 itself takes the other side of a ReLU somewhere, so that batch norm of batches carries the float32 run away
// from the float64 one (models/README.md): only their first losses are held to the figure, and no parameter.
func (x *trainer) branches() bool {
	return x.batchNorm == importer.BatchNormTrain && x.g.SmallestReLU != nil && *x.g.SmallestReLU < 1e-6
}

func (x *trainer) compareLosses(t *testing.T, losses []float64) float64 {
	worst := 0.0
	for i, want := range x.g.LossesF64 {
		limit := max(3*x.g.Deviation.Losses.MaxAbs, 1e-6*math.Abs(want))
		if x.branches() && i >= 2 {
			limit = 1e-2
		}
		d := math.Abs(losses[i] - want)
		worst = max(worst, d/limit)
		if !(d <= limit) {
			t.Errorf("step %d: loss %.9g, golden %.9g, %.3g apart, limit %.3g", i, losses[i], want, d, limit)
		}
	}
	t.Logf("losses: worst %.2f of the limit", worst)
	return worst
}

// compareFinal holds final parameters against the golden's file, or against its samples.
func (x *trainer) compareFinal(t *testing.T, out outcome) float64 {
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
			if !slices.Contains(x.gone, name) {
				t.Errorf("parameter %q was not trained", name)
			}
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
	return worst
}

// compareStatistics holds the running statistics that training moved against the golden's samples, variances by ONNX's rule.
func (x *trainer) compareStatistics(t *testing.T, out outcome) float64 {
	if x.batchNorm != importer.BatchNormTrain {
		return 0
	}
	worst, compared := 0.0, 0
	for _, name := range sortedKeys(x.g.Buffers) {
		want := x.g.Buffers[name]
		dev := want.Dev.MaxAbs
		if v, ok := x.g.Variances[name]; ok {
			want = v
		}
		raw, ok := out.final[name]
		if !ok {
			if !strings.HasSuffix(name, "num_batches_tracked") {
				t.Errorf("statistic %q was not moved", name)
			}
			continue
		}
		got := floats(t, ir.T(ir.F32, int64(len(raw)/4)), raw)
		for at, v := range want.Samples {
			i, err := strconv.Atoi(at)
			check(t, err)
			limit := max(3*dev, 1e-6)
			worst, compared = max(worst, math.Abs(got[i]-v)/limit), compared+1
			if !(math.Abs(got[i]-v) <= limit) {
				t.Errorf("%s[%d]: %.9g, golden %.9g, limit %.3g", name, i, got[i], v, limit)
			}
		}
	}
	if compared == 0 {
		t.Error("no statistic was compared")
	}
	t.Logf("statistics: worst %.2f of the limit (%d comparisons)", worst, compared)
	return worst
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

func (x *trainer) compareGrads(t *testing.T, out outcome) float64 {
	if x.g.GradFile == "" || len(out.grads) == 0 {
		return -1
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
			if !slices.Contains(x.gone, info.Name) {
				t.Errorf("no gradient of %q", info.Name)
			}
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
	return worst
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
