package train

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"aitk/ir"
	"aitk/ir/plan"
	"aitk/runtime"
	"aitk/runtime/train/data"
	"aitk/runtime/train/metrics"
)

// trainer is a run under way.
type trainer struct {
	ctx   context.Context // the caller's
	whole context.Context // never cancelled: what has begun is finished
	o     Options
	exe   *runtime.Executable
	plan  *plan.Plan
	store *Store

	step      *call
	update    *call // nil: updates stand inside step
	evaluator *evaluator

	order    *data.Order // nil for batches in order
	batch    int64       // samples of a microbatch
	perEpoch int64       // microbatches of an epoch
	total    int64       // optimizer steps
	samples  []int64     // of the microbatch

	done    int64 // optimizer steps
	written int64 // steps that the newest checkpoint holds, -1
	moved   int64 // bytes swapped since Load
	now     reserved
	record  metrics.Step
	out     *metrics.Writer
	res     *Result

	identity identity
}

// newTrainer checks everything that can be checked before the first step. Options that do not hold together are listed at once.
func newTrainer(ctx context.Context, exe *runtime.Executable, store *Store, o Options) (*trainer, error) {
	o.Accumulate = max(o.Accumulate, 1)
	t := &trainer{ctx: ctx, whole: context.WithoutCancel(ctx), o: o, exe: exe, plan: exe.Plan(), store: store, written: -1, res: &Result{Loss: math.NaN()}}
	if err := t.checkOptions(); err != nil {
		return nil, err
	}
	var err error
	if t.step, err = newCall(exe, "step", o.Data, o.Labels, "loss", "ok", "grad_norm"); err != nil {
		return nil, err
	}
	if p, _ := t.plan.Program("update"); p != nil {
		if t.update, err = newCall(exe, "update", nil, o.Labels, "ok", "grad_norm"); err != nil {
			return nil, err
		}
	} else if o.Accumulate > 1 {
		return nil, ir.Errorf(ir.Usage, ir.Origin{}, "the plan updates its weights in every step: to accumulate over %d microbatches it must be compiled for that", o.Accumulate)
	}
	if t.step.result("loss") == nil {
		return nil, ir.Errorf(ir.Unsupported, ir.Origin{}, "program step of the plan gives no loss")
	}
	if err := t.plant(); err != nil {
		return nil, err
	}
	if err := t.identify(); err != nil {
		return nil, err
	}
	if o.Metrics != nil {
		t.out = metrics.NewWriter(o.Metrics)
	}
	return t, nil
}

func (t *trainer) checkOptions() error {
	o := &t.o
	var problems []error
	refuse := func(bad bool, format string, args ...any) {
		if bad {
			problems = append(problems, fmt.Errorf(format, args...))
		}
	}
	refuse(o.Data == nil, "training needs data (--data)")
	refuse((o.Steps > 0) == (o.Epochs > 0), "give a number of steps or of epochs (--steps, --epochs), one of them")
	refuse(o.Steps < 0 || o.Epochs < 0 || o.EvalEvery < 0 || o.Every < 0 || o.Keep < 0, "counts cannot be negative")
	refuse(!(o.LR >= 0 && o.LR <= math.MaxFloat32), "learning rate %v: want a number of 0 or more that float32 can hold", o.LR)
	refuse(!(o.EvalSplit >= 0 && o.EvalSplit < 1), "--eval-split %v: want a fraction from 0 to below 1", o.EvalSplit)
	refuse(o.EvalSplit > 0 && o.EvalData != nil, "--eval-split and --eval-data exclude each other")
	refuse(o.EvalSplit > 0 && o.Data != nil && o.Data.Layout() == data.Batches, "--eval-split: data in given batches is never split; give --eval-data")
	refuse((o.Every > 0 || o.Keep > 0) && o.Checkpoints == "", "--every and --keep need a folder (--checkpoint)")
	refuse(o.Resume == "latest" && o.Checkpoints == "", "--resume latest needs the folder of the checkpoints (--checkpoint)")
	if len(problems) == 0 {
		return nil
	}
	return &ir.Error{Kind: ir.Usage, Cause: errors.Join(problems...)}
}

// plant lays out epochs and steps, and the evaluation.
func (t *trainer) plant() error {
	if t.step.feed == nil {
		return ir.Errorf(ir.Unsupported, ir.Origin{}, "program step of the plan takes no data")
	}
	t.res.Notes = append(t.res.Notes, t.step.feed.Notes()...)
	src := t.o.Data
	t.batch = t.step.feed.BatchSamples()
	if src.Layout() == data.Batches {
		t.perEpoch = src.Batches()
	} else {
		t.order = data.NewOrder(src.Samples(), t.o.EvalSplit, t.o.Seed)
		t.perEpoch = t.order.Train() / t.batch
		t.samples = make([]int64, t.batch)
	}
	if t.perEpoch == 0 {
		return &ir.Error{Kind: ir.Usage, Cause: fmt.Errorf("data %s: %d samples to train on are fewer than a batch of %d", src.Path(), t.order.Train(), t.batch), Remedy: "choose a smaller batch"}
	}
	t.total = t.o.Steps
	if t.o.Epochs > 0 {
		if t.o.Epochs > math.MaxInt64/t.perEpoch {
			return ir.Errorf(ir.Usage, ir.Origin{}, "%d epochs of %d batches are more steps than can be counted", t.o.Epochs, t.perEpoch)
		}
		if t.total = t.o.Epochs * t.perEpoch / t.o.Accumulate; t.total == 0 {
			return ir.Errorf(ir.Usage, ir.Origin{}, "%d epochs of %d batches are fewer than the %d microbatches of one step", t.o.Epochs, t.perEpoch, t.o.Accumulate)
		}
	}
	if t.total > math.MaxInt64/t.o.Accumulate {
		return ir.Errorf(ir.Usage, ir.Origin{}, "%d steps of %d microbatches are more than can be counted", t.total, t.o.Accumulate)
	}
	t.o.Schedule = t.o.Schedule.For(t.total)
	return t.plantEval()
}

// plantEval prepares the evaluation where there is something to judge by.
func (t *trainer) plantEval() error {
	src, order := t.o.EvalData, (*data.Order)(nil)
	if src == nil {
		if t.o.EvalSplit == 0 {
			return nil
		}
		src, order = t.o.Data, t.order
		if order != nil && order.Held() == 0 {
			t.res.Notes = append(t.res.Notes, "nothing is evaluated: the only sample is trained on")
			return nil
		}
	}
	e, err := newEvaluator(t.exe, src, order, t.o.Labels, t.o.Metric)
	if err != nil {
		return err
	}
	t.evaluator = e
	t.res.Notes = append(t.res.Notes, e.notes...)
	return nil
}

// begin loads the parameters and writes the header of the metrics.
func (t *trainer) begin() error {
	if err := t.exe.Run(t.whole, "init"); err != nil {
		return err
	}
	t.store.Release()
	t.moved = t.swapped()
	t.res.FirstStep = t.done
	t.now.seed = t.o.Seed
	goesOn := false
	if t.o.Begin != nil {
		var err error
		if goesOn, err = t.o.Begin(t.done); err != nil {
			return err
		}
	}
	if t.out != nil && !goesOn {
		if err := t.out.Header(t.header()); err != nil {
			return fmt.Errorf("metrics: %w", err)
		}
	}
	t.o.Progress.Begin(t.done, time.Now())
	return nil
}

func (t *trainer) swapped() int64 {
	return t.exe.MovedBytes(plan.CopySwapOut) + t.exe.MovedBytes(plan.CopySwapIn)
}

// optimizerStep runs the microbatches of one step and the update.
func (t *trainer) optimizerStep() error {
	begin := time.Now()
	t.now.step, t.now.lr = t.done, t.o.Schedule.At(t.o.LR, t.done)
	loss := 0.0
	for micro := range t.o.Accumulate {
		t.now.micro = micro
		if err := t.fill(t.done*t.o.Accumulate + micro); err != nil {
			return err
		}
		if err := t.run(t.step); err != nil {
			return err
		}
		loss += t.step.scalarOf("loss")
		if !t.step.ok() {
			return t.failed(t.step)
		}
	}
	norm := t.step.scalarOf("grad_norm")
	if t.update != nil {
		if err := t.run(t.update); err != nil {
			return err
		}
		norm = t.update.scalarOf("grad_norm")
		if !t.update.ok() {
			return t.failed(t.update)
		}
	}
	t.done++
	t.measure(loss, norm, time.Since(begin).Seconds())
	return nil
}

// fill reads the samples of microbatch number k of the run.
func (t *trainer) fill(k int64) error {
	epoch, position := k/t.perEpoch, k%t.perEpoch
	if t.order == nil {
		return t.step.feed.FillBatch(position, t.done)
	}
	for i := range t.samples {
		t.samples[i] = t.order.Sample(epoch, position*t.batch+int64(i))
	}
	return t.step.feed.Fill(t.samples, t.done)
}

func (t *trainer) run(c *call) error {
	if err := c.set(&t.now); err != nil {
		return err
	}
	if err := t.exe.Run(t.whole, c.name); err != nil {
		return fmt.Errorf("step %d: %w", t.done, err)
	}
	return c.read()
}

// ok reads the finite flag; where a program has none, a finite loss must do.
func (c *call) ok() bool {
	if r := c.result("ok"); r != nil {
		return r.raw[0] != 0
	}
	if r := c.result("loss"); r != nil {
		x := r.float(0)
		return x-x == 0
	}
	return true
}

// measure fills the record of the step just done.
func (t *trainer) measure(loss, norm, seconds float64) {
	samples := t.batch * t.o.Accumulate
	moved := t.swapped()
	t.record = metrics.Step{
		Step: t.done - 1, Loss: loss, LR: t.now.lr, GradNorm: norm, Seconds: seconds,
		DevicePeakBytes: t.exe.HighWaterBytes(ir.Device), HostPeakBytes: t.exe.HighWaterBytes(ir.Pinned), MovedBytes: moved - t.moved,
	}
	if seconds > 0 {
		t.record.SamplesPerSecond = float64(samples) / seconds
	}
	t.moved = moved
	t.res.Loss = loss
	t.res.Samples += samples
}
