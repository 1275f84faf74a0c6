package main

import (
	"io"

	"aitk/ir/plan"
)

func diffCommand() command {
	return command{name: "diff", args: "PLAN PLAN", min: 2, max: 2, short: "what changed between two plans, in bytes and seconds", run: diffPlans,
		long: `Figures, settings and dimensions that differ, then tensors of the step that are kept in one plan and recomputed or swapped in the other, of
other sizes, or in one of them alone; then ops that run more often or take another time. Tensors and ops are matched by name. Exit 0 also where there are differences.`}
}

func diffPlans(c *call) error {
	var plans [2]*plan.Plan
	for i, path := range c.args {
		s, err := c.open(path)
		if err != nil {
			return err
		}
		if s.plan == nil {
			return usagef("%s is no plan: make one with `aitk compile %s -o FILE.plan`", path, path)
		}
		plans[i] = s.plan
	}
	d := plan.Compare(plans[0], plans[1])
	if c.wants("json") {
		return c.show(map[string]func(io.Writer) error{"json": func(w io.Writer) error { return writeJSON(w, d) }})
	}
	return c.writeFile("-", func(w io.Writer) error { return plan.WriteDiff(w, d, visible(c.args[0]), visible(c.args[1])) })
}
