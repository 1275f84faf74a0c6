//go:build cuda && linux

package oncuda

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"aitk/importer"
	"aitk/internal/adapter"
	"aitk/internal/fakecuda"
	"aitk/internal/safetensors"
	"aitk/internal/weights"
	"aitk/ir"
	"aitk/ir/plan"
	"aitk/passes"
	"aitk/passes/cost"
	"aitk/runtime"
	"aitk/runtime/cuda"
)

// training is a golden training, as models/README.md describes it, with settings of ours beside it.
type training struct {
	model, golden string
	set           []passes.Setting
	exact         bool // the golden's losses are ours too: nothing rounds differently there that many steps of Adam would blow up
}

func (r training) String() string {
	name := r.model
	if r.golden != "golden.json" {
		name += "/" + strings.TrimSuffix(r.golden, ".json")
	}
	for _, s := range r.set {
		name += "/" + s.Key + "=" + s.Value
	}
	return name
}

// golden is what is read of a golden file.
type golden struct {
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
	LoRA *struct {
		Rank     int64
		Alpha    float64
		InitFile string            `json:"init_file"`
		Adapts   map[string]string // tensor of an adapter -> weight
	}
	BatchNorm *float64  `json:"batch_norm_momentum_torch"` // nil: the model has none
	LossesF64 []float64 `json:"losses_f64"`
	Deviation struct {
		Losses struct {
			MaxAbs float64 `json:"max_abs"`
		}
	} `json:"deviation_f32_from_f64"`
}

// model is a golden model with its batches, run through the passes up to the schedule.
type model struct {
	ctx     *passes.Context
	g       golden
	batches *safetensors.File
	params  map[string][]byte
}

// open reads a golden model and one of its trainings.
func open(t testing.TB, r training) *model {
	t.Helper()
	dir := filepath.Join("..", "..", "..", "..", "shared", "models", "small", r.model)
	if _, err := os.Stat(dir); err != nil {
		t.Skip("the golden models are not beside the repository")
	}
	m := &model{}
	raw, err := os.ReadFile(filepath.Join(dir, r.golden))
	check(t, err)
	check(t, json.Unmarshal(raw, &m.g))
	m.batches, err = safetensors.Open(filepath.Join(dir, "batches.safetensors"))
	check(t, err)
	t.Cleanup(func() { m.batches.Close() })
	path := filepath.Join(dir, "model.onnx")
	seen, err := importer.Inspect(path)
	check(t, err)
	opt := importer.Options{Dims: map[string]int64{}}
	if m.g.BatchNorm != nil {
		opt.BatchNorm = "train" // as the golden trains
	}
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
	m.ctx = &passes.Context{Options: m.options(t, dir, r.set)}
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

// options are the golden's, then ours.
func (m *model) options(t testing.TB, dir string, more []passes.Setting) passes.Options {
	var o passes.Options
	set := func(k, v string) { check(t, o.Set(k, v)) }
	loss := strings.ReplaceAll(strings.TrimSuffix(m.g.Loss.Type, "_with_logits"), "_", "-")
	if loss == "cross-entropy" {
		loss += fmt.Sprintf(":axis=%d,label-smoothing=%v", m.g.Loss.ClassAxis, m.g.Loss.Smoothing)
	}
	set("loss", loss)
	if p := m.g.Optimizer; p.Type == "sgd" {
		set("optimizer", fmt.Sprintf("sgd:lr=%v,momentum=%v", p.LR, p.Momentum))
	} else {
		set("optimizer", fmt.Sprintf("%s:lr=%v,beta1=%v,beta2=%v,eps=%v,weight-decay=%v", p.Type, p.LR, p.Betas[0], p.Betas[1], p.Eps, p.WeightDecay))
	}
	if l := m.g.LoRA; l != nil {
		var modules []string
		for _, weight := range l.Adapts {
			modules = append(modules, strings.TrimSuffix(weight, ".weight"))
		}
		slices.Sort(modules)
		for _, name := range slices.Compact(modules) {
			set("lora", fmt.Sprintf("%s:rank=%d,alpha=%v,init=%s", name, l.Rank, l.Alpha, filepath.Join(dir, l.InitFile)))
		}
		file, err := adapter.Open(filepath.Join(dir, l.InitFile))
		check(t, err)
		o.AdapterInit = func(_, module string) (passes.AdapterTensors, bool) {
			x, ok := file.Find(module)
			if !ok {
				return passes.AdapterTensors{}, false
			}
			return passes.AdapterTensors{A: passes.AdapterTensor(x.A), B: passes.AdapterTensor(x.B), Alpha: x.Alpha}, true
		}
	}
	for _, s := range more {
		set(s.Key, s.Value)
	}
	reader := weights.NewReader()
	t.Cleanup(func() { reader.Close() })
	o.Weights = reader
	return o
}

// profile is a card that nobody here has: plans for it run on the fake driver too.
func profile(t testing.TB) *cost.Profile {
	p, err := cost.GPU("a100-40gb")
	check(t, err)
	return p
}

func (m *model) compile(t testing.TB, budget int64) *plan.Plan {
	t.Helper()
	return m.compileFor(t, profile(t), budget)
}

func (m *model) compileFor(t testing.TB, p *cost.Profile, budget int64) *plan.Plan {
	t.Helper()
	out, err := passes.Compile(m.ctx, passes.MemoryOptions{Profile: p, BudgetBytes: budget, HostBudgetBytes: -1, Recompute: true, Swap: true})
	check(t, err)
	return out
}

// minimum is the smallest budget of a plan that the planner finds.
func (m *model) minimum(t testing.TB) int64 {
	t.Helper()
	_, err := passes.Compile(m.ctx, passes.MemoryOptions{Profile: profile(t), BudgetBytes: 1, HostBudgetBytes: -1, Recompute: true, Swap: true})
	least, ok := errors.AsType[*passes.FitError](err)
	if !ok {
		t.Fatalf("a budget of one byte: %v", err)
	}
	return least.MinimumBytes
}

// input is the content of one input of the step program in a step.
func (m *model) input(t testing.TB, name string, u ir.Type, step int) []byte {
	raw := make([]byte, u.Bytes())
	switch name {
	case "$lr":
		binary.LittleEndian.PutUint32(raw, math.Float32bits(float32(m.g.Optimizer.LR)))
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
	picos  []int64 // by step, on the fake driver's clock
}

// train runs a plan on the device and holds the fake's counters to the plan.
func (m *model) train(t testing.TB, p *plan.Plan, steps int, opt cuda.Options, poison bool, ctl *fakecuda.Control) outcome {
	t.Helper()
	if ctl != nil {
		ctl.Reset()
	}
	mem := runtime.NewMemory(p)
	for i, q := range p.Params {
		if raw, ok := m.params[q.Name]; ok && (q.Init.Kind == ir.InitFile || q.Init.Packed()) {
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
	clock := func() int64 {
		if ctl == nil {
			return 0
		}
		return ctl.Get("simPicos")
	}
	ctx := context.Background()
	check(t, exe.Run(ctx, "init"))
	out := outcome{final: map[string][]byte{}}
	step, _ := p.Program("step")
	for i := range steps {
		for _, in := range step.Inputs {
			check(t, exe.SetInput("step", in.Name, m.input(t, in.Name, in.Ref.Type, i)))
		}
		begin := clock()
		check(t, exe.Run(ctx, "step"))
		out.picos = append(out.picos, clock()-begin)
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
	counters(t, p, ctl)
	return out
}

// counters holds what the fake counted to the plan: no fault, two allocations, device memory of exactly the plan's arena.
func counters(t testing.TB, p *plan.Plan, ctl *fakecuda.Control) {
	t.Helper()
	if ctl == nil {
		return
	}
	check(t, ctl.Clean())
	for _, x := range []struct {
		name string
		want int64
	}{{"deviceAllocations", 1}, {"pinnedAllocations", 1}, {"registrations", 0}, {"deviceHighWater", p.Arena(ir.Device).Bytes}} {
		if n := ctl.Get(x.name); n != x.want {
			t.Errorf("%s is %d, want %d", x.name, n, x.want)
		}
	}
}
