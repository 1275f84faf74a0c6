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

// candidate is one way to run the programs: decisions written in, placed.
type candidate struct {
	programs []*ir.Graph
	place    *placement
	solution *memory.Solution // of the step; nil for the unlimited plan
}

func (c *candidate) device() int64 { return c.place.arenas[ir.Device].ArenaBytes }
func (c *candidate) host() int64   { return c.place.arenas[ir.Pinned].ArenaBytes }

// FitError says that no plan fits the budget; the plan that Compile returns beside it is the smallest one.
type FitError struct {
	BudgetBytes, MinimumBytes int64
	HostBudgetBytes           int64 // < 0: no limit
	At                        ir.Origin
	AtOp                      string
	Alive                     []AliveTensor // at the peak, largest first
	Advice                    []string
}

// AliveTensor is a tensor that takes bytes at the peak.
type AliveTensor struct {
	Name     string
	Bytes    int64
	Category plan.Category
}

func (e *FitError) Error() string {
	s := fmt.Sprintf("does not fit: the budget is %d bytes, the smallest arena the planner can do is %d bytes", e.BudgetBytes, e.MinimumBytes)
	if at := e.At.String(); at != "" || e.AtOp != "" {
		s += fmt.Sprintf("; the peak is at %s %s", e.AtOp, at)
	}
	if len(e.Alive) > 0 {
		s += ", where these live:"
		for _, a := range e.Alive {
			s += fmt.Sprintf("\n  %12d  %-15s %s", a.Bytes, a.Category, a.Name)
		}
	}
	for _, a := range e.Advice {
		s += "\n  " + a
	}
	return s
}

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
			Run: func(ctx *Context, _ *ir.Graph) error { return ctx.back.lower() },
		},
	}
}

// compiler carries one compilation through the passes of Back.
type compiler struct {
	MemoryOptions
	sources                     []*ir.Graph // scheduled, without memory decisions
	budget                      int64
	unlimited, smallest, chosen *candidate
	fit                         *FitError
	plan                        *plan.Plan
}

// memory chooses a candidate and makes its programs the context's.
func (c *compiler) memory(ctx *Context) error {
	var err error
	if c.unlimited, err = c.free(); err != nil {
		return err
	}
	if c.smallest, err = c.least(); err != nil {
		return err
	}
	if c.smallest.device() > c.unlimited.device() && c.unlimited.host() <= c.smallest.host() {
		c.smallest = c.unlimited
	}
	c.budget = c.BudgetBytes
	if c.BudgetPercent > 0 {
		c.budget = int64(float64(c.unlimited.device()) * c.BudgetPercent / 100)
	}
	switch {
	case c.budget < 0 || c.budget >= c.unlimited.device():
		c.chosen = c.unlimited
	case c.budget < c.smallest.device():
		c.fit = &FitError{BudgetBytes: c.budget, MinimumBytes: c.smallest.device(), HostBudgetBytes: c.HostBudgetBytes}
		c.chosen = c.smallest
	default:
		if c.chosen, err = c.within(c.budget); err != nil {
			return err
		}
		if c.chosen == nil {
			c.chosen = c.smallest
		}
	}
	ctx.Programs = c.chosen.programs
	return nil
}

// lower makes the plan and, where it does not fit, says what is in the way.
func (c *compiler) lower() error {
	p, err := c.finish()
	if err != nil {
		return err
	}
	c.plan = p
	if c.fit != nil {
		p.Report.Fits = false
		describePeak(c.fit, p)
		c.advise(c.fit)
	}
	return nil
}

// advise says what would help, from what was not allowed.
func (c *compiler) advise(fit *FitError) {
	fit.Advice = append(fit.Advice, fmt.Sprintf("use --budget %d or more", fit.MinimumBytes))
	if !c.Recompute {
		fit.Advice = append(fit.Advice, "allow recomputing (--recompute auto)")
	}
	if !c.Swap {
		fit.Advice = append(fit.Advice, "allow swapping to host memory (--host-budget SIZE)")
	} else if c.HostBudgetBytes >= 0 {
		fit.Advice = append(fit.Advice, fmt.Sprintf("give more than %d bytes of host memory (--host-budget)", c.HostBudgetBytes))
	}
	fit.Advice = append(fit.Advice, "or bind a smaller batch (--dim)")
}

// copies returns programs that the back half may take apart: constants are parameters, every new content has a value of its own, and what is read after it is made is no old content.
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

// ownNext gives each parameter a new content that no other parameter shares and that a node makes: both may be needed in two places.
func ownNext(g *ir.Graph) {
	taken := map[*ir.Value]bool{}
	for _, p := range g.Params {
		if p.Next == nil {
			continue
		}
		if v := p.Next; taken[v] {
			if v.Def == nil || ir.IsStateful(v.Def.Op) {
				panic(ir.Bugf("parameter %q shares its new content with another", p.Name))
			}
			n, err := g.NewNode(v.Def.Op, v.Def.In...)
			if err != nil {
				panic(ir.Bugf("new content of %q: %v", p.Name, err))
			}
			n.Phase, n.Origin = v.Def.Phase, v.Def.Origin
			for i, m := range g.Nodes {
				if m == v.Def {
					g.Nodes = append(g.Nodes[:i+1], append([]*ir.Node{n}, g.Nodes[i+1:]...)...)
					break
				}
			}
			p.Next = n.Out[v.Index]
		}
		taken[p.Next] = true
	}
}

// free is the plan without a budget: nothing is recomputed or swapped.
func (c *compiler) free() (*candidate, error) {
	programs := c.copies()
	p, err := place(programs, c.Profile)
	return &candidate{programs: programs, place: p}, err
}

// problem states a program's problem with the settings of this run.
func (c *compiler) problem(g *ir.Graph, homes map[string]bool, budget, hostBudget int64) *problem {
	s := newProblem(g, c.Profile, homes)
	s.BudgetBytes, s.Recompute = budget, c.Recompute
	if c.Swap {
		s.Lanes = &memory.Lanes{
			D2HBytesPerSec: c.Profile.D2HRate, H2DBytesPerSec: c.Profile.H2DRate, LatencyPicos: c.Profile.CopyPicos,
			DuplexPermille: c.Profile.DuplexPermille, HostBudgetBytes: hostBudget,
		}
	}
	return s
}

// solve decides and places all programs: the training step first, which chooses where parameters live between programs.
func (c *compiler) solve(decide func(*problem) (*memory.Solution, error), budget, hostBudget int64) (*candidate, error) {
	out := &candidate{programs: c.copies()}
	var homes map[string]bool
	for _, g := range out.programs {
		s := c.problem(g, homes, budget, hostBudget)
		sol, err := decide(s)
		if err != nil {
			return nil, err
		}
		if homes == nil {
			homes = map[string]bool{}
			out.solution = sol
			for _, p := range g.Params {
				homes[p.Name] = sol.HostHome != nil && sol.HostHome[s.st.Of[p.ID]]
			}
		}
		writeResidence(s, sol)
		partCopies(g, true)
	}
	var err error
	out.place, err = place(out.programs, c.Profile)
	return out, err
}

// least is the plan of the peak-minimiser. Where its host arena does not fit for fragmentation, it gets less host memory.
func (c *compiler) least() (*candidate, error) {
	host := c.HostBudgetBytes
	for range fitTries {
		s, err := c.solve(func(s *problem) (*memory.Solution, error) { return memory.Minimum(&s.Problem) }, -1, host)
		if err != nil || c.HostBudgetBytes < 0 || s.host() <= c.HostBudgetBytes {
			return s, err
		}
		host = max(host-max(s.host()-c.HostBudgetBytes, c.Profile.AlignBytes), 0)
	}
	saved := c.Swap
	c.Swap = false
	defer func() { c.Swap = saved }()
	return c.solve(func(s *problem) (*memory.Solution, error) { return memory.Minimum(&s.Problem) }, -1, -1)
}

// fitTries bounds how often the solver is asked again because the placed arena came out too large.
const fitTries = 12

// within finds the fastest plan whose arenas fit, nil if the search finds none.
func (c *compiler) within(budget int64) (*candidate, error) {
	target, host := budget, c.HostBudgetBytes
	for range fitTries {
		s, err := c.solve(func(s *problem) (*memory.Solution, error) {
			return memory.Solve(&s.Problem, memory.Options{Moves: c.Effort})
		}, target, host)
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
			target -= roundUp(over, c.Profile.AlignBytes)
		}
		if hostOver > 0 {
			host = max(host-roundUp(hostOver, c.Profile.AlignBytes), 0)
		}
	}
	return nil, nil
}
