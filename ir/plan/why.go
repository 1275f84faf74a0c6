package plan

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"aitk/ir"
)

// Why every content of program step lies where it does: decisions with the places where it is computed again and the windows in which it is away.

// again is one recompute of a content.
type again struct {
	PC       int32
	Op, From string
	Phase    ir.Phase
	Picos    int64
}

// window is a time in which a content is on the host and not on the device, in instructions: it leaves with the copy Out (-1: the host has it already, or
// held it since the step before) and is back with the copy In, for Use (-1: the next step).
type window struct {
	Out, In, Use int32
	Bytes        int64
}

// absences finds the recomputes and windows of every symbol in program step.
func (p *Plan) absences() (reruns [][]again, windows [][]window) {
	reruns, windows = make([][]again, len(p.Symbols)), make([][]window, len(p.Symbols))
	step, _ := p.Program("step")
	if step == nil {
		return reruns, windows
	}
	next := p.nextReads(step)
	left := make([]int32, len(p.Symbols)) // the last copy out that nothing brought back
	for i := range left {
		left[i] = -1
	}
	for pc, i := range step.Instrs {
		switch x := i.(type) {
		case *Exec:
			if !x.Recompute {
				continue
			}
			for _, r := range x.Out {
				if s := p.Buffers[r.Buffer].Holds; s >= 0 {
					reruns[s] = append(reruns[s], again{int32(pc), ir.OpName(x.Op), from(x.Origin), x.Phase, x.Picos})
				}
			}
		case *Copy:
			s := p.Buffers[x.Dst.Buffer].Holds
			switch {
			case s < 0:
			case x.Kind == CopySwapOut:
				left[s] = int32(pc)
			case x.Kind == CopySwapIn:
				windows[s] = append(windows[s], window{left[s], int32(pc), next[pc], x.Src.Type.Bytes()})
				left[s] = -1
			}
		}
	}
	for s, pc := range left {
		if pc >= 0 {
			windows[s] = append(windows[s], window{pc, -1, -1, p.Symbols[s].Bytes})
		}
	}
	return reruns, windows
}

// where is a decision's places for reading.
func where(reruns []again, windows []window) string {
	var parts []string
	for _, a := range reruns {
		parts = append(parts, fmt.Sprintf("pc %d (%s, %s)", a.PC, a.Op, a.Phase))
	}
	for _, w := range windows {
		switch {
		case w.In < 0:
			parts = append(parts, fmt.Sprintf("away from pc %d on", w.Out))
		case w.Out < 0:
			parts = append(parts, fmt.Sprintf("away until pc %d", w.In))
		default:
			parts = append(parts, fmt.Sprintf("away pc %d to %d", w.Out, w.In))
		}
	}
	if len(parts) == 0 {
		return "-"
	}
	return strings.Join(parts, ", ")
}

// explainDecisions writes a line for each decision, and where bytes are dearest.
func (p *Plan) explainDecisions(w io.Writer) error {
	if len(p.Report.Decisions) > 0 {
		reruns, windows := p.absences()
		fmt.Fprintf(w, "\n# decisions\n")
		t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
		fmt.Fprintln(t, "value\tbytes\tis\tat\twhy")
		for _, d := range p.Report.Decisions {
			fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\n", plain(p.symbolName(d.Symbol)), FormatBytes(p.Symbols[d.Symbol].Bytes), plain(d.What), where(reruns[d.Symbol], windows[d.Symbol]), plain(d.Why))
		}
		if err := t.Flush(); err != nil {
			return err
		}
	}
	if s := p.bindingText(); s != "" {
		fmt.Fprintf(w, "\n# %s\n", s)
	}
	return nil
}

// bindingText says where bytes are dearest; "" where the budget does not bind.
func (p *Plan) bindingText() string {
	b := p.bindingOf()
	if b == nil {
		return ""
	}
	op := b.Op
	if b.From != "" {
		op += ", " + plain(b.From)
	}
	return fmt.Sprintf("bytes are dearest at instruction %d of program step (%s), where %s live: %s a GiB there, %s a GiB of budget", b.At, op, FormatBytes(b.Live),
		FormatPicos(p.Report.BindingPicosPerGiB), FormatPicos(p.Report.BudgetPicosPerGiB))
}

// jsonBinding is where device bytes are dearest. Seconds are those of a GiB there alone and of a GiB of the budget, by the linear bound.
type jsonBinding struct {
	Program       string  `json:"program"`
	At            int64   `json:"at"`
	Op            string  `json:"op"`
	From          string  `json:"from"`
	Phase         string  `json:"phase"`
	Live          int64   `json:"live_bytes"`
	SecondsPerGiB float64 `json:"seconds_per_gib"`
	BudgetPerGiB  float64 `json:"budget_seconds_per_gib"`
}

func (p *Plan) bindingOf() *jsonBinding {
	r := &p.Report
	step, at := p.Program("step")
	if step == nil || r.BindingPicosPerGiB <= 0 {
		return nil
	}
	b := &jsonBinding{Program: step.Name, At: r.BindingAt, SecondsPerGiB: seconds(r.BindingPicosPerGiB), BudgetPerGiB: seconds(r.BudgetPicosPerGiB)}
	if live := LiveBytes(p, at)[ir.Device]; live != nil {
		b.Live = live[r.BindingAt]
	}
	if x, ok := step.Instrs[r.BindingAt].(*Exec); ok {
		b.Op, b.From, b.Phase = ir.OpName(x.Op), from(x.Origin), x.Phase.String()
	}
	return b
}

type jsonDecision struct {
	Value      string       `json:"value"`
	Bytes      int64        `json:"bytes"`
	What       string       `json:"what"`
	At         int32        `json:"at"`
	Why        string       `json:"why"`
	Recomputes []jsonAgain  `json:"recomputes,omitempty"`
	Windows    []jsonWindow `json:"windows,omitempty"`
}

type jsonAgain struct {
	At      int32   `json:"at"`
	Op      string  `json:"op"`
	From    string  `json:"from"`
	Phase   string  `json:"phase"`
	Seconds float64 `json:"seconds"`
}

type jsonWindow struct {
	Out   int32 `json:"out"` // -1: no copy out, the host has the content
	In    int32 `json:"in"`  // -1: it comes back in the next step
	Use   int32 `json:"use"`
	Bytes int64 `json:"bytes"`
}

func (p *Plan) jsonDecisions() []jsonDecision {
	list := []jsonDecision{}
	reruns, windows := p.absences()
	for _, x := range p.Report.Decisions {
		d := jsonDecision{Value: p.symbolName(x.Symbol), Bytes: p.Symbols[x.Symbol].Bytes, What: x.What, At: x.At, Why: x.Why}
		for _, a := range reruns[x.Symbol] {
			d.Recomputes = append(d.Recomputes, jsonAgain{a.PC, a.Op, a.From, a.Phase.String(), seconds(a.Picos)})
		}
		for _, w := range windows[x.Symbol] {
			d.Windows = append(d.Windows, jsonWindow(w))
		}
		list = append(list, d)
	}
	return list
}
