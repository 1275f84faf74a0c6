package train

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"aitk/internal/safetensors"
	"aitk/ir"
	"aitk/ir/plan"
	"aitk/runtime/train/checkpoint"
	"aitk/runtime/train/data"
)

// keyed are the plan's settings that change what is computed. Budget, device, recompute, swap and the like do not: a run resumes under another plan.
func keyed(key string) bool {
	return strings.HasPrefix(key, "adapter/") || slices.Contains([]string{
		"loss", "output", "optimizer", "clip-norm", "no-decay", "ema", "dtype", "batch-norm", "train", "freeze", "lora", "quantize",
	}, key)
}

// manifest describes the run as it stands.
func (t *trainer) manifest() checkpoint.Manifest {
	m := checkpoint.Manifest{
		Tool: t.plan.Tool, Model: t.plan.Model, GraphSum: t.plan.GraphSum, Step: t.done, Seed: t.o.Seed,
		Epoch: t.done * t.o.Accumulate / t.perEpoch, Position: t.done * t.o.Accumulate % t.perEpoch,
	}
	m.DataSum, m.Frozen = t.identity.data, t.identity.frozen
	for _, o := range t.plan.Options {
		if keyed(o.Key) {
			m.Settings = append(m.Settings, checkpoint.Setting{Key: o.Key, Value: o.Value})
		}
	}
	add := func(key, value string) { m.Settings = append(m.Settings, checkpoint.Setting{Key: key, Value: value}) }
	add("accumulate", strconv.FormatInt(t.o.Accumulate, 10))
	add("batch", strconv.FormatInt(t.batch, 10))
	add("data", t.dataShape())
	add("lr", strconv.FormatFloat(t.o.LR, 'g', -1, 64))
	add("schedule", t.o.Schedule.String())
	slices.SortStableFunc(m.Settings, func(a, b checkpoint.Setting) int { return strings.Compare(a.Key, b.Key) })
	return m
}

// dataShape is what the order of samples depends on; where the data lies may change.
func (t *trainer) dataShape() string {
	if t.o.Data.Layout() == data.Batches {
		return fmt.Sprintf("%d batches in order", t.o.Data.Batches())
	}
	return fmt.Sprintf("%d samples, %d held out", t.o.Data.Samples(), t.order.Held())
}

// restore prepares the folder of checkpoints and, where asked for, takes up a run: parameters from the checkpoint, steps already done.
func (t *trainer) restore() error {
	if t.o.Resume == "" {
		return t.freshFolder()
	}
	c, err := t.findCheckpoint()
	if err != nil {
		return err
	}
	if err := t.take(c); err != nil {
		_ = c.Close() // only read from
		return err
	}
	return nil
}

// freshFolder refuses to mix the checkpoints of two runs: "latest" would mean either.
func (t *trainer) freshFolder() error {
	dir := t.o.Checkpoints
	if dir == "" {
		return nil
	}
	if err := checkpoint.Clean(dir); err != nil {
		return &ir.Error{Cause: fmt.Errorf("checkpoints: %w", err)}
	}
	steps, err := checkpoint.List(dir)
	if err != nil {
		return &ir.Error{Kind: ir.Usage, Cause: fmt.Errorf("checkpoints: %w", err)}
	}
	if len(steps) > 0 {
		return &ir.Error{Kind: ir.Usage, Cause: fmt.Errorf("%s holds checkpoints of another run, up to step %d", dir, steps[len(steps)-1]),
			Remedy: "go on from it with --resume latest, or choose another folder"}
	}
	return nil
}

// findCheckpoint opens what --resume names.
func (t *trainer) findCheckpoint() (*checkpoint.Checkpoint, error) {
	dir := t.o.Resume
	if dir == "latest" {
		dir = t.o.Checkpoints
	}
	if checkpoint.IsCheckpoint(dir) {
		c, err := checkpoint.Open(dir)
		if err != nil {
			return nil, &ir.Error{Cause: err}
		}
		return c, nil
	}
	c, skipped, err := checkpoint.Latest(dir)
	for _, s := range skipped {
		t.res.Notes = append(t.res.Notes, s.Error())
	}
	switch {
	case err != nil:
		return nil, &ir.Error{Kind: ir.Usage, Cause: err}
	case c == nil && len(skipped) > 0:
		return nil, &ir.Error{Cause: fmt.Errorf("no checkpoint in %s is whole: %w", dir, skipped[0])}
	case c == nil:
		return nil, &ir.Error{Kind: ir.Usage, Cause: fmt.Errorf("there is no checkpoint in %s", dir), Remedy: "start without --resume"}
	}
	return c, nil
}

// take makes the run go on from c, which the store closes once the parameters are loaded.
func (t *trainer) take(c *checkpoint.Checkpoint) error {
	now := t.manifest()
	if err := c.Manifest.Compare(&now); err != nil {
		return err
	}
	m := &c.Manifest
	if m.Step > t.total {
		return &ir.Error{Kind: ir.Usage, Cause: fmt.Errorf("checkpoint %s is of step %d, the run ends at step %d", c.Path, m.Step, t.total), Remedy: "give more steps"}
	}
	if k := m.Step * t.o.Accumulate; m.Epoch != k/t.perEpoch || m.Position != k%t.perEpoch {
		return ir.Errorf(ir.Failed, ir.Origin{}, "checkpoint %s says epoch %d, position %d after step %d, which this data cannot give", c.Path, m.Epoch, m.Position, m.Step)
	}
	if err := t.store.Restore(c.Params); err != nil {
		return err
	}
	t.done = m.Step
	if t.o.Checkpoints != "" && filepath.Clean(filepath.Dir(c.Path)) == filepath.Clean(t.o.Checkpoints) {
		t.written, t.res.Checkpoint = t.done, c.Path
	}
	t.res.Notes = append(t.res.Notes, fmt.Sprintf("resumed from %s, %d steps done", c.Path, t.done))
	return nil
}

// checkpoint writes the state of the run and removes what is too old.
func (t *trainer) checkpoint() error {
	var specs []safetensors.Spec
	for i := range t.plan.Params {
		if p := &t.plan.Params[i]; p.Mutable {
			specs = append(specs, safetensors.Spec{Name: p.Name, Type: p.Type})
		}
	}
	path, err := checkpoint.Write(t.o.Checkpoints, t.manifest(), specs, func(w *safetensors.Writer) error {
		return t.store.collect(t.save, func(p *plan.Param, src []byte, offset int64) error {
			if !finite(p.Type.DType, src) {
				return refuseNotFinite(p, t.done)
			}
			return w.WriteAt(p.Name, src, offset)
		})
	})
	if err != nil {
		return err
	}
	t.written, t.res.Checkpoint = t.done, path
	if err := checkpoint.Keep(t.o.Checkpoints, t.o.Keep); err != nil {
		return fmt.Errorf("removing old checkpoints: %w", err)
	}
	return nil
}

// save runs program save, whatever the caller's context says: a checkpoint is what an interrupted run is owed.
func (t *trainer) save() error { return t.exe.Run(context.WithoutCancel(t.ctx), "save") }
