package main

import (
	"cmp"
	"fmt"
	"slices"

	"aitk/importer"
	"aitk/ir"
	"aitk/ir/plan"
	"aitk/passes"
	"aitk/runtime/train/data"
)

// Where nothing fits, the planner itself tries what could help and says what came of it. Each trial is a plan of the smallest arena, from the model file on,
// with one flag more or two. Trials are bounded by the work that their nodes make, not by a clock, so that the same command gives the same advice everywhere.

// All trials together may take triedWork, and one takes its nodes, times what large models take longer for each of them: below half a
// minute of one core in all, the models of ten to twenty billion parameters included.
const (
	triedWork    = 400000
	linearlyUpTo = 2000 // nodes
)

// trials carries the search for what would help.
type trials struct {
	*builder
	fit    *passes.FitError
	work   int // of one trial
	left   int // of triedWork
	advice []plan.Advice
}

// advise tries what could help and returns what does, what fits first.
func (b *builder) advise(fit *passes.FitError) []plan.Advice {
	nodes := len(b.ctx.Programs[0].Nodes)
	t := &trials{builder: b, fit: fit, work: nodes * max(nodes, linearlyUpTo) / linearlyUpTo, left: triedWork}
	t.smallerBatch()
	t.means()
	if !b.forward {
		t.adapters()
	}
	slices.SortStableFunc(t.advice, func(x, y plan.Advice) int {
		if x.Fits != y.Fits {
			return cmp.Compare(number(y.Fits), number(x.Fits))
		}
		return cmp.Compare(x.MinimumBytes, y.MinimumBytes)
	})
	if t.left < t.work {
		b.c.note("not everything that could help was tried, since the model is large")
	}
	return t.advice
}

func number(b bool) int {
	if b {
		return 1
	}
	return 0
}

// try plans the smallest arena with other settings; ok is false where that is not possible, or no trial is left.
func (t *trials) try(change func(*call) error) (device, host int64, ok bool) {
	if t.left < t.work {
		return 0, 0, false
	}
	t.left -= t.work
	b, done, err := t.trial(true, change)
	if err != nil {
		return 0, 0, false
	}
	defer done()
	m, err := b.c.memoryOptions(b.profile)
	if err != nil {
		return 0, 0, false
	}
	if device, host, err = passes.Smallest(b.ctx, m); err != nil {
		return 0, 0, false
	}
	if !m.Swap {
		host = 0 // what init and save pass through is no price to pay
	}
	return device, host, true
}

// offer keeps what helps: by a hundredth at least.
func (t *trials) offer(flags, note string, device, host int64) {
	if device <= t.fit.BudgetBytes || device < t.fit.MinimumBytes-t.fit.MinimumBytes/100 {
		t.advice = append(t.advice, plan.Advice{Flags: flags, Fits: device <= t.fit.BudgetBytes, MinimumBytes: device, HostBytes: host, Note: note})
	}
}

// means tries recomputing and swapping where they were not allowed, and more host memory where it was limited.
func (t *trials) means() {
	c := t.c
	if c.recompute == "none" {
		if device, host, ok := t.try(func(c *call) error { c.recompute = "auto"; return nil }); ok {
			t.offer("--recompute auto", "", device, host)
		}
	}
	limited := c.hostBudget.kind == sizeBytes || t.profile.HostAddressable && c.hostBudget.kind == sizeNotGiven
	if c.swap != "none" && !limited {
		return
	}
	device, host, ok := t.try(func(c *call) error { c.swap, c.hostBudget = "auto", size{kind: sizeNone}; return nil })
	if !ok || host == 0 {
		return
	}
	flags, note := fmt.Sprintf("--host-budget %d", host), "allow swapping to host memory"
	if c.swap == "none" {
		flags = "--swap auto " + flags
	}
	if t.profile.HostAddressable {
		note += ", which is the same memory here"
	}
	t.offer(flags, note, device, host)
}

// smallerBatch looks for the largest batch that fits: the smallest first, then where a line between it and the batch at hand meets the budget.
func (t *trials) smallerBatch() {
	dim, err := batchDimension(t.path, t.dims)
	if err != nil || dim.size <= 1 || t.source != nil && t.source.Layout() == data.Batches {
		return
	}
	at := func(n int64) (int64, int64, bool) {
		return t.try(func(c *call) error {
			c.batch, c.dims = 0, append(c.dims, dimension{dim.name, n})
			return nil
		})
	}
	name := func(n int64) string {
		if t.c.batch > 0 || t.c.data != "" {
			return fmt.Sprintf("--batch %d", n)
		}
		return fmt.Sprintf("--dim %s=%d", dim.name, n)
	}
	device, host, ok := at(1)
	if !ok {
		return
	}
	best, size, beside := int64(1), device, host
	if device <= t.fit.BudgetBytes && t.fit.MinimumBytes > device {
		n := int64(float64(t.fit.BudgetBytes-device)/float64(t.fit.MinimumBytes-device)*float64(dim.size-1)) + 1
		for try := 0; try < 3 && n > 1; try++ {
			n = min(n, dim.size-1)
			device, host, ok := at(n)
			if ok && device <= t.fit.BudgetBytes {
				best, size, beside = n, device, host
				break
			}
			n -= max(1, n/8)
		}
	}
	t.offer(name(best), "", size, beside)
	if size <= t.fit.BudgetBytes && !t.forward {
		t.microbatches(dim, best, name)
	}
}

// microbatches tries the largest part of the batch that is not above most as a microbatch, so that a step sees as many samples as asked for.
func (t *trials) microbatches(dim dimension, most int64, name func(int64) string) {
	part := most
	for dim.size%part != 0 {
		part--
	}
	count := fmt.Sprint(max(t.c.passes.Accumulate, 1) * (dim.size / part))
	device, host, ok := t.try(func(c *call) error {
		c.batch, c.dims = 0, append(c.dims, dimension{dim.name, part})
		return c.passes.Set("accumulate", count)
	})
	if ok {
		t.offer(name(part)+" --accumulate "+count, "as many samples a step as asked for", device, host)
	}
}

// adapters tries adapters instead of training all weights, and frozen weights in fewer bits.
func (t *trials) adapters() {
	const lora = "*:rank=16,alpha=16"
	full := len(t.c.passes.LoRA) == 0
	if full && slices.ContainsFunc(t.c.selection, func(s importer.Selection) bool { return s.Train }) {
		full = false // the user says what trains
	}
	frozen := slices.ContainsFunc(t.ctx.Programs[0].Params, func(p *ir.Param) bool { return p.Role == ir.Weight && !p.Trainable && !p.Init.Packed() })
	adapt := func(c *call) error {
		if !full {
			return nil
		}
		return c.passes.Set("lora", lora)
	}
	flags, note := "", ""
	if full {
		flags, note = "--lora '"+lora+"'", "adapters train, the weights do not"
		if device, host, ok := t.try(adapt); ok {
			t.offer(flags, note, device, host)
		} else {
			return // nothing that adapters could stand beside
		}
		flags += " "
	} else if !frozen {
		return
	}
	for _, format := range []string{"int8", "nf4"} {
		device, host, ok := t.try(func(c *call) error {
			if err := adapt(c); err != nil {
				return err
			}
			return c.passes.Set("quantize", "*:"+format)
		})
		if ok {
			t.offer(flags+"--quantize '*:"+format+"'", note, device, host)
		}
		if ok && device <= t.fit.BudgetBytes {
			return // fewer bits would only lose more
		}
	}
}
