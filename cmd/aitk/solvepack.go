package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"math"
	"runtime"
	"slices"
	"text/tabwriter"
	"time"

	"aitk/ir"
	"aitk/passes/pack"
	"aitk/passes/pack/packcsv"
)

// packAnswer is what solve pack --json prints.
type packAnswer struct {
	Feasible      bool             `json:"feasible"`
	Status        string           `json:"status"`   // optimal, feasible, infeasible (proved by the bound), undecided
	Capacity      *int64           `json:"capacity"` // null: the arena was minimised
	Arena         int64            `json:"arena"`    // of the offsets; where the capacity is not kept, of the best that was found
	Peak          int64            `json:"peak"`     // most live bytes at one time
	Bound         int64            `json:"bound"`    // no arena is smaller
	BoundName     string           `json:"bound_name"`
	Method        string           `json:"method"`
	Nodes         int64            `json:"nodes"`
	Passes        int              `json:"passes"`
	Seconds       float64          `json:"seconds"`
	SecondsToBest float64          `json:"seconds_to_best"`
	Offsets       map[string]int64 `json:"offsets"`
}

func (c *call) solvePack(path string, raw []byte) error {
	t, err := packcsv.Read(bytes.NewReader(raw))
	if err != nil {
		return ir.Errorf(ir.Unsupported, ir.Origin{File: path}, "%w", err)
	}
	problem := pack.Problem{Buffers: t.Buffers}
	switch c.solve.capacity.kind {
	case sizeBytes:
		if problem.CapacityBytes = c.solve.capacity.bytes; problem.CapacityBytes == 0 {
			return usagef("--capacity 0: want a size above 0")
		}
	case sizePercent, sizeAuto:
		return usagef("--capacity: want a size in bytes or none")
	}
	o := pack.Options{Nodes: c.effort, Workers: int(min(c.threads, 1024))}
	if o.Workers == 0 {
		o.Workers = runtime.GOMAXPROCS(0)
	}
	ctx := c.ctx
	if s := c.solve.seconds; s > 0 {
		if c.effort == 0 {
			o.Nodes = math.MaxInt64 / 4
		}
		limited, cancel := context.WithTimeout(ctx, time.Duration(min(s, 1e6)*float64(time.Second)))
		defer cancel()
		ctx = limited
	}
	begin := time.Now()
	r, err := pack.Solve(ctx, problem, o)
	if err != nil {
		return ir.Errorf(ir.Unsupported, ir.Origin{File: path}, "%w", err)
	}
	seconds := time.Since(begin).Seconds()
	if c.ctx.Err() != nil {
		return c.ctx.Err()
	}
	a, err := describePacking(t, problem, &r)
	if err != nil {
		return fmt.Errorf("%s: internal error: the placement is refused by the check before printing, please report it: %w", path, err)
	}
	a.Seconds, a.SecondsToBest = seconds, seconds
	if c.wants("json") {
		err = c.show(map[string]func(io.Writer) error{"json": func(w io.Writer) error { return writeJSON(w, a) }})
	} else {
		err = c.writeFile("-", func(w io.Writer) error { return a.write(w, path, len(t.Names)) })
	}
	if err != nil || a.Feasible {
		return err
	}
	verdict := fmt.Sprintf("undecided: no placement was found within %d bytes, the smallest takes %d, and none can take less than %d (%s)", *a.Capacity, a.Arena, a.Bound, a.BoundName)
	if r.Status == pack.Infeasible {
		verdict = fmt.Sprintf("infeasible: the capacity is %d bytes, and no placement takes less than %d (%s); the smallest that was found takes %d", *a.Capacity, a.Bound, a.BoundName, a.Arena)
	}
	return ir.Errorf(ir.DoesNotFit, ir.Origin{File: path}, "%s", verdict)
}

// describePacking checks a placement by the validator, which shares nothing with the search, and describes it.
func describePacking(t packcsv.Table, problem pack.Problem, r *pack.Result) (*packAnswer, error) {
	if err := pack.Validate(t.Buffers, r.Offsets); err != nil {
		return nil, err
	}
	a := &packAnswer{Feasible: true, Status: r.Status.String(), Arena: r.ArenaBytes, Peak: loadOf(t.Buffers), Bound: r.BoundBytes, BoundName: r.BoundName, Method: r.Method,
		Nodes: r.Nodes, Passes: r.Passes, Offsets: make(map[string]int64, len(t.Names))}
	end := int64(0)
	for i, name := range t.Names {
		a.Offsets[name] = r.Offsets[i]
		if b := &t.Buffers[i]; len(b.Windows) == 0 && len(b.Spans) > 0 && b.Bytes > 0 {
			end = max(end, r.Offsets[i]+b.Bytes)
		}
	}
	if end > r.ArenaBytes {
		return nil, fmt.Errorf("the arena is said to be %d bytes, and a buffer ends at %d", r.ArenaBytes, end)
	}
	if capacity := problem.CapacityBytes; capacity > 0 {
		a.Capacity, a.Feasible = &capacity, r.ArenaBytes <= capacity
		if a.Feasible != (r.Status == pack.Feasible || r.Status == pack.Optimal) {
			return nil, fmt.Errorf("an arena of %d bytes in %d is said to be %s", r.ArenaBytes, capacity, r.Status)
		}
	}
	return a, nil
}

// loadOf is the most bytes that are live at one time, by a sweep over all births and deaths.
func loadOf(buffers []pack.Buffer) int64 {
	change := map[int64]int64{}
	add := func(s pack.Span, n int64) {
		change[s.Start] += n
		change[s.End] -= n
	}
	for i := range buffers {
		for _, s := range buffers[i].Spans {
			add(s, buffers[i].Bytes)
		}
		for _, w := range buffers[i].Windows {
			add(w.Span, w.High-w.Low)
		}
	}
	var live, peak int64
	for _, at := range slices.Sorted(maps.Keys(change)) {
		live += change[at]
		peak = max(peak, live)
	}
	return peak
}

// write is the answer for reading.
func (a *packAnswer) write(w io.Writer, path string, buffers int) error {
	fmt.Fprintf(w, "%s: %d buffers\n", visible(path), buffers)
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	row := func(name, format string, args ...any) {
		fmt.Fprintf(t, "  %s\t%s\n", name, fmt.Sprintf(format, args...))
	}
	if a.Capacity != nil {
		row("capacity", "%d", *a.Capacity)
	}
	if a.Feasible {
		row("arena", "%d, %.5f of the bound; %s", a.Arena, float64(a.Arena)/float64(max(a.Bound, 1)), a.Status)
	} else {
		row("smallest arena found", "%d; %s", a.Arena, a.Status)
	}
	row("bound", "%d (%s)", a.Bound, a.BoundName)
	row("most live bytes", "%d", a.Peak)
	row("found by", "%s; %d passes, %d nodes", a.Method, a.Passes, a.Nodes)
	row("seconds", "%.3f", a.Seconds)
	return t.Flush()
}
