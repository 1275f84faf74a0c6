package passes

import (
	"errors"
	"fmt"

	"aitk/ir"
	"aitk/ir/plan"
	"aitk/passes/cost"
	"aitk/passes/memory"
)

// MemoryOptions are the settings of the back half: device, budgets and what may be done to keep them.
type MemoryOptions struct {
	Profile         *cost.Profile
	BudgetBytes     int64   // of the device arena; < 0: none
	BudgetPercent   float64 // of the unlimited arena; used where positive
	HostBudgetBytes int64   // of the host arena; < 0: no limit
	Recompute       bool    // recomputes allowed
	Swap            bool    // swapping allowed
	Effort          int64   // search moves; 0: the solver's default
}

// candidate is one way to run the programs: decisions written in, everything placed.
type candidate struct {
	programs []*ir.Graph
	place    *placement
	plan     *plan.Plan // nil until it is lowered
	step     *problem   // of the training step, and what was decided; nil where nothing was
	decision *memory.Solution
}

func (c *candidate) device() int64 { return c.place.arenas[ir.Device].ArenaBytes }
func (c *candidate) host() int64   { return c.place.arenas[ir.Pinned].ArenaBytes }

// Compile plans the programs of ctx, which the front passes have made and scheduled, for a device and a budget, by the passes of Back. It
// returns the plan that fits, or the smallest one (Report.Fits false) with a *FitError. ctx keeps its programs and gains the statistics.
func Compile(ctx *Context, o MemoryOptions) (*plan.Plan, error) {
	c := *ctx
	c.Profile = o.Profile
	c.back = &compiler{MemoryOptions: o, sources: ctx.Programs}
	c.Programs = nil
	for _, g := range ctx.Programs {
		c.Programs = append(c.Programs, g.Clone())
	}
	c.have |= Scheduled
	err := Run(&c, c.Programs[0], Back(), Order())
	ctx.Stats = c.Stats
	if err != nil {
		return nil, err
	}
	if c.back.plan == nil { // stopped before
		return nil, nil
	}
	reportQuantized(&c.back.plan.Report, ctx)
	c.back.plan.SetAdapters(ctx.Adapters)
	if c.back.fit != nil {
		return c.back.plan, c.back.fit
	}
	return c.back.plan, nil
}

// Back is the passes from the scheduled programs to the plan. They share the compiler in Context.back.
//
// Why pass place finds everything placed: only the placed arena tells whether a decision fits the budget, so pass memory places each candidate
// that it tries. place takes over the chosen one and says what it came to.
func Back() []Pass {
	return []Pass{
		{
			Name: "memory",
			Doc: `decide for every idle value whether it is kept, recomputed or swapped, and write that into the programs

The budget is for the arena, the solver knows live bytes; they differ by fragmentation. So the solver is asked for less until the placed
arena fits. Below the arena of the peak-minimiser's plan, which does not depend on the budget, nothing is tried.`,
			Needs: Scheduled, Gives: WithinBudget, Preserves: Bits, Required: true,
			Run: func(ctx *Context, _ *ir.Graph) error { return ctx.back.memory(ctx) },
		},
		{
			Name:  "place",
			Doc:   "give every storage a byte offset in its arena, sharing bytes by lifetime and in place",
			Needs: Scheduled | WithinBudget, Gives: Placed, Preserves: Bits, Required: true,
			Run: func(ctx *Context, _ *ir.Graph) error {
				for _, a := range ctx.back.chosen.place.arenas {
					ctx.Count("arena bytes", a.ArenaBytes)
				}
				return nil
			},
		},
		{
			Name:  "lower",
			Doc:   "turn nodes into instructions with explicit waits, add programs init and save, and prove the plan",
			Needs: Placed, Gives: Lowered, Preserves: Bits, Required: true,
			Run: func(ctx *Context, _ *ir.Graph) error {
				ctx.back.lower()
				return nil
			},
		},
	}
}

// compiler carries one compilation through the passes of Back.
type compiler struct {
	MemoryOptions
	sources   []*ir.Graph // scheduled, without memory decisions
	budget    int64       // of the device arena in bytes, percent worked out; < 0: none
	unlimited *candidate  // nothing recomputed or swapped
	smallest  *candidate  // of the peak-minimiser
	chosen    *candidate
	fit       *FitError // set where even the smallest is too large
	plan      *plan.Plan
	graphSum  string // of the step as it came; "" until it is known
}

// memory chooses a candidate and makes its programs the context's.
func (c *compiler) memory(ctx *Context) error {
	err := c.extremes()
	if err != nil {
		return err
	}
	c.budget = c.BudgetBytes
	if c.BudgetPercent > 0 {
		c.budget = int64(float64(c.unlimited.device()) * c.BudgetPercent / 100)
	}
	switch {
	case c.budget < 0 || c.budget >= c.unlimited.device():
		c.chosen = c.unlimited
	case c.budget < c.smallest.device():
		c.fit = &FitError{BudgetBytes: c.budget, MinimumBytes: c.smallest.device()}
		c.chosen = c.smallest
	default:
		if c.chosen, err = c.within(c.budget); err != nil {
			return err
		}
		if c.chosen == nil {
			c.chosen = c.smallest // slow, but it fits
		}
	}
	ctx.Programs = c.chosen.programs
	return nil
}

// lower makes the plan and, where it does not fit, says what is in the way.
func (c *compiler) lower() {
	c.plan = c.finish()
	if c.fit != nil {
		c.plan.Report.Fits = false
		c.fit.BoundBytes = c.plan.Report.BoundBytes
		describePeak(c.fit, c.plan)
	}
}

// copies returns programs that the back half may take apart: constants are parameters, every new content has a value of its own, and nothing
// reads a parameter's old content once the new one is made.
func (c *compiler) copies() []*ir.Graph {
	var out []*ir.Graph
	for _, g := range c.sources {
		h := g.Clone()
		literals(h)
		ownNext(h)
		keepOld(h)
		out = append(out, h)
	}
	return out
}

// keepAll is the plan without a budget: nothing is recomputed or swapped.
func (c *compiler) keepAll() (*candidate, error) {
	programs := c.copies()
	p, err := place(programs, c.Profile)
	return &candidate{programs: programs, place: p}, err
}

// limits are what one call of the solver may use, in bytes; < 0: no limit. They shrink where a placed arena came out too large.
type limits struct {
	device, host int64
	spared       int64 // bytes of device that the training step leaves alone, so that fewer parameters live there between programs
	swap         bool
}

// crowdedError says that a later program does not fit beside the parameters that the training step has left on the device.
type crowdedError struct {
	*memory.InfeasibleError
	program string
}

func (e *crowdedError) Unwrap() error { return e.InfeasibleError }

func (e *crowdedError) Error() string {
	return fmt.Sprintf("program %s: %v", e.program, e.InfeasibleError)
}

// problem states a program's problem with the settings of this run.
func (c *compiler) problem(g *ir.Graph, homes map[string]bool, lim limits) *problem {
	p := newProblem(g, c.Profile, homes)
	p.changedElsewhere(c.sources)
	p.BudgetBytes, p.Recompute = lim.device, c.Recompute
	if lim.swap {
		p.Lanes = &memory.Lanes{
			D2HBytesPerSec: c.Profile.D2HRate, H2DBytesPerSec: c.Profile.H2DRate, LatencyPicos: c.Profile.CopyPicos,
			DuplexPermille: c.Profile.DuplexPermille, HostBudgetBytes: lim.host,
		}
	}
	return p
}

// solve decides and places all programs: the training step first, which chooses where parameters live between programs. A parameter that the
// step does not know lives on the device.
func (c *compiler) solve(decide func(*memory.Problem) (*memory.Solution, error), lim limits) (*candidate, error) {
	out := &candidate{programs: c.copies()}
	var homes map[string]bool // by parameter name: the host; nil until the step is decided
	for _, g := range out.programs {
		p := c.problem(g, homes, lim)
		if homes == nil && lim.device >= 0 {
			p.BudgetBytes = lim.device - lim.spared
		}
		if err := p.checkTimes(); err != nil {
			return nil, err
		}
		sol, err := decide(&p.Problem)
		if e, ok := errors.AsType[*memory.InfeasibleError](err); ok && homes != nil {
			err = &crowdedError{e, g.Name}
		}
		if err != nil {
			return nil, err
		}
		if homes == nil {
			out.step, out.decision = p, sol
			homes = map[string]bool{}
			for _, q := range g.Params {
				homes[q.Name] = sol.HostHome != nil && sol.HostHome[p.st.Of[q.ID]]
			}
		}
		writeResidence(p, sol)
		partCopies(g, true)
	}
	var err error
	out.place, err = place(out.programs, c.Profile)
	return out, err
}

// fitTries bounds how often the solver is asked again because the placed arena came out too large.
const fitTries = 12

// least is the plan of the peak-minimiser. Where its host arena does not fit for fragmentation, it gets less host memory, and in the end none.
func (c *compiler) least() (*candidate, error) {
	lim := limits{device: -1, host: c.HostBudgetBytes, swap: c.Swap}
	for range fitTries {
		s, err := c.solve(memory.Minimum, lim)
		if err != nil || c.HostBudgetBytes < 0 || s.host() <= c.HostBudgetBytes {
			return s, err
		}
		lim.host = max(lim.host-max(s.host()-c.HostBudgetBytes, c.Profile.AlignBytes), 0)
	}
	return c.solve(memory.Minimum, limits{device: -1, host: -1})
}

// within finds the fastest plan whose arenas fit, nil if the search finds none.
//
// The step alone chooses where parameters live between programs. Where another program then has too little room, the step is asked for less.
func (c *compiler) within(budget int64) (*candidate, error) {
	search := func(p *memory.Problem) (*memory.Solution, error) {
		return memory.Solve(p, memory.Options{Moves: c.Effort, PeakOnly: true})
	}
	lim := limits{device: budget, host: c.HostBudgetBytes, swap: c.Swap}
	for range fitTries {
		s, err := c.solve(search, lim)
		if e, crowded := errors.AsType[*crowdedError](err); crowded && lim.swap {
			lim.spared += roundUp(max(e.MinimumBytes-e.BudgetBytes, 1), c.Profile.AlignBytes)
			continue
		}
		if _, infeasible := errors.AsType[*memory.InfeasibleError](err); infeasible {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		over, hostOver := s.device()-budget, s.host()-c.HostBudgetBytes
		if c.HostBudgetBytes < 0 {
			hostOver = 0
		}
		if over <= 0 && hostOver <= 0 {
			return s, nil
		}
		if over > 0 {
			lim.device -= roundUp(over, c.Profile.AlignBytes)
		}
		if hostOver > 0 {
			lim.host = max(lim.host-roundUp(hostOver, c.Profile.AlignBytes), 0)
		}
	}
	return nil, nil
}
