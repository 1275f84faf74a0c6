package train_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"aitk/ir"
	"aitk/runtime/train"
	"aitk/runtime/train/checkpoint"
)

// outcome is what must be equal bit by bit: the loss of each step, and the file.
type outcome struct {
	losses []any
	saved  []byte
}

// record runs and keeps the losses by step in o, so that two runs in a row can be compared with one.
func record(t *testing.T, m model, o train.Options, out *outcome) *train.Result {
	t.Helper()
	var b bytes.Buffer
	o.Metrics = &b
	res, err := run(t, m, o)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range lines(t, b.Bytes())[1:] {
		out.losses = append(out.losses, fmt.Sprint(s["step"], s["loss"], s["grad_norm"]))
	}
	if o.Save != "" {
		if out.saved, err = os.ReadFile(o.Save); err != nil {
			t.Fatal(err)
		}
	}
	return res
}

// TestResume: stopped anywhere, gone on under another layout, a run gives the losses and the file of one that was not stopped.
func TestResume(t *testing.T) {
	for _, accumulate := range []int64{1, 3} {
		m := digits()
		m.accumulate = accumulate
		o := options(t)
		o.Steps, o.Accumulate = 47, accumulate
		o.Schedule = train.Schedule{Name: "cosine", Warmup: 5, Steps: 47}
		o.Save = filepath.Join(t.TempDir(), "whole.safetensors")
		var whole outcome
		record(t, m, o, &whole)
		for _, at := range []int64{1, 19, 20, 46} {
			dir := filepath.Join(t.TempDir(), "runs")
			first, second := o, o
			first.Steps, first.Save, first.Checkpoints, first.Every, first.Keep = at, "", dir, 7, 2
			var parts outcome
			record(t, m, first, &parts)
			second.Save = filepath.Join(t.TempDir(), "parts.safetensors")
			second.Checkpoints, second.Resume = dir, "latest"
			other := m
			other.padBytes = 192
			res := record(t, other, second, &parts)
			if res.FirstStep != at || res.Steps != 47 {
				t.Errorf("went on at step %d to %d, want %d to 47", res.FirstStep, res.Steps, at)
			}
			if !slices.Equal(parts.losses, whole.losses) {
				t.Errorf("accumulate %d, stopped after %d: losses differ:\n%v\n%v", accumulate, at, parts.losses, whole.losses)
			}
			if !bytes.Equal(parts.saved, whole.saved) {
				t.Errorf("accumulate %d, stopped after %d: the files differ", accumulate, at)
			}
			// A checkpoint by name, without a folder to write to.
			named := o
			named.Save = ""
			named.Resume = filepath.Join(dir, fmt.Sprintf("step-%08d", at))
			if res := record(t, m, named, &outcome{}); res.FirstStep != at || res.Checkpoint != "" {
				t.Errorf("from %s: went on at %d, wrote %q", named.Resume, res.FirstStep, res.Checkpoint)
			}
		}
	}
}

// TestResumeRefused: checkpoints of another run are named for what differs; runs are not mixed in one folder.
func TestResumeRefused(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "runs")
	o := options(t)
	o.Steps, o.Checkpoints = 10, dir
	record(t, digits(), o, &outcome{})
	o.Resume = "latest"
	o.Steps = 20
	for _, c := range []struct {
		name   string
		change func(o *train.Options, m *model)
		want   string
	}{
		{"anew", func(o *train.Options, _ *model) { o.Resume = "" }, "holds checkpoints of another run, up to step 10"},
		{"seed", func(o *train.Options, _ *model) { o.Seed = 8 }, "seed was 1 and is 8"},
		{"learning rate", func(o *train.Options, _ *model) { o.LR = 0.2 }, "lr was 0.1 and is 0.2"},
		{"split", func(o *train.Options, _ *model) { o.EvalSplit = 0.1 }, "100 samples, 20 held out and is 100 samples, 10 held out"},
		{"graph", func(_ *train.Options, m *model) { m.momentum = 0.5 }, "training graph is another one"},
		{"batch", func(_ *train.Options, m *model) { m.batch = 5 }, "batch was 4 and is 5"},
		{"backwards", func(o *train.Options, _ *model) { o.Steps = 9 }, "of step 10, the run ends at step 9"},
	} {
		t.Run(c.name, func(t *testing.T) {
			o, m := o, digits()
			c.change(&o, &m)
			_, err := run(t, m, o)
			if err == nil || !strings.Contains(err.Error(), c.want) || ir.KindOf(err) != ir.Usage {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
		t.Errorf("the folder holds %v, %v", entries, err)
	}
}

// canceller cancels a context when so many steps have been written.
type canceller struct {
	lines, after int
	cancel       context.CancelFunc
}

func (c *canceller) Write(p []byte) (int, error) {
	if c.lines++; c.lines == c.after+1 { // a header comes first
		c.cancel()
	}
	return len(p), nil
}

// TestInterrupted: the step is finished, a checkpoint is written, and the run goes on from it.
func TestInterrupted(t *testing.T) {
	for _, folder := range []bool{true, false} {
		ctx, cancel := context.WithCancel(context.Background())
		o := options(t)
		o.Metrics = &canceller{after: 13, cancel: cancel}
		o.Save = filepath.Join(t.TempDir(), "out.safetensors")
		if folder {
			o.Checkpoints = filepath.Join(t.TempDir(), "runs")
		}
		exe, store := load(t, digits())
		_, err := train.Run(ctx, exe, store, o)
		e, ok := errors.AsType[*train.Interrupted](err)
		if !ok || e.Steps != 13 || !errors.Is(err, context.Canceled) || (e.Checkpoint != "") != folder {
			t.Fatalf("got %v", err)
		}
		if _, err := os.Stat(o.Save); !errors.Is(err, os.ErrNotExist) {
			t.Error("an interrupted run saved its weights")
		}
		if folder {
			o.Resume, o.Metrics = "latest", nil
			if res, err := run(t, digits(), o); err != nil || res.FirstStep != 13 {
				t.Errorf("resumed: %+v, %v", res, err)
			}
		}
	}
}

// raw encodes float32 content.
func raw(xs ...float64) []byte {
	x := ir.NewTensor(ir.T(ir.F32, int64(len(xs))))
	copy(x.F, xs)
	return x.Encode()
}

// TestNumericFailure: exit 5 with step and node, the state of the weights, nothing saved, earlier checkpoints whole.
func TestNumericFailure(t *testing.T) {
	big := slices.Repeat([]float64{3e38}, 9)
	for _, c := range []struct {
		name   string
		change func(o *train.Options, m *model)
		want   []string
	}{
		{"overflow in the forward half", func(_ *train.Options, m *model) { m.init = map[string][]byte{"fc.weight": raw(big...)} },
			[]string{"step 0:", `node "fc"`, "MatMul is the first to give an infinity from finite operands", "those from before the step"}},
		{"learning rate of 1e38", func(o *train.Options, _ *model) { o.LR = 1e38 }, []string{"step 3:", `node "fc"`, "those from before the step"}},
		{"with microbatches", func(o *train.Options, m *model) {
			o.Accumulate, m.accumulate = 2, 2
			m.init = map[string][]byte{"fc.weight": raw(big...)}
		}, []string{"step 0, microbatch 0", "MatMul is the first", "those from before the step"}},
		{"weights that are none", func(_ *train.Options, m *model) { m.init = map[string][]byte{"fc.bias": raw(0, math.Inf(1), 0)} },
			[]string{"step 0:", "fc.bias held NaN or an infinity from the start", `node "fc"`, "Add is the first"}},
		{"a later step", func(o *train.Options, _ *model) {
			o.Data = dataset(t, 4, func(x, _ *ir.Tensor) { x.F[5] = 1e20 })
			o.LR = 1e20
		}, []string{"step 1:", "nothing was saved"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			o, m := options(t), digits()
			o.EvalSplit, o.Save, o.Checkpoints = 0, filepath.Join(t.TempDir(), "out.safetensors"), filepath.Join(t.TempDir(), "runs")
			c.change(&o, &m)
			_, err := run(t, m, o)
			for _, w := range c.want {
				if err == nil || !strings.Contains(err.Error(), w) || ir.KindOf(err) != ir.Numeric {
					t.Errorf("got %v, want %q", err, w)
				}
			}
			if _, err := os.Stat(o.Save); !errors.Is(err, os.ErrNotExist) {
				t.Error("weights were saved after a numeric failure")
			}
			if entries, err := os.ReadDir(o.Checkpoints); err == nil && len(entries) > 0 {
				t.Errorf("checkpoints were written after a numeric failure: %v", entries)
			}
		})
	}
}

// TestNumericFailureKeepsCheckpoints: what was written before stays loadable, and the message names it; weights that overflow with the last
// update are not saved.
func TestNumericFailureKeepsCheckpoints(t *testing.T) {
	o := options(t)
	o.Steps, o.Checkpoints, o.Every = 40, filepath.Join(t.TempDir(), "runs"), 2
	o.Schedule = train.Schedule{Name: "constant", Warmup: 8} // begins small, for a number of this size
	o.LR = 3e38
	_, err := run(t, digits(), o)
	if err == nil || ir.KindOf(err) != ir.Numeric || !strings.Contains(err.Error(), "the newest checkpoint is "+o.Checkpoints) {
		t.Fatalf("got %v", err)
	}
	c, skipped, err := checkpoint.Latest(o.Checkpoints)
	if err != nil || c == nil || len(skipped) > 0 {
		t.Fatalf("checkpoint %v, skipped %v, error %v", c, skipped, err)
	}
	c.Close()
	once := o
	once.Steps, once.Checkpoints, once.Every, once.Schedule = 1, "", 0, train.Schedule{}
	once.Save = filepath.Join(t.TempDir(), "out.safetensors")
	once.Data = dataset(t, 100, func(x, _ *ir.Tensor) {
		for i := range x.F {
			x.F[i] *= 1e10
		}
	})
	_, err = run(t, digits(), once)
	if ir.KindOf(err) != ir.Numeric || !strings.Contains(fmt.Sprint(err), "nothing is saved") {
		t.Errorf("got %v", err)
	}
	if _, err := os.Stat(once.Save); !errors.Is(err, os.ErrNotExist) {
		t.Error("weights that are no numbers were saved")
	}
}
