package plan

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"aitk/ir"
)

// mostAlive is how many of the buffers that are alive at the peak a summary lists.
const mostAlive = 5

// WriteSummary writes what a person wants to know of a plan first.
func WriteSummary(w io.Writer, p *Plan) error {
	out := bufio.NewWriter(w)
	r := &p.Report
	line := "plan of " + cmp.Or(plain(p.Model), "a graph")
	for _, d := range p.Dims {
		line += fmt.Sprintf("  %s=%d", plain(d.Name), d.Size)
	}
	if p.Profile.Name != "" {
		line += "  for " + plain(p.Profile.Name)
	}
	fmt.Fprintln(out, line)
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	row := func(name, format string, args ...any) {
		fmt.Fprintf(t, "  %s\t%s\n", name, fmt.Sprintf(format, args...))
	}
	if !r.Fits {
		row("does not fit", "the budget is %d bytes, the least that works is %d bytes; shown is the plan for that", r.BudgetBytes, r.MinimumBudgetBytes)
	}
	row("unlimited arena", "%s", FormatBytes(r.UnlimitedArenaBytes))
	if r.BudgetBytes >= 0 {
		share := percent(r.BudgetBytes, r.UnlimitedArenaBytes) + " of unlimited"
		if r.BudgetBytes >= r.UnlimitedArenaBytes {
			share = "no less than unlimited"
		}
		row("budget", "%s, %s; minimum %s", exactBytes(r.BudgetBytes), share, exactBytes(r.MinimumBudgetBytes))
	} else {
		row("budget", "none; minimum %s", exactBytes(r.MinimumBudgetBytes))
	}
	var memory int64
	for _, a := range p.Arenas {
		if a.Space == ir.Disk { // files, which cost no memory
			continue
		}
		p.arenaRow(row, a)
		memory += a.Bytes
	}
	if a := p.Arena(ir.Device); p.Profile.Device == "cpu" && a != nil && memory > a.Bytes {
		row("memory", "%s, since both arenas lie in the same RAM", FormatBytes(memory))
	}
	row("bound", "%s: no plan of this order can have a lower peak", FormatBytes(r.BoundBytes))
	row("recomputed", "%d nodes, %s of FLOPs, %s", r.RecomputedNodes, percent(r.RecomputedFLOPs, r.TotalFLOPs), FormatPicos(r.RecomputedPicos))
	row("moved", "%s out, %s in", FormatBytes(r.SwapOutBytes), FormatBytes(r.SwapInBytes))
	if r.QuantizedWeights > 0 {
		lost := ""
		if w := worstQuantized(r); w != nil && r.QuantizedRelL2 != NotMeasured {
			lost = fmt.Sprintf(", relative error %.2g, at most %.2g in %s", r.QuantizedRelL2, w.RelL2, w.Name)
		}
		row("quantized", "%d weights, %s saved%s", r.QuantizedWeights, FormatBytes(r.QuantizedSavedBytes), lost)
	}
	step := FormatPicos(r.StepPicos)
	if over := r.Overhead(); over != 0 || r.OverheadBoundPPM != 0 {
		step += fmt.Sprintf(", %.1f %% over unlimited", 100*over)
		if r.Fits {
			step += fmt.Sprintf(" (at least %.1f %% for this budget)", float64(r.OverheadBoundPPM)/1e4)
		}
	}
	if r.StallPicos != 0 {
		step += ", stalled " + FormatPicos(r.StallPicos)
	}
	row("predicted step", "%s", step)
	if b := p.bindingOf(); b != nil {
		row("price", "%s a GiB of budget; dearest at instruction %d (%s)", FormatPicos(r.BudgetPicosPerGiB), b.At, strings.TrimSuffix(b.Op+", "+plain(short(b.From, 60)), ", "))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	p.atPeak(out)
	return out.Flush()
}

func (p *Plan) arenaRow(row func(name, format string, args ...any), a Arena) {
	peak := PeakOf(p, a.Space).Bytes
	name := "arena"
	if a.Space != ir.Device {
		name = a.Space.String() + " arena"
	}
	row(name, "%s, peak %s, fragmentation %s", exactBytes(a.Bytes), exactBytes(peak), percent(a.Bytes-peak, a.Bytes))
}

// exactBytes is a size for reading with its digits behind it where rounding hid them: sizes that differ must not look alike.
func exactBytes(n int64) string {
	s := FormatBytes(n)
	if exact := fmt.Sprintf("%d B", n); s != exact {
		s += fmt.Sprintf(" (%s)", exact)
	}
	return s
}

// atPeak names the instruction at the device peak and the largest buffers that are alive there.
func (p *Plan) atPeak(w io.Writer) {
	peak := PeakOf(p, ir.Device)
	if peak.Program < 0 {
		return
	}
	pr := &p.Programs[peak.Program]
	what := p.instrText(pr.Instrs[peak.At])
	if x, ok := pr.Instrs[peak.At].(*Exec); ok && from(x.Origin) != "" {
		what += ", " + plain(from(x.Origin))
	}
	fmt.Fprintf(w, "  peak at instruction %d of program %s (%s):", peak.At, plain(pr.Name), what)
	alive := Alive(p, peak.Program, peak.At, ir.Device)
	var parts []string
	for _, b := range alive[:min(len(alive), mostAlive)] {
		x := &p.Buffers[b]
		parts = append(parts, fmt.Sprintf("%s %s (%s)", plain(short(x.Name, 40)), FormatBytes(x.Bytes), x.Category))
	}
	fmt.Fprintf(w, " %s", strings.Join(parts, ", "))
	if n := len(alive) - len(parts); n > 0 {
		fmt.Fprintf(w, " and %d more", n)
	}
	fmt.Fprintln(w)
}
