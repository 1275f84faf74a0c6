package main

import (
	"encoding/json"
	"errors"
	"io"

	"aitk/importer"
	"aitk/passes"
	"aitk/passes/estimate"
	"aitk/runtime/train/data"
)

func estimateCommand() command {
	return command{name: "estimate", args: "MODEL", min: 1, max: 1, short: "what a training takes: weights by format, adapters, gradients, optimizer state, activations by batch, and the cards that it fits", run: estimateModel,
		long: `Shapes are enough: a graph without its weights will do. The smallest plan is the planner's own, for recomputing, and with --host-budget for
swapping too; large models take it a minute. Cards are those of the catalogue; --gpu or --profile say by whose rates the plan is made.`}
}

// batchSteps is how often the batch is doubled.
const batchSteps = 3

func estimateModel(c *call) error {
	s, err := c.open(c.args[0])
	if err != nil {
		return err
	}
	if s.plan != nil {
		return usagef("%s is a plan: `aitk plan` shows what it takes", s.path)
	}
	if c.gpu == "" && c.profile == "" && c.device == "" {
		c.gpu = defaultCard
	}
	if c.hostBudget.kind == sizeNotGiven {
		c.swap = "none"
	}
	c.budget = size{}
	r := &estimate.Report{}
	b, dim, err := c.estimateBatch(s.path, r, 0)
	if err != nil {
		return err
	}
	fixed := b.source != nil && b.source.Layout() == data.Batches // given batches are of one size
	for n := int64(2); dim.name != "" && !fixed && n <= 1<<batchSteps; n *= 2 {
		quiet := *c
		quiet.batch = 0 // the dimension says it
		quiet.stderr, quiet.quiet = io.Discard, true
		quiet.dims = append(quiet.dims[:len(quiet.dims):len(quiet.dims)], dimension{dim.name, n * dim.size})
		if _, _, err := quiet.estimateBatch(s.path, r, n*dim.size); err != nil {
			return err
		}
	}
	p, err := c.compileMemory(b.ctx, b.profile)
	if _, misfit := errors.AsType[*passes.FitError](err); err != nil && !misfit {
		return err
	}
	if err := r.Judge(&p.Report, c.swap != "none"); err != nil {
		return err
	}
	c.tellChoices(c.stderr, b.choices)
	if c.wants("json") {
		return c.show(map[string]func(io.Writer) error{"json": func(w io.Writer) error {
			e := json.NewEncoder(w)
			e.SetIndent("", "  ")
			return e.Encode(r)
		}})
	}
	return c.writeFile("-", r.Write)
}

// defaultCard is by whose rates an estimate plans; sizes hardly depend on it.
const defaultCard = "rtx-4090"

// estimateBatch counts one size of the batch. The first time, with size 0, it also counts weights and tells which dimension the batch is.
func (c *call) estimateBatch(path string, r *estimate.Report, size int64) (*builder, dimension, error) {
	b := &builder{c: c, path: path}
	if c.data != "" {
		src, err := c.openSource("--data", c.data)
		if err != nil {
			return nil, dimension{}, err
		}
		b.source = src
	}
	g, err := b.importModel()
	if err != nil {
		return nil, dimension{}, err
	}
	if b.profile, err = c.deviceProfile(); err != nil {
		return nil, dimension{}, err
	}
	dim := dimension{}
	if size == 0 {
		if dim, err = batchDimension(path, b.dims); err != nil {
			return nil, dim, err
		}
		size = max(dim.size, 1)
		if r.Alternatives, err = estimate.Alternatives(g); err != nil {
			return nil, dim, err
		}
	}
	c.passes.NoEval = true
	if err := b.runPasses(g); err != nil {
		return nil, dim, err
	}
	if r.Weights == nil {
		r.Count(b.ctx.Program("step"))
	}
	r.AtBatch(size, b.ctx)
	return b, dim, nil
}

// batchDimension is the symbolic dimension that the first axis of the first input is bound to; without one the batch cannot change.
func batchDimension(path string, dims []importer.Dim) (dimension, error) {
	m, err := importer.Inspect(path)
	if err != nil || len(m.Inputs) == 0 || len(m.Inputs[0].Shape) == 0 {
		return dimension{}, err
	}
	for _, d := range dims {
		if d.Name == m.Inputs[0].Shape[0] && d.Bound {
			return dimension{d.Name, d.Size}, nil
		}
	}
	return dimension{}, nil
}
