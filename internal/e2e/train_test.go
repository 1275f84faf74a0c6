package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"aitk/ir"
	"aitk/ir/plan"
	"aitk/passes"
	"aitk/runtime"
	"aitk/runtime/cpu"
	"aitk/runtime/train"
	"aitk/runtime/train/data"
)

// loop runs a plan with the training loop over the golden's batches and returns the losses and the saved file.
func (x *trainer) loop(t *testing.T, p *plan.Plan, o train.Options) (losses []float64, saved []byte, res *train.Result) {
	t.Helper()
	src, err := data.Open(filepath.Join(x.dir, "batches.safetensors"))
	check(t, err)
	defer src.Close()
	store := train.NewStore(p)
	dev := cpu.Open(cpu.Options{})
	exe, err := runtime.Load(p, dev, runtime.Options{Storage: store})
	if err != nil {
		dev.Close()
		t.Fatal(err)
	}
	defer exe.Close()
	var lines bytes.Buffer
	o.Data, o.Metrics, o.Accumulate = src, &lines, max(x.g.Accumulate, 1)
	o.LR = x.g.Optimizer.LR
	if o.Save == "" {
		o.Save = filepath.Join(t.TempDir(), "out.safetensors")
	}
	res, err = train.Run(context.Background(), exe, store, o)
	check(t, err)
	for i, line := range bytes.Split(bytes.TrimSuffix(lines.Bytes(), []byte("\n")), []byte("\n")) {
		var s struct {
			Loss   float64
			Device int64 `json:"device_peak_bytes"`
			Moved  int64 `json:"moved_bytes"`
		}
		check(t, json.Unmarshal(line, &s))
		if i == 0 {
			continue
		}
		losses = append(losses, s.Loss)
		if want := p.Arena(ir.Device).Bytes; s.Device != want {
			t.Errorf("step %d: the device saw %d bytes, the arena has %d", i-1, s.Device, want)
		}
		if want := p.Report.SwapOutBytes + p.Report.SwapInBytes; s.Moved != want*o.Accumulate && x.ctx.Program("update") == nil {
			t.Errorf("step %d moved %d bytes, the plan swaps %d", i-1, s.Moved, want)
		}
	}
	saved, err = os.ReadFile(o.Save)
	check(t, err)
	return losses, saved, res
}

// stepsOf is the number of optimizer steps of the golden.
func (x *trainer) stepsOf() int64 { return int64(x.steps) / max(x.g.Accumulate, 1) }

// The training loop gives the golden losses: batches in their order, microbatches, schedules.
func TestLoopParity(t *testing.T) {
	for _, r := range goldens(t) {
		t.Run(r.String(), func(t *testing.T) { loopParity(t, r, train.Schedule{}) })
	}
	t.Run("schedules", func(t *testing.T) {
		dir := small(t, "mlp_digits")
		loopParity(t, run{dir: dir, file: "model.onnx", golden: "golden_cosine.json"}, train.Schedule{Name: "cosine", Warmup: 5})
		loopParity(t, run{dir: dir, file: "model.onnx", golden: "golden_linear.json"}, train.Schedule{Name: "linear", Warmup: 4})
	})
}

func loopParity(t *testing.T, r run, s train.Schedule) {
	x := open(t, r)
	p := x.compile(t, passes.MemoryOptions{BudgetBytes: -1, HostBudgetBytes: -1})
	losses, _, _ := x.loop(t, p, train.Options{Steps: x.stepsOf(), Schedule: s})
	acc := int(max(x.g.Accumulate, 1))
	for i, got := range losses {
		want := 0.0
		for _, l := range x.g.LossesF64[i*acc : (i+1)*acc] {
			want += l / float64(acc)
		}
		if limit := max(3*x.g.Deviation.Losses.MaxAbs, 1e-6*want); math.Abs(got-want) > limit {
			t.Errorf("%s, step %d: loss %.9g, golden %.9g", r.golden, i, got, want)
		}
	}
	if len(losses) != int(x.stepsOf()) {
		t.Errorf("%d steps, want %d", len(losses), x.stepsOf())
	}
}

// A run stopped under one budget and resumed under another, with recomputing or swapping, gives the losses and the file of an uninterrupted one.
func TestResumeUnderAnotherBudget(t *testing.T) {
	list := []run{goldens(t)[0], goldens(t)[2], goldens(t)[3]} // plain, clipped, with microbatches
	if _, err := os.Stat(filepath.Join("..", "..", "..", "shared", "models", "small", "cnn_mnist")); err == nil {
		list = append(list, run{dir: small(t, "cnn_mnist"), file: "model.onnx", golden: "golden.json"})
	}
	for _, r := range list {
		t.Run(r.String(), func(t *testing.T) {
			r.plain = true
			x := open(t, r)
			free := x.compile(t, passes.MemoryOptions{BudgetBytes: -1, HostBudgetBytes: -1})
			steps := min(x.stepsOf(), 8)
			want, file, _ := x.loop(t, free, train.Options{Steps: steps})
			plans := []*plan.Plan{free}
			for _, m := range modes() {
				o := passes.MemoryOptions{HostBudgetBytes: -1, Recompute: m.recompute, Swap: m.swap}
				o.BudgetBytes = x.minimum(t, o).MinimumBytes
				plans = append(plans, x.compile(t, o))
			}
			for i, p := range plans {
				dir := t.TempDir()
				half := steps / 2
				first, _, _ := x.loop(t, p, train.Options{Steps: half, Checkpoints: dir, Every: 1, Keep: 2})
				rest, again, res := x.loop(t, plans[(i+1)%len(plans)], train.Options{Steps: steps, Checkpoints: dir, Resume: "latest"})
				if got := append(first, rest...); !slices.Equal(got, want) || !bytes.Equal(again, file) || res.FirstStep != half {
					t.Errorf("from plan %d to %d: resumed at %d of %d; losses %v, want %v; files equal: %v", i, (i+1)%len(plans), res.FirstStep, half, got, want, bytes.Equal(again, file))
				}
			}
		})
	}
}

// A learning rate of 1e9 ends with the step and the node; nothing is saved.
func TestLoopNumericFailure(t *testing.T) {
	for _, r := range goldens(t) {
		t.Run(r.String(), func(t *testing.T) {
			r.plain = true
			x := open(t, r)
			p := x.compile(t, passes.MemoryOptions{BudgetBytes: -1, HostBudgetBytes: -1})
			src, err := data.Open(filepath.Join(x.dir, "batches.safetensors"))
			check(t, err)
			defer src.Close()
			store := train.NewStore(p)
			dev := cpu.Open(cpu.Options{})
			exe, err := runtime.Load(p, dev, runtime.Options{Storage: store})
			if err != nil {
				dev.Close()
				t.Fatal(err)
			}
			defer exe.Close()
			save := filepath.Join(t.TempDir(), "out.safetensors")
			_, err = train.Run(context.Background(), exe, store, train.Options{Data: src, Steps: 200, LR: 1e38, Accumulate: max(x.g.Accumulate, 1), Save: save})
			if ir.KindOf(err) != ir.Numeric {
				t.Fatalf("got %v", err)
			}
			if e, ok := errors.AsType[*ir.Error](err); !ok || e.Origin.Node == "" || !strings.Contains(err.Error(), "from before the step") || !strings.Contains(err.Error(), "step 1") {
				t.Errorf("the message lacks node, step or the weights' state: %v", err)
			}
			if _, err := os.Stat(save); err == nil {
				t.Error("weights were saved")
			}
		})
	}
}
