package main

import (
	"io"
	"time"

	"aitk/ir/plan"
	"aitk/passes"
)

// sweepPlans plans a model for many budgets in one run and shows them as a table, JSON or CSV.
func (c *call) sweepPlans(path string) error {
	for _, v := range c.views {
		if v.name != "json" && v.name != "csv" {
			return usagef("--%s shows one plan, and --sweep makes many: want --json, --csv or a table", v.name)
		}
	}
	switch {
	case c.has("budget"):
		return usagef("--sweep chooses its budgets, from the smallest that works to that without recompute and swap: leave --budget out")
	case c.recompute == "all":
		return usagef("--recompute all is the plan of the smallest budget, which is the first of a sweep: leave it out")
	case c.passes.StopAfter != "":
		return usagef("--stop-after makes no plan, and --sweep makes many")
	}
	b, err := c.newBuilder(path)
	if err != nil {
		return err
	}
	if err := b.prepare(); err != nil {
		return err
	}
	m, err := c.memoryOptions(b.profile)
	if err != nil {
		return err
	}
	begin := time.Now()
	points, err := passes.Sweep(b.ctx, m, int(c.solve.sweep))
	if err != nil {
		return err
	}
	c.detail("%d plans in %.3f s for %s", len(points), time.Since(begin).Seconds(), b.profile.Name)
	c.tellChoices(c.stderr, b.choices)
	var plans []*plan.Plan
	for _, x := range points {
		b.describe(x.Plan)
		plans = append(plans, x.Plan)
	}
	with := func(f func(io.Writer, []*plan.Plan) error) func(io.Writer) error {
		return func(w io.Writer) error { return f(w, plans) }
	}
	if len(c.views) == 0 {
		return c.writeFile("-", with(plan.WriteSweep))
	}
	return c.show(map[string]func(io.Writer) error{"json": with(plan.WriteSweepJSON), "csv": with(plan.WriteSweepCSV)})
}
