package main

import (
	"errors"
	"fmt"
	"io"
	"os"

	"aitk/ir/plan"
	"aitk/passes"
	"aitk/runtime/train/data"
)

func planCommand() command {
	return command{name: "plan", args: "MODEL|PLAN", min: 1, max: 1, short: "plan, or read a plan, and show it: a summary, or --explain --json --csv --dot --svg --html --trace --pprof", run: showPlan,
		long: `Each view stands alone on standard output, or is written to the file behind =. Without --data and --loss the loss follows from the first
output's type, which is printed. Exit 4 where nothing fits the budget: what is shown is then the smallest plan.`}
}

func showPlan(c *call) error {
	s, err := c.open(c.args[0])
	if err != nil {
		return err
	}
	if c.solve.sweep > 0 {
		return c.sweepPlans(s.path)
	}
	p := s.plan
	var misfit error
	if p == nil {
		var b *builder
		if b, p, err = c.planModel(s.path); p == nil {
			if err != nil || !b.lastPass {
				return err
			}
			return c.writeFile("-", func(w io.Writer) error { return writePrograms(w, b.ctx.Programs) })
		}
		c.tellChoices(c.stderr, b.choices)
		misfit = err
	}
	if err := c.showViews(p); err != nil {
		return err
	}
	return misfit
}

// showViews writes the views asked for, or the summary.
func (c *call) showViews(p *plan.Plan) error {
	if len(c.views) == 0 {
		return c.writeFile("-", func(w io.Writer) error { return plan.WriteSummary(w, p) })
	}
	with := func(f func(io.Writer, *plan.Plan) error) func(io.Writer) error {
		return func(w io.Writer) error { return f(w, p) }
	}
	return c.show(map[string]func(io.Writer) error{
		"json": with(plan.WriteJSON), "dot": with(plan.WriteDOT), "csv": with(plan.WriteCSV), "explain": with(plan.WriteExplain),
		"svg": with(plan.WriteSVG), "html": with(plan.WriteHTML), "trace": with(plan.WriteTrace), "pprof": with(plan.WritePprof),
	})
}

// planModel opens the data, where there is any, and plans a model. Without a plan and an error the builder holds the programs of --stop-after. A
// plan that comes with an error is the smallest one and does not fit.
func (c *call) planModel(path string) (*builder, *plan.Plan, error) {
	b, err := c.newBuilder(path)
	if err != nil {
		return nil, nil, err
	}
	p, err := b.build()
	if fit, ok := errors.AsType[*passes.FitError](err); ok {
		return b, p, fmt.Errorf("%s: %w", path, fit)
	}
	return b, p, err
}

// newBuilder opens the data, where there is any.
func (c *call) newBuilder(path string) (*builder, error) {
	b := &builder{c: c, path: path}
	if c.data == "" {
		return b, nil
	}
	src, err := c.openSource("--data", c.data)
	b.source = src
	return b, err
}

// openSource opens a data set until the program ends.
func (c *call) openSource(flag, path string) (*data.Source, error) {
	if _, err := os.Stat(path); err != nil {
		return nil, cannotOpen(flag, path, err)
	}
	src, err := data.Open(path)
	if err == nil {
		c.closing(src)
	}
	return src, err
}

// closing closes something when the program ends; what was only read loses nothing by an error.
func (c *call) closing(x io.Closer) {
	c.cleanup = append(c.cleanup, func() { _ = x.Close() })
}

// tellChoices says what was chosen on the user's behalf.
func (c *call) tellChoices(w io.Writer, choices []choice) {
	if c.quiet {
		return
	}
	for _, x := range choices {
		fmt.Fprintf(w, "%s: %s (%s)\n", x.name, x.value, x.why)
	}
}
