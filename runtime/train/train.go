// Package train runs a plan over data: it fills batches, runs the programs step, update and eval, measures, writes checkpoints and saves
// the result. It knows programs by name and by their inputs and results, parameters by name and role; it must not know ops, passes, model
// files or the command line, and it computes nothing that a program should compute (except metrics over outputs).
//
// The caller makes things in this order:
//
//	src, err := data.Open(path)                         // names, dtypes, shapes, samples: for --dim, loss and metric
//	p := ...                                            // a plan.Plan, compiled or read
//	store := train.NewStore(p)                          // the plan's disk space
//	exe, err := runtime.Load(p, dev, runtime.Options{Storage: store})
//	res, err := train.Run(ctx, exe, store, train.Options{Data: src, Steps: 100, LR: 0.1, ...})
//	res, err := train.Eval(ctx, exe, train.EvalOptions{Data: src, Metric: m})   // aitk eval, after exe.Run(ctx, "init")
//
// Programs and what is expected of them:
//
//	init    loads all parameters through the Store
//	step    one microbatch: inputs of the model, target, and of $step $micro $lr $seed those it uses; results loss (divided by the number of
//	        microbatches), ok, and without program update grad_norm
//	update  once per optimizer step, only with accumulation or clipping: $lr $step -> ok, grad_norm
//	eval    inputs of the model, target, $valid (how many leading samples count) -> outputs, loss; $sum and $count where batches do not count by their samples
//	save    stores all parameters that some program changes
//
// Errors: *ir.Error with Kind Usage (data does not fit, wrong options, a checkpoint of another run), Failed (a bad label), Numeric (NaN or Inf; the
// message names node and step); *Interrupted after a cancelled context, once the step has finished and the checkpoint is written.
//
// Invariants: in the steady state an optimizer step allocates nothing; the samples of microbatch number k of a run depend on seed, k and
// the data alone; after a numeric failure nothing is written; a run that was resumed gives the same losses and files as one that was not.
package train

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"aitk/ir"
	"aitk/runtime"
	"aitk/runtime/train/data"
	"aitk/runtime/train/metrics"
)

// Options of Run. The zero value of a field is its default.
type Options struct {
	Data      *data.Source // training data; the caller closes it
	EvalData  *data.Source // judged by program eval; nil: see EvalSplit
	EvalSplit float64      // fraction of Data held out for evaluation, in [0,1); only for data in samples and without EvalData
	Labels    data.Labels  // what integers the target may hold

	Steps      int64    // optimizer steps in all, those before a resume included; 0: by Epochs
	Epochs     int64    // passes over the training data; exactly one of Steps and Epochs is given
	Seed       int64    // of the order of samples and of everything random in the graph
	LR         float64  // before the schedule
	Schedule   Schedule // the zero value is constant
	Accumulate int64    // microbatches of one optimizer step, as the plan was compiled for; 0: 1

	EvalEvery int64  // steps between evaluations; 0: only after the last step
	Metric    Metric // besides the loss

	Checkpoints string // folder; "": none are written
	Every       int64  // steps between checkpoints; 0: one when the run ends or is interrupted
	Keep        int64  // how many of the newest are kept; 0: all
	Resume      string // a checkpoint's folder, a folder of checkpoints, or "latest" of Checkpoints; "": start anew

	Metrics io.Writer // JSON lines; nil: none
	// Begin is called once everything is loaded, with the step that comes first and before its line of metrics. goesOn says that
	// the header and the lines of earlier steps are there already. May be nil.
	Begin    func(first int64) (goesOn bool, err error)
	Progress *metrics.Progress // nil: quiet
	Save     string            // safetensors file for the trained weights; "": none
}

// Result is what a run came to.
type Result struct {
	FirstStep       int64   // 0, or the step that it resumed from
	Steps           int64   // optimizer steps done in all
	Loss            float64 // of the last step, before its update; NaN if no step was run
	Samples         int64   // trained on in this run
	Seconds         float64 // of the loop, evaluations and checkpoints included
	DevicePeakBytes int64   // measured
	HostPeakBytes   int64
	Eval            *EvalResult // the last evaluation; nil: none
	Checkpoint      string      // the last one written
	Notes           []string    // what the user should know
}

// Interrupted is the error of a run whose context was cancelled: the current step was finished, and a checkpoint was written if a folder
// was given. It unwraps to the context's error.
type Interrupted struct {
	Steps      int64  // done
	Checkpoint string // "": none was asked for
	Cause      error
}

func (e *Interrupted) Error() string {
	s := fmt.Sprintf("interrupted after step %d", e.Steps)
	if e.Checkpoint != "" {
		return s + "; go on with --resume " + e.Checkpoint
	}
	return s + "; nothing was saved, since no --checkpoint folder was given"
}

func (e *Interrupted) Unwrap() error { return e.Cause }

// Run trains. It begins with program init, so exe is fresh from runtime.Load with store as its Storage.
func Run(ctx context.Context, exe *runtime.Executable, store *Store, o Options) (*Result, error) {
	t, err := newTrainer(ctx, exe, store, o)
	if err != nil {
		return nil, err
	}
	defer o.Progress.Close()
	if err := t.restore(); err != nil {
		return nil, err
	}
	if err := t.begin(); err != nil {
		return nil, err
	}
	begin := time.Now()
	err = t.loop()
	t.res.Seconds = time.Since(begin).Seconds()
	t.res.Steps = t.done
	t.res.DevicePeakBytes, t.res.HostPeakBytes = exe.HighWaterBytes(ir.Device), exe.HighWaterBytes(ir.Pinned)
	if err != nil {
		return t.res, err
	}
	if o.Save != "" {
		if err := Save(exe, store, o.Save, t.done); err != nil {
			return t.res, err
		}
	}
	return t.res, nil
}

// loop runs steps until the last one, or until the context is cancelled.
func (t *trainer) loop() error {
	for t.done < t.total {
		if err := t.ctx.Err(); err != nil {
			return t.interrupted(err)
		}
		if err := t.optimizerStep(); err != nil {
			return err
		}
		if err := t.evaluateIfDue(); err != nil {
			return err
		}
		if err := t.report(); err != nil {
			return err
		}
		if err := t.checkpointIfDue(); err != nil {
			return err
		}
	}
	return nil
}

// interrupted writes the last checkpoint.
func (t *trainer) interrupted(cause error) error {
	e := &Interrupted{Steps: t.done, Cause: cause}
	if t.o.Checkpoints != "" {
		if t.written != t.done {
			if err := t.checkpoint(); err != nil {
				return errors.Join(err, e)
			}
		}
		e.Checkpoint = t.res.Checkpoint
	}
	return e
}

// evaluateIfDue judges the weights every so many steps and after the last one.
func (t *trainer) evaluateIfDue() error {
	t.record.Evaluated = false
	if t.evaluator == nil || t.done < t.total && (t.o.EvalEvery == 0 || t.done%t.o.EvalEvery != 0) {
		return nil
	}
	r, err := t.evaluator.run(t.ctx)
	if err != nil {
		if t.ctx.Err() != nil && errors.Is(err, t.ctx.Err()) {
			return nil // the loop notices it next, after this step's line is written
		}
		return err
	}
	t.res.Eval = r
	t.record.Evaluated = true
	t.record.EvalLoss, t.record.EvalMetric, t.record.EvalValue, t.record.EvalSamples = r.Loss, r.Metric, r.Value, r.Samples
	t.o.Progress.Say("step %d: %v", t.done, r)
	return nil
}

// report writes the step's line of metrics and shows progress.
func (t *trainer) report() error {
	t.o.Progress.Step(&t.record, t.total, time.Now())
	if t.out == nil {
		return nil
	}
	if err := t.out.Step(&t.record); err != nil {
		return fmt.Errorf("metrics: %w", err)
	}
	return nil
}

// checkpointIfDue writes one every so many steps and after the last one.
func (t *trainer) checkpointIfDue() error {
	if t.o.Checkpoints == "" || t.done < t.total && (t.o.Every == 0 || t.done%t.o.Every != 0) {
		return nil
	}
	return t.checkpoint()
}
