package e2e

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"aitk/importer"
	"aitk/internal/adapter"
	"aitk/internal/safetensors"
	"aitk/internal/weights"
	"aitk/ir"
	"aitk/ir/plan"
	"aitk/passes"
	"aitk/passes/cost"
	"aitk/runtime"
	"aitk/runtime/cpu"
)

// golden is a training run of PyTorch, as models/README.md describes it.
type golden struct {
	Variant string
	Mode    string `json:"module_mode"`
	Loss    struct {
		Type      string
		ClassAxis int64   `json:"class_axis"`
		Smoothing float64 `json:"label_smoothing"`
	}
	Optimizer struct {
		Type                    string
		LR, Momentum, Dampening float64
		Nesterov                bool
		AMSGrad                 bool
		Betas                   []float64
		Eps                     any      // a number; adafactor has two
		WeightDecay             float64  `json:"weight_decay"`
		NoDecay                 []string `json:"no_decay"`
	}
	LoRA *struct {
		Rank     int64
		Alpha    float64
		InitFile string            `json:"init_file"`
		Adapts   map[string]string // tensor of an adapter -> weight
	}
	Bases        []string `json:"base_graphs"` // files of the model that adapters are trained on
	EMA          *float64
	Autocast     *string
	BatchNorm    *float64 `json:"batch_norm_momentum_torch"` // nil: the model has none
	SmallestReLU *float64 `json:"smallest_relu_input_f64"`
	ONNX         []struct {
		File      string
		Elsewhere map[string]struct{ Missing bool } `json:"parameters_not_under_their_name"`
		Others    map[string]any                    `json:"other_float_tensors"`
	}
	Accumulate int64
	Clip       *float64  `json:"clip_grad_norm"`
	LRPerStep  []float64 `json:"lr_per_step"`
	LossesF64  []float64 `json:"losses_f64"`
	Deviation  struct {
		Losses struct {
			MaxAbs float64 `json:"max_abs"`
			MaxRel float64 `json:"max_rel"`
		}
	} `json:"deviation_f32_from_f64"`
	Noise []string `json:"noise_gradients"`
	Final map[string]struct {
		Shape    []int64
		Samples  map[string]float64
		Dev      deviation  `json:"deviation_f32"`
		Quiet    *deviation `json:"deviation_f32_quiet"`
		GradDev  float64    `json:"grad0_dev_rel_l2"`
		Elements int64      `json:"noise_elements"`
	}
	Buffers   map[string]buffer `json:"final_buffers"`               // statistics by PyTorch's rule
	Variances map[string]buffer `json:"final_running_var_onnx_rule"` // running variances by ONNX's
	FinalFile string            `json:"final_file"`
	GradFile  string            `json:"grads0_file"`
}

type buffer struct {
	Samples map[string]float64
	Dev     deviation `json:"deviation_f32"`
}

type deviation struct {
	MaxAbs      float64 `json:"max_abs"`
	UpdateRelL2 float64 `json:"update_rel_l2"`
}

// run is one golden training of one graph.
type run struct {
	dir, file, golden string
	batchNorm         string
	dims              map[string]int64 // beside what the batches bind
	plain             bool             // no gradients as results: they would live to the end
	set               []passes.Setting // beside what the golden says
	data              string           // batches are cut from this file, 32 samples each, and no golden is read
}

func (r run) String() string {
	if r.data != "" {
		return r.file
	}
	return filepath.Base(r.dir) + "/" + strings.TrimSuffix(r.golden, ".json") + "/" + r.file
}

// small is the folder of golden models beside the repository; tests that need it skip when it is not there.
func small(t testing.TB, model string) string {
	dir := filepath.Join("..", "..", "..", "shared", "models", "small", model)
	if _, err := os.Stat(dir); err != nil {
		t.Skip("the golden models are not beside the repository")
	}
	return dir
}

// trainer is a model read, with its batches and its golden run.
type trainer struct {
	run
	g       golden
	batches batches
	steps   int
	ctx     *passes.Context
	params  map[string][]byte // first content by name
	bound   map[string]int64  // dimensions, by name
	gone    []string          // parameters that the file does not hold in their own form
	tabled  bool              // the file holds tables that the exporter computed
}

// batches hold the inputs of step i under the names "step<i>.<input>".
type batches interface {
	Info(name string) (safetensors.Info, bool)
	ReadTensor(name string, dst []byte) error
}

func open(t testing.TB, r run) *trainer {
	t.Helper()
	x := &trainer{run: r}
	if r.data != "" {
		x.cut(t)
		x.front(t)
		return x
	}
	x.g = *readGolden(t, filepath.Join(r.dir, r.golden))
	of := &x.g
	if len(of.ONNX) == 0 { // adapters: the model's own golden says what its files hold
		of = readGolden(t, filepath.Join(r.dir, "golden.json"))
	}
	x.gone, x.tabled = of.gone(r.file), of.tables(r.file)
	file, err := safetensors.Open(filepath.Join(r.dir, "batches.safetensors"))
	check(t, err)
	t.Cleanup(func() { file.Close() })
	x.batches = file
	x.steps = len(x.g.LossesF64)
	x.front(t)
	return x
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// front imports the model and runs the passes up to the schedule.
func (x *trainer) front(t testing.TB) {
	path := filepath.Join(x.dir, x.file)
	seen, err := importer.Inspect(path)
	check(t, err)
	opt := importer.Options{Dims: map[string]int64{}, BatchNorm: x.batchNorm}
	for _, in := range seen.Inputs {
		info, ok := x.batches.Info("step0." + in.Name)
		if !ok {
			t.Fatalf("%v: no batch for input %q", x.run, in.Name)
		}
		for a, d := range in.Shape {
			for _, s := range seen.Dims {
				if s.Name == d {
					opt.Dims[d] = info.Type.Shape[a]
				}
			}
		}
	}
	for d, n := range x.dims {
		opt.Dims[d] = n
	}
	x.bound = opt.Dims
	m, err := importer.Import(path, opt)
	check(t, err)
	x.ctx = &passes.Context{Options: x.options(t)}
	check(t, passes.Run(x.ctx, m.Graph, passes.Pipeline(), passes.Order()))
	reader := weights.NewReader()
	defer reader.Close()
	x.params = map[string][]byte{}
	for _, p := range x.ctx.Program("step").Params {
		x.params[p.Name], err = reader.Bytes(p.Name, p.Type, &p.Init)
		check(t, err)
	}
}

func (x *trainer) options(t testing.TB) passes.Options {
	var o passes.Options
	set := func(k, v string) { check(t, o.Set(k, v)) }
	g := &x.g
	switch g.Loss.Type {
	case "cross_entropy":
		set("loss", fmt.Sprintf("cross-entropy:axis=%d,label-smoothing=%v", g.Loss.ClassAxis, g.Loss.Smoothing))
	case "bce_with_logits":
		set("loss", "bce-logits")
	default:
		set("loss", g.Loss.Type)
	}
	if r := x.run; r.data == "" {
		text, why := g.optimizer()
		if why != "" {
			t.Fatalf("%v: %s", r, why)
		}
		set("optimizer", text)
	}
	o.NoDecay = g.Optimizer.NoDecay
	if g.Accumulate > 1 {
		set("accumulate", fmt.Sprint(g.Accumulate))
	}
	if g.Clip != nil {
		set("clip-norm", fmt.Sprint(*g.Clip))
	}
	o.GradResult = !x.plain && (g.GradFile != "" || x.data != "") && g.Accumulate <= 1 && g.Clip == nil
	settings := x.set
	if !slices.ContainsFunc(settings, func(s passes.Setting) bool { return s.Key == "lora" }) {
		settings = slices.Concat(g.adapters(x.dir), settings)
	}
	for _, s := range settings {
		set(s.Key, s.Value)
	}
	o.Weights, o.AdapterInit = weights.NewReader(), adapterInit(t)
	o.VerifyEach = true
	return o
}

// adapterInit opens the files that --lora names.
func adapterInit(t testing.TB) func(file, module string) (passes.AdapterTensors, bool) {
	files := map[string]*adapter.File{}
	return func(file, module string) (passes.AdapterTensors, bool) {
		if files[file] == nil {
			f, err := adapter.Open(file)
			check(t, err)
			files[file] = f
		}
		m, ok := files[file].Find(module)
		if !ok {
			return passes.AdapterTensors{}, false
		}
		return passes.AdapterTensors{A: passes.AdapterTensor(m.A), B: passes.AdapterTensor(m.B), Alpha: m.Alpha}, true
	}
}

func (x *trainer) compile(t testing.TB, o passes.MemoryOptions) *plan.Plan {
	t.Helper()
	if o.Profile == nil {
		o.Profile = cost.CPUGeneric()
	}
	p, err := passes.Compile(x.ctx, o)
	if err != nil {
		t.Fatalf("%v: %v", x.run, err)
	}
	return p
}

// outcome is what a training left: losses, first gradients, parameters.
type outcome struct {
	losses         []float64
	grads          map[string][]byte
	final          map[string][]byte
	high, hostHigh int64 // measured high-water marks of device and host arena
}

// memory is a storage with the first content of all parameters.
func (x *trainer) memory(p *plan.Plan) *runtime.Memory {
	mem := runtime.NewMemory(p)
	for i, q := range p.Params {
		if raw, ok := x.params[q.Name]; ok && (q.Init.Kind == ir.InitFile || q.Init.Packed()) {
			mem.Set(int32(i), raw)
		}
	}
	return mem
}

// train runs a plan over the golden's batches.
func (x *trainer) train(t testing.TB, p *plan.Plan, steps int, opt cpu.Options) outcome {
	t.Helper()
	mem := x.memory(p)
	dev := cpu.Open(opt)
	exe, err := runtime.Load(p, dev, runtime.Options{Storage: mem, Poison: true})
	if err != nil {
		dev.Close()
		t.Fatalf("%v: %v", x.run, err)
	}
	defer exe.Close()
	ctx := context.Background()
	check(t, exe.Run(ctx, "init"))
	out := outcome{grads: map[string][]byte{}, final: map[string][]byte{}}
	step, _ := p.Program("step")
	acc := max(int(x.g.Accumulate), 1)
	for i := range steps {
		x.feed(t, exe, "step", step.Inputs, i, acc)
		check(t, exe.Run(ctx, "step"))
		loss := make([]byte, 4)
		check(t, exe.Result("step", "loss", loss))
		out.losses = append(out.losses, float64(acc)*float64(math.Float32frombits(binary.LittleEndian.Uint32(loss))))
		if i == 0 {
			for _, r := range step.Results {
				if name, ok := strings.CutPrefix(r.Name, "grad/"); ok {
					raw := make([]byte, r.Ref.Type.Bytes())
					check(t, exe.Result("step", r.Name, raw))
					out.grads[name] = raw
				}
			}
		}
		if update, _ := p.Program("update"); update != nil && (i+1)%acc == 0 {
			x.feed(t, exe, "update", update.Inputs, i, acc)
			check(t, exe.Run(ctx, "update"))
		}
	}
	check(t, exe.Run(ctx, "save"))
	for i, q := range p.Params {
		if q.Mutable {
			out.final[q.Name] = append([]byte{}, mem.Get(int32(i))...)
		}
	}
	out.high, out.hostHigh = exe.HighWaterBytes(ir.Device), exe.HighWaterBytes(ir.Pinned)
	return out
}

func (x *trainer) feed(t testing.TB, exe *runtime.Executable, program string, ports []plan.Port, i, acc int) {
	for _, in := range ports {
		raw := make([]byte, in.Ref.Type.Bytes())
		x.content(t, in.Name, raw, i, acc)
		check(t, exe.SetInput(program, in.Name, raw))
	}
}

// content writes an input of microbatch i; acc microbatches make a step.
func (x *trainer) content(t testing.TB, name string, raw []byte, i, acc int) {
	switch name {
	case "$lr":
		binary.LittleEndian.PutUint32(raw, math.Float32bits(float32(x.rate(i/acc))))
	case "$step":
		binary.LittleEndian.PutUint64(raw, uint64(i/acc))
	case "$micro":
		binary.LittleEndian.PutUint64(raw, uint64(i%acc))
	case "$seed":
	default:
		check(t, x.batches.ReadTensor(fmt.Sprintf("step%d.%s", i, name), raw))
	}
}

// rate is the learning rate of a step.
func (x *trainer) rate(step int) float64 {
	if x.g.LRPerStep != nil {
		return x.g.LRPerStep[step]
	}
	return x.g.Optimizer.LR
}
