package passes

import (
	"slices"

	"aitk/ir"
	"aitk/ir/plan"
	"aitk/ir/plan/check"
	"aitk/passes/memory"
)

// finish lowers the chosen candidate, proves the plan and fills the report.
func (c *compiler) finish() *plan.Plan {
	p := c.proved()
	c.bounds(&p.Report)
	c.recordDecisions(p)
	return p
}

// proved lowers the chosen candidate and proves the plan for the budget at hand; all of the report but bounds and decisions is filled. A plan that the checker
// refuses is a bug of ours. The plan is one of its own, also where one candidate is chosen for several budgets.
func (c *compiler) proved() *plan.Plan {
	shared := *c.lowered(c.chosen)
	p := &shared
	p.Arenas = slices.Clone(p.Arenas)
	if c.graphSum == "" {
		c.graphSum = ir.Hash(c.sources[0])
	}
	p.GraphSum = c.graphSum
	p.Profile = plan.Profile{Device: c.Profile.Device, Name: c.Profile.Name, SHA256: c.Profile.Sum()}
	if a := p.Arena(ir.Device); a != nil && c.budget >= 0 && a.Bytes <= c.budget {
		a.BudgetBytes = c.budget
	}
	if a := p.Arena(ir.Pinned); a != nil && c.HostBudgetBytes >= 0 && a.Bytes <= c.HostBudgetBytes {
		a.BudgetBytes = c.HostBudgetBytes
	}
	if err := check.Check(p); err != nil {
		panic(ir.Bugf("the plan is unsound: %v", err))
	}
	r := &p.Report
	r.Fits, r.BudgetBytes = true, c.budget
	r.UnlimitedArenaBytes, r.MinimumBudgetBytes = c.unlimited.device(), c.smallest.device()
	whole := &c.lowered(c.unlimited).Report
	r.UnlimitedStepPicos, r.NaiveBytes = whole.StepPicos, whole.NaiveBytes // recomputes and copies are not the model's tensors
	countWork(r, p)
	return p
}

// bounds adds what no plan can beat: on the device peak over all programs, and on the time of a step within the budget.
func (c *compiler) bounds(r *plan.Report) {
	r.BoundBytes = min(c.peakBound(), r.PeakBytes)
	if c.budget < c.smallest.device() || r.UnlimitedStepPicos == 0 {
		return
	}
	p := c.problem(c.copies()[0], nil, limits{device: c.budget, host: c.HostBudgetBytes, swap: c.Swap})
	r.OverheadBoundPPM = int64(float64(memory.Bounds(&p.Problem).OverheadPicos) / float64(r.UnlimitedStepPicos) * 1e6)
}

// peakBound is the bound on live bytes over all programs, for any budget. The solver's bytes are rounded up to the arena's unit; here they are the values' own, so that
// no plan has less.
func (c *compiler) peakBound() (bytes int64) {
	exact, own := *c, *c.Profile
	own.AlignBytes = 1
	exact.Profile = &own
	for _, g := range c.copies() {
		p := exact.problem(g, nil, limits{device: -1, host: c.HostBudgetBytes, swap: c.Swap})
		bytes = max(bytes, memory.Bounds(&p.Problem).PeakBytes)
	}
	return bytes
}

// countWork adds up the step's arithmetic.
func countWork(r *plan.Report, p *plan.Plan) {
	step, _ := p.Program("step")
	if step == nil {
		return
	}
	r.TotalFLOPs, r.RecomputedFLOPs = 0, 0
	for _, in := range step.Instrs {
		x, ok := in.(*plan.Exec)
		if !ok {
			continue
		}
		f := ir.WorkOf(x.Op, refTypes(x.In), refTypes(x.Out)).FLOPs
		r.TotalFLOPs += f
		if x.Recompute {
			r.RecomputedFLOPs += f
		}
	}
}

func refTypes(refs []plan.Ref) []ir.Type {
	out := make([]ir.Type, len(refs))
	for i, r := range refs {
		out[i] = r.Type
	}
	return out
}

// reportQuantized adds what pass quantize found.
func reportQuantized(r *plan.Report, ctx *Context) {
	r.Quantized, r.QuantizedRelL2 = ctx.Quantized, ctx.QuantizedRelL2
	for _, q := range r.Quantized {
		if q.Skipped == "" {
			r.QuantizedWeights++
			r.QuantizedSavedBytes += q.WasBytes - q.Bytes
		}
	}
}
