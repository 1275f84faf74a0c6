package main

import (
	"errors"
	"fmt"
	"io"
	"slices"

	"aitk/ir/plan"
	"aitk/passes"
	"aitk/runtime/train/checkpoint"
)

// Formats that --quantize leaves to the planner (auto) are chosen together with the plan where there is a budget: the planner tries rungs of the ladder that
// passes.Ladder makes and takes the fastest step that fits. Without a budget there is nothing to weigh, and the smallest format within the error is taken.

// largeGraph is from how many nodes of the step on only a few rungs are tried.
const largeGraph = 3000

// choosesFormats tells whether there is such a choice.
func (b *builder) choosesFormats() bool {
	limited := b.c.budget.kind != sizeNotGiven && b.c.budget.kind != sizeNone
	return limited && !b.forward && !b.unread && b.c.passes.HasAuto()
}

// trial is a builder of the same model with other settings, up to its scheduled programs; unread: weights are not looked at. Whoever gets one calls done.
func (b *builder) trial(unread bool, change func(*call) error) (t *builder, done func(), err error) {
	c := *b.c
	c.stderr, c.stdout, c.quiet, c.stats, c.verbosity, c.cleanup = io.Discard, io.Discard, true, false, 0, nil
	c.passes.LoRA, c.passes.Quantize, c.dims = slices.Clone(c.passes.LoRA), slices.Clone(c.passes.Quantize), slices.Clone(c.dims)
	c.passes.TimePasses, c.passes.PrintAfter, c.passes.StopAfter = false, nil, ""
	if err := change(&c); err != nil {
		return nil, nil, err
	}
	t = &builder{c: &c, path: b.path, source: b.source, forward: b.forward, unread: unread}
	if err := t.prepare(); err != nil {
		c.close()
		return nil, nil, err
	}
	return t, c.close, nil
}

// resumeFormats appends the formats that the run of --resume chose, so that auto means the same bits under every budget. Where that run was given other settings
// than this one nothing is appended; resuming then says what differs.
func (b *builder) resumeFormats() error {
	if b.c.resume == "" || b.unread || !b.c.passes.HasAuto() {
		return nil
	}
	ck, err := b.c.openCheckpoint()
	if err != nil {
		return err
	}
	chosen, err := formatsOf(&ck.Manifest, b.c.passes.Quantize)
	if err := errors.Join(err, ck.Close()); err != nil {
		return err
	}
	if len(chosen) > 0 {
		b.c.passes.Quantize = append(slices.Clone(b.c.passes.Quantize), chosen...)
		b.choose("formats", fmt.Sprintf("those of the run that is resumed, for %d weights", len(chosen)), "chosen when it began: results must not depend on the budget of today")
	}
	return nil
}

// formatsOf are the specs that a run added to those that it was asked for, nil where it was asked for others.
func formatsOf(m *checkpoint.Manifest, asked []passes.QuantizeSpec) ([]passes.QuantizeSpec, error) {
	var all []passes.QuantizeSpec
	for _, s := range m.Settings {
		if s.Key != "quantize" {
			continue
		}
		q, err := passes.ParseQuantize(s.Value)
		if err != nil {
			return nil, fmt.Errorf("checkpoint of step %d: %w", m.Step, err)
		}
		all = append(all, q)
	}
	if len(all) < len(asked) {
		return nil, nil
	}
	for i, q := range asked {
		if q.String() != all[i].String() {
			return nil, nil
		}
	}
	return all[len(asked):], nil
}

// rungTried is what a plan with part of the ladder came to.
type rungTried struct {
	specs []passes.QuantizeSpec
	saved int64
	fits  bool
	picos int64
}

func (x *rungTried) better(y *rungTried) bool {
	switch {
	case y == nil:
		return true
	case x.fits != y.fits:
		return x.fits
	case !x.fits:
		return x.saved > y.saved
	case x.picos != y.picos:
		return x.picos < y.picos
	}
	return x.saved < y.saved
}

// chooseFormats settles the formats that are left to the planner and appends them to the settings, weight by weight.
func (b *builder) chooseFormats() error {
	probe, done, err := b.trial(false, func(c *call) error { c.passes.MeasureAuto = true; return nil })
	if err != nil {
		return err
	}
	weights, nodes := probe.ctx.Auto, len(probe.ctx.Programs[0].Nodes)
	if b.c.budget.kind == sizePercent { // of the memory that the model as it is takes
		m, err := b.c.memoryOptions(probe.profile)
		if err == nil {
			m.BudgetPercent = 0
			var whole int64
			whole, err = passes.UnlimitedArena(probe.ctx, m)
			b.c.budget = size{kind: sizeBytes, bytes: share(b.c.budget.percent, whole)}
		}
		if err != nil {
			done()
			return err
		}
	}
	done()
	if len(weights) == 0 || b.c.resume != "" { // a run that goes on has its formats
		return nil
	}
	ladder := passes.NewLadder(weights)
	var best *rungTried
	tried := map[int64]bool{}
	at := func(saved int64) error {
		x := &rungTried{}
		if x.specs, x.saved = ladder.Specs(saved); tried[x.saved] {
			return nil
		}
		tried[x.saved] = true
		if err := b.tryFormats(x); err != nil {
			return err
		}
		if x.better(best) {
			best = x
		}
		return nil
	}
	parts, halvings := int64(4), 2
	if nodes > largeGraph {
		parts, halvings = 2, 0
	}
	for k := range parts + 1 {
		if err := at(ladder.SavedBytes * k / parts); err != nil {
			return err
		}
	}
	for step := ladder.SavedBytes / parts / 2; halvings > 0 && best.fits; halvings, step = halvings-1, step/2 {
		middle := best.saved
		if err := errors.Join(at(max(middle-step, 0)), at(min(middle+step, ladder.SavedBytes))); err != nil {
			return err
		}
	}
	b.c.passes.Quantize = append(slices.Clone(b.c.passes.Quantize), best.specs...)
	formats := 0
	for _, s := range best.specs {
		if s.Format != "none" {
			formats++
		}
	}
	why := fmt.Sprintf("of %d choices the fastest step within the budget", len(tried))
	if !best.fits {
		why = "all that the error allows, and it does not fit"
	}
	b.choose("formats", fmt.Sprintf("%d of %d weights in fewer bits, %s saved", formats, len(weights), plan.FormatBytes(best.saved)), why)
	return nil
}

// tryFormats plans with a part of the ladder.
func (b *builder) tryFormats(x *rungTried) error {
	t, done, err := b.trial(true, func(c *call) error {
		c.passes.Quantize = append(c.passes.Quantize, x.specs...)
		return nil
	})
	if err != nil {
		return err
	}
	defer done()
	p, err := t.c.compileMemory(t.ctx, t.profile)
	if _, misfit := errors.AsType[*passes.FitError](err); misfit {
		return nil
	}
	if err != nil {
		return err
	}
	x.fits, x.picos = true, p.Report.StepPicos
	return nil
}
