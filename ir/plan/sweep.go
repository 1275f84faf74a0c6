package plan

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"text/tabwriter"

	"aitk/ir"
)

// Views of plans of one model for several budgets, in the order in which they come.

// The document "aitk.sweep/1": fields are those of "aitk.plan/1".
type sweepDocument struct {
	Schema           string           `json:"schema"`
	Tool             string           `json:"tool"`
	Model            string           `json:"model"`
	Graph            string           `json:"graph_sha256"`
	Device           string           `json:"device"`
	Profile          string           `json:"profile"`
	Dims             map[string]int64 `json:"dims"`
	MinimumBudget    int64            `json:"minimum_budget_bytes"`
	UnlimitedArena   int64            `json:"unlimited_arena_bytes"`
	UnlimitedSeconds float64          `json:"unlimited_step_seconds"`
	Points           []sweepPoint     `json:"points"`
}

type sweepPoint struct {
	Budget        int64            `json:"budget_bytes"`
	Share         float64          `json:"budget_share"` // of the unlimited arena
	Fits          bool             `json:"fits"`
	Arena         map[string]int64 `json:"arena_bytes"`
	Peak          map[string]int64 `json:"peak_bytes"`
	StepSeconds   float64          `json:"step_seconds"`
	Overhead      float64          `json:"overhead"`
	OverheadBound float64          `json:"overhead_bound"`
	Recomputed    jsonRecomputed   `json:"recomputed"`
	Swapped       jsonSwapped      `json:"swapped"`
}

func sweepPointOf(p *Plan) sweepPoint {
	r := &p.Report
	x := sweepPoint{
		Budget: r.BudgetBytes, Share: ratio(r.BudgetBytes, r.UnlimitedArenaBytes), Fits: r.Fits, Arena: map[string]int64{}, Peak: map[string]int64{},
		StepSeconds: seconds(r.StepPicos), Overhead: r.Overhead(), OverheadBound: float64(r.OverheadBoundPPM) / 1e6,
		Recomputed: jsonRecomputed{r.RecomputedNodes, r.RecomputedFLOPs, seconds(r.RecomputedPicos)},
		Swapped:    jsonSwapped{r.SwapOutBytes, r.SwapInBytes, seconds(r.StallPicos)},
	}
	for _, a := range p.Arenas {
		x.Arena[a.Space.String()], x.Peak[a.Space.String()] = a.Bytes, PeakOf(p, a.Space).Bytes
	}
	return x
}

// WriteSweepJSON writes the document of "plan --sweep --json". There must be a plan.
func WriteSweepJSON(w io.Writer, plans []*Plan) error {
	p := plans[0]
	d := sweepDocument{
		Schema: "aitk.sweep/1", Tool: p.Tool, Model: p.Model, Graph: p.GraphSum, Device: p.Profile.Device, Profile: p.Profile.Name, Dims: map[string]int64{},
		MinimumBudget: p.Report.MinimumBudgetBytes, UnlimitedArena: p.Report.UnlimitedArenaBytes, UnlimitedSeconds: seconds(p.Report.UnlimitedStepPicos),
	}
	for _, x := range p.Dims {
		d.Dims[x.Name] = x.Size
	}
	for _, p := range plans {
		d.Points = append(d.Points, sweepPointOf(p))
	}
	enc := json.NewEncoder(w)
	enc.SetIndent("", " ")
	return enc.Encode(d)
}

// WriteSweepCSV writes a row for each plan.
func WriteSweepCSV(w io.Writer, plans []*Plan) error {
	out := csv.NewWriter(w)
	rows := [][]string{{"budget_bytes", "budget_share", "fits", "arena_bytes", "peak_bytes", "host_arena_bytes", "step_seconds", "overhead", "overhead_bound", "recomputed_nodes",
		"recomputed_seconds", "swap_out_bytes", "swap_in_bytes", "stall_seconds"}}
	number := func(n int64) string { return strconv.FormatInt(n, 10) }
	real := func(x float64) string { return strconv.FormatFloat(x, 'g', -1, 64) }
	for _, p := range plans {
		x := sweepPointOf(p)
		rows = append(rows, []string{number(x.Budget), real(x.Share), strconv.FormatBool(x.Fits), number(x.Arena[ir.Device.String()]), number(x.Peak[ir.Device.String()]),
			number(x.Arena[ir.Pinned.String()]), real(x.StepSeconds), real(x.Overhead), real(x.OverheadBound), number(x.Recomputed.Nodes), real(x.Recomputed.Seconds),
			number(x.Swapped.Out), number(x.Swapped.In), real(x.Swapped.Stall)})
	}
	if err := out.WriteAll(rows); err != nil {
		return err
	}
	return out.Error()
}

// WriteSweep writes a table with a line for each plan.
func WriteSweep(w io.Writer, plans []*Plan) error {
	p := plans[0]
	line := "plans of " + plain(p.Model)
	for _, d := range p.Dims {
		line += fmt.Sprintf("  %s=%d", plain(d.Name), d.Size)
	}
	if _, err := fmt.Fprintf(w, "%s  for %s; without a budget %s and %s\n", line, plain(p.Profile.Name), FormatBytes(p.Report.UnlimitedArenaBytes), FormatPicos(p.Report.UnlimitedStepPicos)); err != nil {
		return err
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "budget bytes\tshare\tarena\tstep\toverhead\tat least\trecomputed\tmoved\tstalled\t")
	for _, p := range plans {
		r := &p.Report
		arena := int64(0)
		if a := p.Arena(ir.Device); a != nil {
			arena = a.Bytes
		}
		fmt.Fprintf(t, "%d\t%s\t%d\t%s\t%.2f %%\t%.2f %%\t%d nodes\t%s\t%s\t\n", r.BudgetBytes, percent(r.BudgetBytes, r.UnlimitedArenaBytes), arena, FormatPicos(r.StepPicos),
			100*r.Overhead(), float64(r.OverheadBoundPPM)/1e4, r.RecomputedNodes, FormatBytes(r.SwapOutBytes+r.SwapInBytes), FormatPicos(r.StallPicos))
	}
	return t.Flush()
}
