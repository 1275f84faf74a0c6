package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"text/tabwriter"
	"time"

	"aitk/ir"
	"aitk/passes/memory"
	"aitk/passes/memory/moccasin"
)

// memorySolver plans one cost graph. The problem is the graph's with durations in picoseconds where copies take time beside them, else in the file's unit.
type memorySolver struct {
	graph   *moccasin.Graph
	problem memory.Problem
	unit    int64 // picoseconds of a duration in the file
	free    bool
	options memory.Options
	begin   time.Time
	best    time.Duration // when the last improvement came
	sum     int64         // of all durations
	peak    int64         // of the file's own order
}

// memoryPlan is a plan in its order: nil for the file's own.
type memoryPlan struct {
	order   []int32
	problem *memory.Problem
	sol     *memory.Solution
}

// memoryAnswer is what solve memory --json prints. Bytes are of the file, durations in its unit.
type memoryAnswer struct {
	Feasible      bool              `json:"feasible"`
	Verdict       string            `json:"verdict"` // feasible, infeasible (proved by the bound), undecided
	Budget        *int64            `json:"budget"`  // null: no limit
	Peak          int64             `json:"peak"`    // where it is not feasible: the smallest that was found
	Cost          json.Number       `json:"cost"`    // durations of all events and stalls
	Overhead      float64           `json:"overhead"`
	Bound         int64             `json:"bound"` // on the peak
	OverheadBound float64           `json:"overhead_bound"`
	BoundName     string            `json:"bound_name"`
	Recomputes    int               `json:"recomputes"`
	Swaps         []memorySwap      `json:"swaps,omitempty"`
	SwapOut       int64             `json:"swap_out_bytes,omitempty"`
	SwapIn        int64             `json:"swap_in_bytes,omitempty"`
	HostPeak      int64             `json:"host_peak,omitempty"`
	Stall         json.Number       `json:"stall,omitempty"`
	Seconds       float64           `json:"seconds"`
	SecondsToBest float64           `json:"seconds_to_best"`
	Schedule      []json.RawMessage `json:"schedule"`
}

// memorySwap is a time that a value is away; nodes stand for their first computation.
type memorySwap struct {
	Node   json.RawMessage `json:"node"`
	After  json.RawMessage `json:"out_after"`   // copied out after this node
	Free   json.RawMessage `json:"free_before"` // its bytes are free from before this node
	Before json.RawMessage `json:"in_before"`   // copied in before this node
	Use    json.RawMessage `json:"used_by"`     // the first that waits for it
	Write  bool            `json:"write"`       // false: the host has the content already
}

// opDegree is the bound that proves a budget infeasible: operands, outputs and scratch of one op.
const opDegree = "op degree"

func (c *call) solveMemory(path string, raw []byte) error {
	g, err := moccasin.Read(path, bytes.NewReader(raw))
	if err != nil {
		return badFile(err)
	}
	m, err := c.newMemorySolver(g)
	if err != nil {
		return err
	}
	if c.solve.sweep > 0 {
		return c.sweepMemory(path, m)
	}
	budget := int64(-1)
	switch c.budget.kind {
	case sizeBytes:
		budget = c.budget.bytes
	case sizePercent:
		budget = share(c.budget.percent, m.peak)
	case sizeAuto:
		return usagef("--budget auto is the memory of a card, which a cost graph has not: give a size or a percentage")
	}
	a, err := m.solve(budget)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if err := c.ctx.Err(); err != nil {
		return err
	}
	if c.wants("json") {
		err = c.show(map[string]func(io.Writer) error{"json": func(w io.Writer) error { return writeJSON(w, a) }})
	} else {
		err = c.writeFile("-", func(w io.Writer) error { return m.write(w, a) })
	}
	if err != nil || a.Feasible {
		return err
	}
	return ir.Errorf(ir.DoesNotFit, ir.Origin{File: path}, "%s", a.whyNot())
}

// newMemorySolver applies the flags to the graph.
func (c *call) newMemorySolver(g *moccasin.Graph) (*memorySolver, error) {
	m := &memorySolver{graph: g, problem: g.Problem, unit: 1, free: c.solve.order == "free"}
	m.options.Moves = c.effort
	m.options.Improved = func(memory.Progress) { m.best = time.Since(m.begin) }
	limit := time.Duration(math.MaxInt64)
	if s := c.solve.seconds; s > 0 {
		if c.effort == 0 {
			m.options.Moves = math.MaxInt64 / 4
		}
		limit = time.Duration(min(s, 1e6) * float64(time.Second))
	}
	m.options.Stop = func() bool { return c.ctx.Err() != nil || time.Since(m.begin) > limit }
	peak, sum, err := g.Replay(g.Schedule(nil, &memory.Solution{}))
	if err != nil {
		return nil, ir.Bugf("a graph that was read does not replay: %v", err)
	}
	m.peak, m.sum = peak, sum
	if c.solve.h2d == 0 && c.solve.d2h == 0 {
		for _, f := range []string{"latency", "duplex", "host", "time-unit"} {
			if c.has(f) {
				return nil, usagef("--%s is for swapping, which needs --h2d GB/S", f)
			}
		}
		return m, nil
	}
	return m, c.addLanes(m)
}

// addLanes allows swapping: durations become picoseconds.
func (c *call) addLanes(m *memorySolver) error {
	units := map[string]int64{"ps": 1, "ns": 1e3, "us": 1e6, "ms": 1e9, "s": 1e12}
	name := c.solve.timeUnit
	if name == "" {
		name = "us"
	}
	m.unit = units[name]
	if m.sum > memory.MaxTotalPicos/m.unit {
		return usagef("the durations add up to %d %s, more than the planner counts: give a smaller --time-unit", m.sum, name)
	}
	m.problem.Ops = append([]memory.Op{}, m.problem.Ops...)
	for i := range m.problem.Ops {
		m.problem.Ops[i].Picos *= m.unit
	}
	in, out := c.solve.h2d, c.solve.d2h
	if in == 0 {
		in = out
	}
	if out == 0 {
		out = in
	}
	l := &memory.Lanes{H2DBytesPerSec: int64(in), D2HBytesPerSec: int64(out), LatencyPicos: c.solve.latency.Nanoseconds() * 1000, HostBudgetBytes: -1}
	if c.solve.duplex > 0 {
		l.DuplexPermille = int64(math.Round(c.solve.duplex * 500))
	}
	switch c.solve.host.kind {
	case sizeBytes:
		l.HostBudgetBytes = c.solve.host.bytes
	case sizePercent, sizeAuto:
		return usagef("--host: want a size in bytes or none")
	}
	m.problem.Lanes = l
	if err := memory.Validate(&m.problem); err != nil {
		return usagef("with these lanes: %w", err)
	}
	return nil
}

// solve plans for one budget; < 0: none.
func (m *memorySolver) solve(budget int64) (*memoryAnswer, error) {
	m.begin, m.best = time.Now(), 0
	p, misfit, err := m.plan(budget)
	if err != nil {
		return nil, err
	}
	seconds := time.Since(m.begin).Seconds()
	var a *memoryAnswer
	if misfit != nil {
		a = m.misfit(misfit)
	} else if a, err = m.answer(p, budget); err != nil {
		return nil, err
	}
	a.Seconds, a.SecondsToBest = seconds, m.best.Seconds()
	return a, nil
}

// plan searches, in the file's order or in any.
func (m *memorySolver) plan(budget int64) (*memoryPlan, *memory.InfeasibleError, error) {
	q := m.problem
	q.BudgetBytes = budget
	var misfit *memory.InfeasibleError
	if m.free {
		f, err := memory.SolveFree(&q, m.options)
		if errors.As(err, &misfit) {
			return nil, misfit, nil
		}
		if err != nil {
			return nil, nil, err
		}
		return &memoryPlan{f.Order, f.Problem, f.Solution}, nil, nil
	}
	sol, err := memory.Solve(&q, m.options)
	if errors.As(err, &misfit) {
		return nil, misfit, nil
	}
	return &memoryPlan{nil, &q, sol}, nil, err
}

// answer checks a plan and describes it.
func (m *memorySolver) answer(p *memoryPlan, budget int64) (*memoryAnswer, error) {
	schedule := m.graph.Schedule(p.order, p.sol)
	r, err := m.check(p, schedule, budget)
	if err != nil {
		return nil, fmt.Errorf("internal error: the plan is refused by the check before printing, please report it: %w", err)
	}
	s, sum := p.sol, m.sum*m.unit
	a := &memoryAnswer{Feasible: true, Verdict: "feasible", Peak: r.PeakBytes, Cost: m.duration(r.StepPicos), Bound: s.Bound.PeakBytes, BoundName: s.Bound.Name,
		Recomputes: len(s.Recomputes), Schedule: schedule, SwapOut: r.SwapOutBytes, SwapIn: r.SwapInBytes, HostPeak: r.HostPeakBytes}
	if budget >= 0 {
		a.Budget = &budget
	}
	if sum > 0 {
		a.Overhead, a.OverheadBound = float64(r.StepPicos)/float64(sum)-1, float64(s.Bound.OverheadPicos)/float64(sum)
	}
	if m.problem.Lanes != nil {
		a.Stall = m.duration(r.StallPicos)
	}
	id := func(t int32) json.RawMessage {
		if int(t) >= len(m.graph.IDs) {
			return json.RawMessage("null")
		}
		if p.order != nil {
			t = p.order[t]
		}
		return m.graph.IDs[t]
	}
	for _, w := range s.Swaps { // values are numbered like the file's order, stages like the plan's
		a.Swaps = append(a.Swaps, memorySwap{m.graph.IDs[w.Value], id(w.After), id(w.Free), id(w.Before), id(w.Use), w.Write})
	}
	return a, nil
}

// check is independent of the search: the schedule is replayed by the benchmark's rules, and the plan by the simulator, which alone knows copies.
func (m *memorySolver) check(p *memoryPlan, schedule []json.RawMessage, budget int64) (memory.Result, error) {
	r, err := memory.Simulate(p.problem, p.sol)
	if err != nil {
		return r, err
	}
	peak, time, err := m.graph.Replay(schedule)
	switch {
	case err != nil:
		return r, err
	case len(p.sol.Swaps) == 0 && peak != r.PeakBytes:
		return r, fmt.Errorf("the schedule's peak is %d, the plan's %d", peak, r.PeakBytes)
	case time*m.unit != r.ComputePicos:
		return r, fmt.Errorf("the schedule takes %d, the plan %d", time*m.unit, r.ComputePicos)
	case budget >= 0 && r.PeakBytes > budget:
		return r, fmt.Errorf("the peak is %d, the budget %d", r.PeakBytes, budget)
	case m.problem.Lanes != nil && m.problem.Lanes.HostBudgetBytes >= 0 && r.HostPeakBytes > m.problem.Lanes.HostBudgetBytes:
		return r, fmt.Errorf("the host peak is %d, the host budget %d", r.HostPeakBytes, m.problem.Lanes.HostBudgetBytes)
	}
	return r, nil
}

// misfit describes a budget that nothing was found for.
func (m *memorySolver) misfit(e *memory.InfeasibleError) *memoryAnswer {
	a := &memoryAnswer{Verdict: "undecided", Budget: &e.BudgetBytes, Peak: e.MinimumBytes, Cost: m.duration(m.sum * m.unit), Bound: e.BoundBytes, BoundName: opDegree, Schedule: []json.RawMessage{}}
	if e.BudgetBytes < e.BoundBytes {
		a.Verdict = "infeasible"
	}
	return a
}

func (a *memoryAnswer) whyNot() string {
	if a.Verdict == "infeasible" {
		return fmt.Sprintf("infeasible: the budget is %d bytes, and no schedule can have a peak below %d (%s); the smallest that was found is %d", *a.Budget, a.Bound, a.BoundName, a.Peak)
	}
	return fmt.Sprintf("undecided: no schedule was found for %d bytes, the smallest peak that was found is %d, and no schedule can have one below %d (%s)", *a.Budget, a.Peak, a.Bound, a.BoundName)
}

// duration is picoseconds in the file's unit, whole where it is.
func (m *memorySolver) duration(picos int64) json.Number {
	if picos%m.unit == 0 {
		return json.Number(fmt.Sprint(picos / m.unit))
	}
	return json.Number(fmt.Sprintf("%.6f", float64(picos)/float64(m.unit)))
}

// write is the answer for reading.
func (m *memorySolver) write(w io.Writer, a *memoryAnswer) error {
	links := 0
	for i := range m.problem.Ops {
		links += len(m.problem.Ops[i].In)
	}
	fmt.Fprintf(w, "%s: %d nodes, %d links, peak %d and duration %d in the file's order\n", visible(m.graph.Name), len(m.graph.IDs), links, m.peak, m.sum)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	row := func(name, format string, args ...any) {
		fmt.Fprintf(t, "  %s\t%s\n", name, fmt.Sprintf(format, args...))
	}
	if a.Budget != nil {
		row("budget", "%d, %.2f %% of the peak", *a.Budget, 100*float64(*a.Budget)/float64(max(m.peak, 1)))
	} else {
		row("budget", "none")
	}
	row("bound of the peak", "%d", a.Bound)
	if !a.Feasible {
		row("smallest peak found", "%d", a.Peak)
		row("verdict", "%s", a.Verdict)
		return t.Flush()
	}
	row("peak", "%d", a.Peak)
	row("cost", "%s, overhead %.4f %%", a.Cost, 100*a.Overhead)
	row("bound of the overhead", "%.4f %% (%s)", 100*a.OverheadBound, a.BoundName)
	row("recomputes", "%d", a.Recomputes)
	if m.problem.Lanes != nil {
		row("copies", "%d out and %d in bytes, host peak %d, stalled %s", a.SwapOut, a.SwapIn, a.HostPeak, a.Stall)
	}
	row("seconds", "%.3f, the best plan after %.3f", a.Seconds, a.SecondsToBest)
	return t.Flush()
}
