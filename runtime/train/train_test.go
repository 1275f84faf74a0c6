package train_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"aitk/internal/safetensors"
	"aitk/ir"
	"aitk/runtime"
	"aitk/runtime/cpu"
	"aitk/runtime/train"
	"aitk/runtime/train/data"
	"aitk/runtime/train/metrics"
)

// dataset writes n samples of three classes that a line can tell apart.
func dataset(t testing.TB, n int64, edit func(x, y *ir.Tensor)) *data.Source {
	t.Helper()
	x, y := ir.NewTensor(ir.T(ir.F32, n, 3)), ir.NewTensor(ir.T(ir.I64, n))
	r := rand.New(rand.NewPCG(3, 4))
	for i := range y.I {
		y.I[i] = r.Int64N(3)
		for k := range int64(3) {
			x.F[int64(i)*3+k] = r.NormFloat64() * 0.3
			if k == y.I[i] {
				x.F[int64(i)*3+k] += 2
			}
		}
	}
	if edit != nil {
		edit(&x, &y)
	}
	path := filepath.Join(t.TempDir(), "d.safetensors")
	err := safetensors.WriteFile(path, nil, []safetensors.Spec{{Name: "x", Type: x.Type}, {Name: "target", Type: y.Type}}, func(s safetensors.Spec) ([]byte, error) {
		if s.Name == "x" {
			return x.Encode(), nil
		}
		return y.Encode(), nil
	})
	if err != nil {
		t.Fatal(err)
	}
	s, err := data.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// load makes a model executable.
func load(t testing.TB, m model) (*runtime.Executable, *train.Store) {
	t.Helper()
	p := m.plan(t)
	store := train.NewStore(p)
	dev := cpu.Open(cpu.Options{Threads: 1})
	exe, err := runtime.Load(p, dev, runtime.Options{Storage: store})
	if err != nil {
		dev.Close()
		t.Fatal(err)
	}
	t.Cleanup(func() { exe.Close() })
	return exe, store
}

func run(t testing.TB, m model, o train.Options) (*train.Result, error) {
	t.Helper()
	exe, store := load(t, m)
	return train.Run(context.Background(), exe, store, o)
}

// options are those of a run that learns.
func options(t testing.TB) train.Options {
	return train.Options{Data: dataset(t, 100, nil), EvalSplit: 0.2, Steps: 60, Seed: 1, LR: 0.1, Metric: train.Metric{Name: "accuracy"}, Labels: data.Labels{Classes: 3}}
}

// lines decodes JSON lines.
func lines(t testing.TB, raw []byte) []map[string]any {
	t.Helper()
	var out []map[string]any
	for line := range bytes.Lines(raw) {
		var m map[string]any
		if err := json.Unmarshal(line, &m); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		out = append(out, m)
	}
	return out
}

// TestLearns: the whole of a run, its metrics, its result and its file.
func TestLearns(t *testing.T) {
	o := options(t)
	var b, said bytes.Buffer
	o.Metrics, o.Progress = &b, metrics.NewProgress(&said, false)
	o.EvalEvery, o.Save = 25, filepath.Join(t.TempDir(), "out.safetensors")
	m := digits()
	m.frozen = true
	res, err := run(t, m, o)
	if err != nil {
		t.Fatal(err)
	}
	all := lines(t, b.Bytes())
	if len(all) != 61 {
		t.Fatalf("%d lines of metrics", len(all))
	}
	h := all[0]
	if h["schema"] != "aitk.metrics/1" || h["steps"] != 60.0 || h["held_out_samples"] != 20.0 || h["train_samples"] != 80.0 || h["trainable_parameters"] != 9.0 {
		t.Errorf("header %v", h)
	}
	for _, key := range []string{"budget_bytes", "arena_bytes", "peak_bytes", "bound_bytes", "naive_bytes", "saved_bytes", "minimum_budget_bytes", "step_seconds", "unlimited_step_seconds",
		"overhead", "overhead_bound", "recomputed", "swapped", "graph_sha256", "options"} {
		if _, ok := h[key]; !ok {
			t.Errorf("the header has no %s", key)
		}
	}
	for i, s := range all[1:] {
		if s["step"] != float64(i) || s["lr"] != 0.1 || s["device_peak_bytes"] != float64(res.DevicePeakBytes) || s["host_peak_bytes"] != 0.0 || s["moved_bytes"] != 0.0 || s["grad_norm"].(float64) <= 0 {
			t.Errorf("step %d: %v", i, s)
		}
		if _, ok := s["eval_accuracy"]; ok != (i == 24 || i == 49 || i == 59) {
			t.Errorf("step %d evaluated: %v", i, ok)
		}
	}
	if res.Loss > 0.2 || res.Loss != all[60]["loss"] || res.Eval == nil || res.Eval.Value != 1 || res.Eval.Samples != 20 || res.Steps != 60 || res.Samples != 240 {
		t.Errorf("result %+v, evaluation %v", res, res.Eval)
	}
	if res.DevicePeakBytes <= 0 || !strings.Contains(said.String(), "step 25: eval loss") {
		t.Errorf("peak %d, said %q", res.DevicePeakBytes, said.String())
	}
	f, err := safetensors.Open(o.Save)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if names := f.Names(); !slices.Equal(slices.Sorted(slices.Values(names)), []string{"fc.bias", "fc.weight"}) || f.Metadata()["tied.weight"] != "fc.weight" || f.Metadata()["step"] != "60" {
		t.Errorf("saved %v with %v", names, f.Metadata())
	}
	bias := make([]byte, 12)
	if err := f.ReadTensor("fc.bias", bias); err != nil || !slices.Equal(bias, m.plan(t).Params[1].Init.Literal) {
		t.Errorf("the frozen bias is %x, %v", bias, err)
	}
}

// TestReference: losses of the first steps as a direct calculation in float64 gives them, with and without microbatches.
func TestReference(t *testing.T) {
	for _, accumulate := range []int64{1, 3} {
		o := options(t)
		o.Steps, o.Accumulate = 30, accumulate
		o.Schedule = train.Schedule{Name: "linear", Warmup: 3}
		var b bytes.Buffer
		o.Metrics = &b
		m := digits()
		m.accumulate = accumulate
		if _, err := run(t, m, o); err != nil {
			t.Fatal(err)
		}
		want := reference(t, m, o)
		for i, s := range lines(t, b.Bytes())[1:] {
			if got := s["loss"].(float64); math.Abs(got-want[i]) > 2e-6*math.Abs(want[i]) {
				t.Errorf("accumulate %d, step %d: loss %v, want %v", accumulate, i, got, want[i])
			}
		}
	}
}

// reference trains in plain loops.
func reference(t *testing.T, m model, o train.Options) []float64 {
	f, err := o.Data.Bind([]data.Port{{Name: "x", Type: ir.T(ir.F32, 1, 3)}, {Name: "target", Type: ir.T(ir.I64, 1)}}, data.Labels{})
	if err != nil {
		t.Fatal(err)
	}
	order := data.NewOrder(o.Data.Samples(), o.EvalSplit, o.Seed)
	sample := func(k int64) ([]float64, int64) {
		per := order.Train() / m.batch * m.batch
		if err := f.Fill([]int64{order.Sample(k/per, k%per)}, 0); err != nil {
			t.Fatal(err)
		}
		x, _ := ir.DecodeTensor(ir.T(ir.F32, 3), f.Bytes(0))
		y, _ := ir.DecodeTensor(ir.T(ir.I64, 1), f.Bytes(1))
		return x.F, y.I[0]
	}
	p := m.plan(t)
	w, _ := ir.DecodeTensor(p.Params[0].Type, p.Params[0].Init.Literal)
	b, _ := ir.DecodeTensor(p.Params[1].Type, p.Params[1].Init.Literal)
	theta := append(slices.Clone(w.F), b.F...)
	velocity := make([]float64, 12)
	var losses []float64
	n := m.batch * max(o.Accumulate, 1)
	for step := range o.Steps {
		grad, loss := make([]float64, 12), 0.0
		for i := range n {
			x, y := sample(step*n + i)
			var z [3]float64
			total := 0.0
			for c := range z {
				z[c] = theta[9+c]
				for k := range x {
					z[c] += x[k] * theta[3*k+c]
				}
				total += math.Exp(z[c])
			}
			loss -= (z[y] - math.Log(total)) / float64(n)
			for c := range z {
				d := math.Exp(z[c]) / total / float64(n)
				if int64(c) == y {
					d -= 1 / float64(n)
				}
				grad[9+c] += d
				for k := range x {
					grad[3*k+c] += d * x[k]
				}
			}
		}
		losses = append(losses, loss)
		lr := o.LR * float64(step+1) / 3
		if step >= 3 {
			lr = o.LR * float64(o.Steps-step) / float64(o.Steps-3)
		}
		for i := range theta {
			if velocity[i] = m.momentum*velocity[i] + grad[i]; step == 0 {
				velocity[i] = grad[i]
			}
			theta[i] -= lr * velocity[i]
		}
	}
	return losses
}

// TestNoAllocation: two hundred steps more allocate no more.
func TestNoAllocation(t *testing.T) {
	for _, accumulate := range []int64{1, 2} {
		m := digits()
		m.accumulate = accumulate
		exe, store := load(t, m)
		o := options(t)
		o.Accumulate, o.EvalSplit = accumulate, 0
		o.Metrics, o.Progress = io.Discard, metrics.NewProgress(io.Discard, false)
		var err error
		allocs := func(steps int64) float64 {
			o.Steps = steps
			return testing.AllocsPerRun(5, func() {
				if _, e := train.Run(context.Background(), exe, store, o); e != nil {
					err = e
				}
			})
		}
		few, many := allocs(20), allocs(220)
		if many-few > 20 || err != nil { // the race detector allocates now and then; one a step would be 200
			t.Errorf("accumulate %d: 20 steps allocate %v times, 220 steps %v times; error %v", accumulate, few, many, err)
		}
	}
}

// TestEval judges partial batches, held-out samples, and every metric, against loops.
func TestEval(t *testing.T) {
	src := dataset(t, 10, nil)
	m := digits()
	f, err := src.Bind([]data.Port{{Name: "x", Type: ir.T(ir.F32, 10, 3)}, {Name: "target", Type: ir.T(ir.I64, 10)}}, data.Labels{})
	if err != nil {
		t.Fatal(err)
	}
	judge := func(samples []int64) (loss, right float64) {
		p := m.plan(t)
		w, _ := ir.DecodeTensor(p.Params[0].Type, p.Params[0].Init.Literal)
		b, _ := ir.DecodeTensor(p.Params[1].Type, p.Params[1].Init.Literal)
		if err := f.Fill(samples, 0); err != nil {
			t.Fatal(err)
		}
		x, _ := ir.DecodeTensor(ir.T(ir.F32, 10, 3), f.Bytes(0))
		y, _ := ir.DecodeTensor(ir.T(ir.I64, 10), f.Bytes(1))
		for i := range samples {
			var z [3]float64
			total, best := 0.0, 0
			for c := range z {
				z[c] = b.F[c]
				for k := range 3 {
					z[c] += x.F[3*i+k] * w.F[3*k+c]
				}
				if total += math.Exp(z[c]); z[c] > z[best] {
					best = c
				}
			}
			loss -= (z[y.I[i]] - math.Log(total)) / float64(len(samples))
			if int64(best) == y.I[i] {
				right += 1 / float64(len(samples))
			}
		}
		return loss, right
	}
	all, held := []int64{}, []int64{}
	order := data.NewOrder(10, 0.3, 99)
	for i := range int64(10) {
		all = append(all, i)
	}
	for i := range order.Held() {
		held = append(held, order.HeldSample(i))
	}
	for _, c := range []struct {
		name    string
		metric  string
		split   float64
		noMask  bool
		samples []int64
		skipped int64
	}{
		{"all", "accuracy", 0, false, all, 0},
		{"held out", "accuracy", 0.3, false, held, 0},
		{"without a mask", "accuracy", 0, true, all[:8], 2},
		{"perplexity", "perplexity", 0, false, all, 0},
		{"loss", "loss", 0, false, all, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := digits()
			m.noMask = c.noMask
			exe, _ := load(t, m)
			ctx := context.Background()
			if err := exe.Run(ctx, "init"); err != nil {
				t.Fatal(err)
			}
			r, notes, err := train.Eval(ctx, exe, train.EvalOptions{Data: src, Split: c.split, Metric: train.Metric{Name: c.metric}})
			if err != nil {
				t.Fatal(err)
			}
			loss, right := judge(c.samples)
			want := map[string]float64{"accuracy": right, "perplexity": math.Exp(loss), "loss": loss}[c.metric]
			if math.Abs(r.Loss-loss) > 1e-6 || math.Abs(r.Value-want) > 1e-5 || r.Samples != int64(len(c.samples)) || r.Skipped != c.skipped || (len(notes) > 0) != (c.skipped > 0) {
				t.Errorf("got %+v, notes %v; want loss %v, %s %v over %d samples", r, notes, loss, c.metric, want, len(c.samples))
			}
		})
	}
	exe, _ := load(t, m)
	for name, want := range map[string]string{"mse": "cannot be compared element by element", "l1": "metric l1"} {
		if _, _, err := train.Eval(context.Background(), exe, train.EvalOptions{Data: src, Metric: train.Metric{Name: name}}); err == nil || !strings.Contains(err.Error(), want) || ir.KindOf(err) != ir.Usage {
			t.Errorf("metric %s: %v, want %q", name, err, want)
		}
	}
}

// TestRefused lists what Run says of options and data that do not work out; no file is touched.
// Where the only sample is needed for training there is no evaluation, and no NaN for one.
func TestNothingHeldOut(t *testing.T) {
	o, m := options(t), digits()
	o.Data, o.Steps, m.batch = dataset(t, 1, nil), 2, 1
	r, err := run(t, m, o)
	if err != nil {
		t.Fatal(err)
	}
	if said := strings.Join(r.Notes, "\n"); r.Eval != nil || !strings.Contains(said, "the only sample") {
		t.Errorf("evaluated: %v, notes %q", r.Eval, said)
	}
}

func TestRefused(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(o *train.Options, m *model)
		want   string
		kind   ir.Kind
	}{
		{"no data", func(o *train.Options, _ *model) { o.Data = nil }, "needs data", ir.Usage},
		{"steps and epochs", func(o *train.Options, _ *model) { o.Epochs = 1 }, "one of them", ir.Usage},
		{"two mistakes", func(o *train.Options, _ *model) { o.LR, o.Every = math.Inf(1), 3 }, "learning rate", ir.Usage},
		{"the second of them", func(o *train.Options, _ *model) { o.LR, o.Every = math.Inf(1), 3 }, "need a folder", ir.Usage},
		{"not compiled for it", func(o *train.Options, _ *model) { o.Accumulate = 2 }, "must be compiled for that", ir.Usage},
		{"batch too large", func(_ *train.Options, m *model) { m.batch = 101 }, "fewer than a batch of 101", ir.Usage},
		{"wrong shape", func(_ *train.Options, m *model) { m.features = 5 }, "takes samples of shape [5]", ir.Usage},
		{"label", func(o *train.Options, _ *model) { o.Data = dataset(t, 100, func(_, y *ir.Tensor) { y.I[40] = 3 }) }, "sample 40, holds label 3", ir.Failed},
		{"nan", func(o *train.Options, _ *model) {
			o.Data = dataset(t, 100, func(x, _ *ir.Tensor) { x.F[123] = math.NaN() })
		}, "sample 41, holds NaN", ir.Numeric},
		{"no checkpoint", func(o *train.Options, _ *model) { o.Resume = filepath.Join(t.TempDir(), "none") }, "there is no checkpoint", ir.Usage},
		{"too few epochs", func(o *train.Options, m *model) { o.Steps, o.Epochs, o.Accumulate, m.accumulate = 0, 1, 26, 26 }, "fewer than the 26 microbatches", ir.Usage},
	} {
		t.Run(c.name, func(t *testing.T) {
			o, m := options(t), digits()
			o.EvalSplit = 0
			o.Save = filepath.Join(t.TempDir(), "out.safetensors")
			if err := os.WriteFile(o.Save, []byte("precious"), 0o666); err != nil {
				t.Fatal(err)
			}
			c.change(&o, &m)
			_, err := run(t, m, o)
			if err == nil || !strings.Contains(err.Error(), c.want) || ir.KindOf(err) != c.kind {
				t.Errorf("got %v, want %q of kind %v", err, c.want, c.kind)
			}
			if raw, err := os.ReadFile(o.Save); err != nil || string(raw) != "precious" {
				t.Errorf("the file there before holds %q, %v", raw, err)
			}
		})
	}
}

// TestSchedules against PyTorch's lists, and texts that are none.
func TestSchedules(t *testing.T) {
	for _, c := range []struct {
		text string
		at   map[int64]float64
	}{
		{"constant", map[int64]float64{0: 1, 100: 1}},
		{"constant:warmup=4", map[int64]float64{0: 0.25, 3: 1, 9: 1}},
		{"linear:warmup=4,steps=20", map[int64]float64{0: 0.25, 4: 1, 5: 0.9375, 19: 0.0625, 20: 0, 30: 0}},
		{"cosine:warmup=5,steps=20,min=0.5", map[int64]float64{0: 0.2, 5: 1, 10: 0.875, 15: 0.625, 20: 0.5}},
	} {
		s, err := train.ParseSchedule(c.text)
		if err != nil || s.String() != c.text {
			t.Errorf("%s reads as %v, %v", c.text, s, err)
		}
		s = s.For(1000)
		for step, want := range c.at {
			if got := s.At(1, step); math.Abs(got-want) > 1e-12 {
				t.Errorf("%s: step %d has %v, want %v", c.text, step, got, want)
			}
		}
	}
	if s := (train.Schedule{Name: "cosine"}).For(40); s.At(2, 20) != 1 || s.String() != "cosine:steps=40" {
		t.Errorf("cosine over a run of 40: %v, half-way %v", s, s.At(2, 20))
	}
	for text, want := range map[string]string{
		"step": "want one of constant, linear, cosine", "cosine:warmup=-1": "0 or more", "linear:steps=0": "1 or more", "linear:min=x": "0 or more", "cosine:min=NaN": "0 or more",
		"constant:min=0.1": "constant knows warmup=", "linear:warmup=1,warmup=2": "twice", "linear:warmup": "linear knows warmup=, steps=, min=",
	} {
		if _, err := train.ParseSchedule(text); err == nil || !strings.Contains(err.Error(), want) || ir.KindOf(err) != ir.Usage {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}
