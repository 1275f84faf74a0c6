package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"aitk/ir"
	"aitk/ir/plan"
	"aitk/passes"
	"aitk/runtime/train"
	"aitk/runtime/train/data"
)

func trainCommand() command {
	return command{name: "train", args: "MODEL --data FILE", min: 1, max: 1, short: "compile and run in one go", run: trainModel,
		long: `What is not given is chosen and printed: a batch of 32 (data in steps brings its own), a loss and a metric by the data, AdamW, a fifth of
the samples held out, and as many epochs as bring about 600 optimizer steps, at most 20. Ctrl-C finishes the step, writes a checkpoint where a
folder was given, and exits with 130; a second one ends at once.`}
}

func runCommand() command {
	return command{name: "run", args: "PLAN --data FILE", min: 1, max: 1, short: "execute a plan: train", run: runPlan,
		long: `Loss, optimizer, schedule, seed and batch are the plan's. On --device null nothing is computed: the plan is loaded, its programs are
stepped through --steps times and what the device was asked to do is counted.`}
}

func trainModel(c *call) error {
	s, err := c.open(c.args[0])
	if err != nil {
		return err
	}
	if s.plan != nil {
		return usagef("%s is a plan: execute it with `aitk run`", s.path)
	}
	if err := c.checkTraining(); err != nil {
		return err
	}
	if c.gpu != "" && c.device == "" {
		return usagef("--gpu %s plans for a card: to run on this machine's give --device cuda as well, to compute nothing --device null; plan and compile need neither", c.gpu)
	}
	b, p, err := c.planModel(s.path)
	if err != nil {
		if p != nil && !c.quiet {
			err = errors.Join(plan.WriteSummary(c.stdout, p), err)
		}
		return err
	}
	c.noteAbsent(p)
	return c.execute(p, b.source, b.choices)
}

func runPlan(c *call) error {
	s, err := c.open(c.args[0])
	if err != nil {
		return err
	}
	if s.plan == nil {
		return usagef("%s is no plan: make one with `aitk compile`, or use `aitk train`", s.path)
	}
	if err := c.checkTraining(); err != nil {
		return err
	}
	src, err := c.openData(s.plan)
	if err != nil {
		return err
	}
	return c.execute(s.plan, src, nil)
}

// checkTraining refuses before anything is planned what would be refused after it.
func (c *call) checkTraining() error {
	switch {
	case c.data == "" && c.device != "null":
		return usagef("%s needs --data", c.cmd.name)
	case c.has("steps") && c.has("epochs"):
		return usagef("--steps and --epochs both say how long: give one")
	case c.evalData != "" && c.evalSplitGiven:
		return usagef("--eval-data and --eval-split both say what is held out: give one")
	case (c.every > 0 || c.keep > 0) && c.checkpoint == "":
		return usagef("--every and --keep need --checkpoint DIR")
	case c.checkpoint == "" && c.has("checkpoint"):
		return usagef("--checkpoint names no folder")
	case c.resume == "latest" && c.checkpoint == "":
		return usagef("--resume latest is the newest of --checkpoint DIR, which is not given")
	}
	for _, out := range []struct{ flag, path string }{{"save", c.save}, {"metrics", c.metrics}} {
		if out.path == "" && c.has(out.flag) {
			return usagef("--%s names no file", out.flag)
		}
		if out.path == "" || out.path == "-" {
			continue
		}
		if st, err := os.Stat(filepath.Dir(out.path)); err != nil || !st.IsDir() {
			return usagef("--%s %s: there is no folder %s", out.flag, out.path, filepath.Dir(out.path))
		}
		if st, err := os.Stat(out.path); err == nil && st.IsDir() {
			return usagef("--%s %s is a folder", out.flag, out.path)
		} else if err == nil && !st.Mode().IsRegular() && out.flag == "save" {
			return usagef("--save %s is no regular file", out.path)
		}
		if err := c.notAnInput(out.path); err != nil {
			return err
		}
		if err := writable(out.flag, out.path); err != nil {
			return err
		}
	}
	if c.checkpoint != "" {
		if err := writableFolder("checkpoint", c.checkpoint); err != nil {
			return err
		}
	}
	if c.save == "-" {
		return usagef("--save - : a safetensors file is written at several places; name a file")
	}
	if c.metrics == "-" { // lines for a program, and nothing between them
		c.lines, c.stdout = c.stdout, c.stderr
	}
	return nil
}

// openData opens the data of a plan and holds --batch against the plan's own.
func (c *call) openData(p *plan.Plan) (*data.Source, error) {
	if c.data == "" {
		return nil, nil
	}
	src, err := c.openSource("--data", c.data)
	if err != nil {
		return nil, err
	}
	step, _ := p.Program("step")
	if step == nil || c.batch == 0 {
		return src, nil
	}
	for _, in := range step.Inputs {
		if s := in.Ref.Type.Shape; in.Name[0] != '$' && len(s) > 0 && s[0] != c.batch {
			return nil, usagef("--batch %d: the plan was made for %d samples in input %q; compile the model again for another batch", c.batch, s[0], in.Name)
		}
	}
	return src, nil
}

// execute trains with a plan and says what came of it.
func (c *call) execute(p *plan.Plan, src *data.Source, choices []choice) error {
	exe, store, err := c.load(p)
	if err != nil {
		return err
	}
	defer exe.Close()
	if c.device == "null" || c.device == "" && p.Profile.Device == "null" {
		for _, flag := range []string{"save", "checkpoint", "resume"} {
			if c.has(flag) {
				return usagef("--%s: on device null nothing is computed, so there is nothing to keep; use --device cpu", flag)
			}
		}
		return c.countSteps(exe)
	}
	o, more, err := c.trainOptions(p, src)
	if err != nil {
		return err
	}
	c.tellChoices(c.stdout, append(choices, more...))
	if !c.quiet {
		if err := plan.WriteSummary(c.stdout, p); err != nil {
			return err
		}
	}
	if c.save == "" && c.checkpoint == "" {
		c.note("the trained weights will not be kept: use --save FILE.safetensors, or --checkpoint DIR")
	}
	if c.checkpoint != "" || c.resume != "" {
		c.detail("reading the data (%s) and the frozen weights once for their SHA-256: a run goes on only with those it began with", plan.FormatBytes(src.Bytes()))
	}
	out := &metricsFile{c: c}
	o.Metrics = out.writer()
	o.Begin = func(first int64) (bool, error) {
		patient(c.ctx)
		return out.begin(first)
	}
	o.Progress = c.progress()
	res, err := train.Run(c.ctx, exe.Executable, store, o)
	_, interrupted := errors.AsType[*train.Interrupted](err)
	if finished := out.finish(err == nil || interrupted); err == nil {
		err = finished
	}
	if res != nil {
		for _, n := range res.Notes {
			c.note("%s", n)
		}
	}
	if err != nil {
		return err
	}
	return c.tellResult(p, res)
}

// trainOptions turns flags and the plan's settings into options of a run, and lists what it chose.
func (c *call) trainOptions(p *plan.Plan, src *data.Source) (train.Options, []choice, error) {
	o := train.Options{
		Data: src, Steps: c.steps, Epochs: c.epochs, EvalEvery: c.evalEvery, Checkpoints: c.checkpoint, Every: c.every, Keep: c.keep, Resume: c.resume, Save: c.save,
	}
	var chosen []choice
	choose := func(name, value, why string) { chosen = append(chosen, choice{name, value, why}) }
	if err := settingsOf(p, &o); err != nil {
		return o, nil, err
	}
	j, err := judge(p, c.metric)
	if err != nil {
		return o, nil, err
	}
	o.Labels, o.Metric = j.labels, j.metric
	if c.evalData != "" {
		if o.EvalData, err = c.openSource("--eval-data", c.evalData); err != nil {
			return o, nil, err
		}
	} else if src.Layout() == data.Samples {
		if o.EvalSplit = c.split(); !c.evalSplitGiven {
			choose("eval-split", strconv.FormatFloat(o.EvalSplit, 'g', -1, 64), "held out of the training data; --eval-split 0 trains on all of it")
		}
	} else if c.evalSplitGiven && c.evalSplit > 0 {
		o.EvalSplit = c.evalSplit // for Run to refuse
	}
	if j.why != "" && (o.EvalData != nil || o.EvalSplit > 0) {
		choose("metric", j.metric.Name, j.why)
	}
	c.chooseLength(&o, stepsPerEpoch(p, src, &o), choose)
	return o, chosen, nil
}

// settingsOf reads the plan's settings.
func settingsOf(p *plan.Plan, o *train.Options) error {
	spec, err := passes.ParseOptimizer(p.Option("optimizer"))
	if err != nil {
		return fmt.Errorf("the plan is not one to train with: %w", err)
	}
	o.LR = spec.LR
	if o.Schedule, err = train.ParseSchedule(cmp.Or(p.Option("schedule"), "constant")); err != nil {
		return err
	}
	for _, x := range []struct {
		key string
		dst *int64
	}{{"seed", &o.Seed}, {"accumulate", &o.Accumulate}} {
		if text := p.Option(x.key); text != "" {
			if *x.dst, err = strconv.ParseInt(text, 10, 64); err != nil {
				return ir.Errorf(ir.Failed, ir.Origin{}, "the plan's setting %s is %q, wanted a number", x.key, text)
			}
		}
	}
	return nil
}

// stepsPerEpoch is how many optimizer steps a pass over the training data takes; 0 where the data is too small for one.
func stepsPerEpoch(p *plan.Plan, src *data.Source, o *train.Options) int64 {
	micro := src.Batches()
	if src.Layout() == data.Samples {
		batch := batchOf(p, src)
		if batch == 0 {
			return 0
		}
		micro = data.NewOrder(src.Samples(), o.EvalSplit, o.Seed).Train() / batch
	}
	return micro / max(o.Accumulate, 1)
}

// batchOf is how many samples an input of the plan takes at a time.
func batchOf(p *plan.Plan, src *data.Source) int64 {
	step, _ := p.Program("step")
	if step == nil {
		return 0
	}
	for _, in := range step.Inputs {
		if t, ok := src.Tensor(in.Name); ok && len(t.Type.Shape) > 0 && t.Type.Shape[0] == src.Samples() && len(in.Ref.Type.Shape) > 0 {
			return in.Ref.Type.Shape[0]
		}
	}
	return 0
}

const (
	usualSteps = 600
	mostEpochs = 20
)

// chooseLength says how long to train, and how often to judge and to write checkpoints, where the user has not.
func (c *call) chooseLength(o *train.Options, perEpoch int64, choose func(name, value, why string)) {
	if !c.has("steps") && !c.has("epochs") {
		if o.Data.Layout() == data.Batches {
			o.Epochs = 1
			choose("epochs", "1", fmt.Sprintf("each of the %d given batches once", o.Data.Batches()))
		} else {
			o.Epochs = 1
			if perEpoch > 0 {
				o.Epochs = min((usualSteps+perEpoch-1)/perEpoch, mostEpochs)
			}
			choose("epochs", strconv.FormatInt(o.Epochs, 10), fmt.Sprintf("%d optimizer steps each: about %d in all, at most %d epochs", perEpoch, usualSteps, mostEpochs))
		}
	}
	if o.EvalEvery == 0 && perEpoch > 0 {
		o.EvalEvery = perEpoch
	}
	if o.Checkpoints != "" {
		if o.Every == 0 {
			o.Every = max(perEpoch, 1)
			choose("every", strconv.FormatInt(o.Every, 10), "a checkpoint once an epoch")
		}
		if o.Keep == 0 {
			o.Keep = 3
			choose("keep", "3", "checkpoints; older ones are removed")
		}
	}
}

// tellResult prints what a person wants to know at the end.
func (c *call) tellResult(p *plan.Plan, r *train.Result) error {
	rate := ""
	if r.Seconds > 0 {
		rate = fmt.Sprintf(", %.4g samples/s", float64(r.Samples)/r.Seconds)
	}
	if n := r.Steps - r.FirstStep; n == 0 {
		fmt.Fprintf(c.stdout, "trained 0 steps: the checkpoint is of step %d already\n", r.Steps)
	} else {
		fmt.Fprintf(c.stdout, "trained %d steps in %.1f s%s: loss %.5g\n", n, r.Seconds, rate, r.Loss)
	}
	if r.Eval != nil {
		fmt.Fprintf(c.stdout, "held out: %v\n", r.Eval)
	}
	line := fmt.Sprintf("measured peak: %s on the device", plan.FormatBytes(r.DevicePeakBytes))
	if a := p.Arena(ir.Device); a != nil {
		line += fmt.Sprintf(" (arena %s)", plan.FormatBytes(a.Bytes))
	}
	if a := p.Arena(ir.Pinned); a != nil {
		line += fmt.Sprintf(", %s on the host (arena %s)", plan.FormatBytes(r.HostPeakBytes), plan.FormatBytes(a.Bytes))
	}
	fmt.Fprintln(c.stdout, line)
	if r.Checkpoint != "" {
		fmt.Fprintf(c.stdout, "checkpoint: %s\n", r.Checkpoint)
	}
	if c.save != "" {
		fmt.Fprintf(c.stdout, "saved: %s\n", c.save)
	}
	return nil
}
