//go:build cuda && linux

package oncuda

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"aitk/importer"
	"aitk/internal/fakecuda"
	"aitk/internal/safetensors"
	"aitk/internal/weights"
	"aitk/ir"
	"aitk/ir/plan"
	"aitk/passes"
	"aitk/passes/cost"
	"aitk/runtime"
	"aitk/runtime/cuda"
	"aitk/runtime/ref"
)

// The driver is bound before main: the test binary starts itself again with the fake driver in its environment. AITK_GPU=1 uses the machine's own.
func TestMain(m *testing.M) {
	if os.Getenv("AITK_LIBCUDA") != "" || os.Getenv("AITK_GPU") != "" {
		os.Exit(m.Run())
	}
	lib, err := fakecuda.Build("")
	if errors.Is(err, fakecuda.ErrNoCompiler) {
		os.Exit(m.Run()) // every test skips and says why
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	dir, err := os.MkdirTemp("", "aitk-oncuda-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	ctl, err := lib.NewControl(filepath.Join(dir, "control"))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	cmd := exec.Command(os.Args[0], os.Args[1:]...)
	cmd.Env = append(os.Environ(), ctl.Env()...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	err = cmd.Run()
	os.RemoveAll(dir)
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		os.Exit(exit.ExitCode())
	case err != nil:
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
}

// fake is the control of the fake driver, with its counters at zero; nil on a real device.
func fake(t testing.TB) *fakecuda.Control {
	t.Helper()
	if d := cuda.Describe(); d.Reason != "" {
		t.Skipf("no device answers: %s", d.Reason)
	}
	path := os.Getenv("AITK_FAKE")
	if path == "" {
		return nil
	}
	ctl, err := fakecuda.OpenControl(path)
	check(t, err)
	t.Cleanup(func() { ctl.Close() })
	ctl.Reset()
	return ctl
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// model is a golden model with its batches, run through the passes up to the schedule.
type model struct {
	ctx     *passes.Context
	batches *safetensors.File
	params  map[string][]byte
	lr      float64
}

// open reads a golden model and one of its trainings.
func open(t testing.TB, name, golden string) *model {
	t.Helper()
	dir := filepath.Join("..", "..", "..", "..", "shared", "models", "small", name)
	if _, err := os.Stat(dir); err != nil {
		t.Skip("the golden models are not beside the repository")
	}
	var g struct {
		Loss struct {
			Type      string
			ClassAxis int64   `json:"class_axis"`
			Smoothing float64 `json:"label_smoothing"`
		}
		Optimizer struct {
			Type         string
			LR, Momentum float64
			Betas        []float64
			Eps          float64
			WeightDecay  float64 `json:"weight_decay"`
		}
	}
	raw, err := os.ReadFile(filepath.Join(dir, golden))
	check(t, err)
	check(t, json.Unmarshal(raw, &g))
	m := &model{lr: g.Optimizer.LR}
	m.batches, err = safetensors.Open(filepath.Join(dir, "batches.safetensors"))
	check(t, err)
	t.Cleanup(func() { m.batches.Close() })
	path := filepath.Join(dir, "model.onnx")
	seen, err := importer.Inspect(path)
	check(t, err)
	opt := importer.Options{Dims: map[string]int64{}}
	for _, in := range seen.Inputs {
		info, ok := m.batches.Info("step0." + in.Name)
		if !ok {
			t.Fatalf("no batch for input %q", in.Name)
		}
		for a, d := range in.Shape {
			for _, s := range seen.Dims {
				if s.Name == d {
					opt.Dims[d] = info.Type.Shape[a]
				}
			}
		}
	}
	imported, err := importer.Import(path, opt)
	check(t, err)
	var o passes.Options
	set := func(k, v string) { check(t, o.Set(k, v)) }
	loss := strings.ReplaceAll(strings.TrimSuffix(g.Loss.Type, "_with_logits"), "_", "-")
	if loss == "cross-entropy" {
		loss += fmt.Sprintf(":axis=%d,label-smoothing=%v", g.Loss.ClassAxis, g.Loss.Smoothing)
	}
	set("loss", loss)
	if p := g.Optimizer; p.Type == "sgd" {
		set("optimizer", fmt.Sprintf("sgd:lr=%v,momentum=%v", p.LR, p.Momentum))
	} else {
		set("optimizer", fmt.Sprintf("%s:lr=%v,beta1=%v,beta2=%v,eps=%v,weight-decay=%v", p.Type, p.LR, p.Betas[0], p.Betas[1], p.Eps, p.WeightDecay))
	}
	m.ctx = &passes.Context{Options: o}
	check(t, passes.Run(m.ctx, imported.Graph, passes.Pipeline(), passes.Order()))
	reader := weights.NewReader()
	defer reader.Close()
	m.params = map[string][]byte{}
	for _, p := range m.ctx.Program("step").Params {
		m.params[p.Name], err = reader.Bytes(p.Name, p.Type, &p.Init)
		check(t, err)
	}
	return m
}

// profile is a card that nobody here has: plans for it run on the fake driver too.
func profile(t testing.TB) *cost.Profile {
	p, err := cost.GPU("a100-40gb")
	check(t, err)
	return p
}

func (m *model) compile(t testing.TB, budget int64) *plan.Plan {
	t.Helper()
	p, err := passes.Compile(m.ctx, passes.MemoryOptions{Profile: profile(t), BudgetBytes: budget, HostBudgetBytes: -1, Recompute: true, Swap: true})
	check(t, err)
	return p
}

// input is the content of one input of the step program in a step.
func (m *model) input(t testing.TB, name string, u ir.Type, step int) []byte {
	raw := make([]byte, u.Bytes())
	switch name {
	case "$lr":
		binary.LittleEndian.PutUint32(raw, math.Float32bits(float32(m.lr)))
	case "$step":
		binary.LittleEndian.PutUint64(raw, uint64(step))
	case "$micro", "$seed":
	default:
		check(t, m.batches.ReadTensor(fmt.Sprintf("step%d.%s", step, name), raw))
	}
	return raw
}

// outcome is what a training left.
type outcome struct {
	losses []float64
	final  map[string][]byte
}

// train runs a plan on the device and holds the fake's counters to the plan.
func (m *model) train(t testing.TB, p *plan.Plan, steps int, opt cuda.Options, poison bool, ctl *fakecuda.Control) outcome {
	t.Helper()
	if ctl != nil {
		ctl.Reset()
	}
	mem := runtime.NewMemory(p)
	for i, q := range p.Params {
		if raw, ok := m.params[q.Name]; ok && q.Init.Kind == ir.InitFile {
			mem.Set(int32(i), raw)
		}
	}
	dev, err := cuda.Open(opt)
	check(t, err)
	exe, err := runtime.Load(p, dev, runtime.Options{Storage: mem, Poison: poison})
	if err != nil {
		dev.Close()
		t.Fatal(err)
	}
	defer func() { check(t, exe.Close()) }()
	ctx := context.Background()
	check(t, exe.Run(ctx, "init"))
	out := outcome{final: map[string][]byte{}}
	step, _ := p.Program("step")
	for i := range steps {
		for _, in := range step.Inputs {
			check(t, exe.SetInput("step", in.Name, m.input(t, in.Name, in.Ref.Type, i)))
		}
		check(t, exe.Run(ctx, "step"))
		loss := make([]byte, 4)
		check(t, exe.Result("step", "loss", loss))
		out.losses = append(out.losses, float64(math.Float32frombits(binary.LittleEndian.Uint32(loss))))
	}
	check(t, exe.Run(ctx, "save"))
	for i, q := range p.Params {
		if q.Mutable {
			out.final[q.Name] = append([]byte{}, mem.Get(int32(i))...)
		}
	}
	if high := exe.HighWaterBytes(ir.Device); high != p.Arena(ir.Device).Bytes {
		t.Errorf("the device saw %d bytes of an arena of %d", high, p.Arena(ir.Device).Bytes)
	}
	m.counters(t, p, ctl)
	return out
}

// counters holds what the fake counted to the plan.
func (m *model) counters(t testing.TB, p *plan.Plan, ctl *fakecuda.Control) {
	t.Helper()
	if ctl == nil {
		return
	}
	for _, name := range fakecuda.Faults() {
		if n := ctl.Get(name); n != 0 {
			t.Errorf("the driver counts %d %s: %.2000s", n, name, strings.Join(ctl.Reports(), "\n"))
		}
	}
	if n := ctl.Get("deviceAllocations"); n != 1 {
		t.Errorf("%d allocations of device memory", n)
	}
	if n := ctl.Get("pinnedAllocations"); n != 1 {
		t.Errorf("%d allocations of pinned memory", n)
	}
	if n := ctl.Get("deviceHighWater"); n != p.Arena(ir.Device).Bytes {
		t.Errorf("%d bytes of device memory were allocated, the plan has %d", n, p.Arena(ir.Device).Bytes)
	}
}

// TestTraining compares losses and parameters with the interpreter, which computes in float64.
func TestTraining(t *testing.T) {
	const steps = 2
	for _, c := range []struct{ model, golden string }{
		{"mlp_digits", "golden.json"}, {"cnn_mnist", "golden.json"}, {"gpt_mini", "golden.json"}, {"llama_mini", "golden.json"},
		{"resnet18_mini", "golden.json"}, {"vit_mini", "golden.json"}, {"bert_mini", "golden.json"}, {"unet_seg", "golden.json"},
	} {
		t.Run(c.model, func(t *testing.T) {
			ctl := fake(t)
			m := open(t, c.model, c.golden)
			p := m.compile(t, -1)
			got := m.train(t, p, steps, cuda.Options{}, true, ctl)
			g := m.ctx.Program("step")
			params := map[string]ir.Tensor{}
			for _, q := range g.Params {
				x, err := ir.DecodeTensor(q.Type, m.params[q.Name])
				check(t, err)
				params[q.Name] = x
			}
			oracle := ref.New(params)
			for i := range steps {
				inputs := map[string]ir.Tensor{}
				for _, v := range g.Inputs {
					x, err := ir.DecodeTensor(v.Type, m.input(t, v.Name, v.Type, i))
					check(t, err)
					inputs[v.Name] = x
				}
				results, err := oracle.Run(g, inputs)
				check(t, err)
				want := results["loss"].F[0]
				if d := math.Abs(got.losses[i] - want); d > 2e-6*math.Abs(want) {
					t.Errorf("step %d: loss %v, the interpreter says %v", i, got.losses[i], want)
				}
			}
			for name, want := range oracle.Params() {
				raw, ok := got.final[name]
				if !ok || !want.Type.DType.IsFloat() {
					continue
				}
				x, err := ir.DecodeTensor(want.Type, raw)
				check(t, err)
				compare(t, name, x, want, m.lr*steps)
			}
		})
	}
}

// compare holds the deviation of a parameter to its magnitude and, since Adam makes a whole step of the least gradient and of its rounding errors, to a
// hundredth of the steps that were taken.
func compare(t testing.TB, name string, got, want ir.Tensor, steps float64) {
	t.Helper()
	var most, worst float64
	for i, w := range want.F {
		most = max(most, math.Abs(w))
		worst = max(worst, math.Abs(got.F[i]-w))
	}
	if !(worst <= 2e-6*most+steps/100) {
		t.Errorf("%s is off by %.3g where the largest is %.3g", name, worst, most)
	}
}

// TestBudgetLaw trains under smaller budgets, in other orders of the streams and without graphs: the bits are the same.
func TestBudgetLaw(t *testing.T) {
	const steps = 3
	ctl := fake(t)
	m := open(t, "mlp_digits", "golden.json")
	free := m.compile(t, -1)
	unlimited := free.Arena(ir.Device).Bytes
	want := m.train(t, free, steps, cuda.Options{}, false, ctl)
	_, err := passes.Compile(m.ctx, passes.MemoryOptions{Profile: profile(t), BudgetBytes: 1, HostBudgetBytes: -1, Recompute: true, Swap: true})
	least, ok := errors.AsType[*passes.FitError](err)
	if !ok {
		t.Fatalf("a budget of one byte: %v", err)
	}
	for _, budget := range []int64{unlimited * 8 / 10, least.MinimumBytes} {
		if budget < least.MinimumBytes {
			continue
		}
		p := m.compile(t, budget)
		for seed := range int64(3) {
			for _, flat := range []bool{false, true} {
				if ctl != nil {
					ctl.Set("seed", seed)
				}
				got := m.train(t, p, steps, cuda.Options{Flat: flat}, seed == 2, ctl)
				for name, raw := range want.final {
					if !bytes.Equal(raw, got.final[name]) {
						t.Errorf("budget %d of %d, seed %d, flat %v: %s has other bits", budget, unlimited, seed, flat, name)
					}
				}
			}
		}
	}
	if ctl != nil {
		ctl.Set("seed", 0)
	}
}

// TestTargets: the texts for compute capability 7.5 and 8.0 give the same bits.
func TestTargets(t *testing.T) {
	ctl := fake(t)
	if ctl == nil {
		t.Skip("a real device has one capability")
	}
	m := open(t, "mlp_digits", "golden.json")
	p := m.compile(t, -1)
	want := m.train(t, p, 2, cuda.Options{}, false, ctl)
	defer ctl.Set("sm", 80)
	ctl.Set("sm", 75)
	got := m.train(t, p, 2, cuda.Options{}, false, ctl)
	for name, raw := range want.final {
		if !bytes.Equal(raw, got.final[name]) {
			t.Errorf("%s has other bits", name)
		}
	}
}

// TestMemoryLimit: the plan's arena is enough, one byte less fails in Load with the figure.
func TestMemoryLimit(t *testing.T) {
	ctl := fake(t)
	if ctl == nil {
		t.Skip("a real device's memory cannot be limited")
	}
	m := open(t, "mlp_digits", "golden.json")
	p := m.compile(t, -1)
	need := p.Arena(ir.Device).Bytes
	defer ctl.Set("vramBytes", 1<<30)
	ctl.Set("vramBytes", need)
	m.train(t, p, 1, cuda.Options{}, false, ctl)
	ctl.Set("vramBytes", need-1)
	dev, err := cuda.Open(cuda.Options{})
	check(t, err)
	defer dev.Close()
	_, err = runtime.Load(p, dev, runtime.Options{Storage: runtime.NewMemory(p)})
	if ir.KindOf(err) != ir.DoesNotFit || !strings.Contains(err.Error(), fmt.Sprint(need)) {
		t.Errorf("one byte too few: %v", err)
	}
}
