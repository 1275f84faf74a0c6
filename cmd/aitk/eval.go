package main

import (
	"errors"
	"fmt"

	"aitk/ir/plan"
	"aitk/runtime/train"
	"aitk/runtime/train/checkpoint"
)

func evalCommand() command {
	return command{name: "eval", args: "PLAN|MODEL --data FILE", min: 1, max: 1, short: "forward only: loss and metrics over a data set", run: evaluate,
		long: `A model is planned without gradients. With --resume the trained parameters of a checkpoint are judged (of a plan's run); saved weights
are given to a model with --weights. With --eval-split only what training holds out of the data is judged.`}
}

func evaluate(c *call) error {
	if c.data == "" {
		return usagef("eval needs --data")
	}
	if c.device == "null" {
		return usagef("eval on --device null would judge what nobody computed")
	}
	s, err := c.open(c.args[0])
	if err != nil {
		return err
	}
	p := s.plan
	if p == nil && c.resume != "" {
		return usagef("eval of a model has no checkpoint: give the plan of that run, or what `aitk export` makes of the checkpoint: weights with --weights, adapters with --lora 'GLOB:init=FILE'")
	}
	b := &builder{c: c, path: s.path, forward: true}
	if p != nil {
		b.source, err = c.openData(p)
	} else if b.source, err = c.openData(&plan.Plan{}); err == nil {
		p, err = b.build()
	}
	if err != nil {
		return err
	}
	j, err := judge(p, c.metric)
	if err != nil {
		return err
	}
	exe, store, err := c.load(p)
	if err != nil {
		return err
	}
	defer exe.Close()
	if c.resume != "" {
		if err := c.restore(store); err != nil {
			return err
		}
	}
	if err := exe.Run(c.ctx, "init"); err != nil {
		return err
	}
	store.Release()
	c.tellChoices(c.stderr, b.choices)
	r, notes, err := train.Eval(c.ctx, exe.Executable, train.EvalOptions{Data: b.source, Split: c.evalSplit, Labels: j.labels, Metric: j.metric})
	for _, n := range notes {
		c.note("%s", n)
	}
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(c.stdout, r)
	return err
}

// restore makes the parameters come from the checkpoint of --resume.
func (c *call) restore(store *train.Store) error {
	ck, err := c.openCheckpoint()
	if err != nil {
		return err
	}
	if err := store.Restore(ck.Params); err != nil {
		return errors.Join(err, ck.Close())
	}
	return nil
}

// openCheckpoint opens the checkpoint of --resume: one folder, the newest of a folder of them, or the newest of --checkpoint.
func (c *call) openCheckpoint() (*checkpoint.Checkpoint, error) {
	dir := c.resume
	if dir == "latest" {
		if dir = c.checkpoint; dir == "" {
			return nil, usagef("--resume latest is the newest of --checkpoint DIR, which is not given")
		}
	}
	return findCheckpoint(c, dir)
}

func findCheckpoint(c *call, dir string) (*checkpoint.Checkpoint, error) {
	if checkpoint.IsCheckpoint(dir) {
		return checkpoint.Open(dir)
	}
	steps, err := checkpoint.List(dir)
	if err != nil {
		return nil, err
	}
	if len(steps) == 0 {
		return nil, usagef("there is no checkpoint in %s", dir)
	}
	ck, skipped, err := checkpoint.Latest(dir)
	for _, s := range skipped {
		c.note("%v", s)
	}
	if err == nil && ck == nil {
		err = errors.Join(skipped...)
	}
	return ck, err
}
