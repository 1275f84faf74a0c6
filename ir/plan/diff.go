package plan

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"aitk/ir"
)

// Diff is what differs between two plans. Lists are empty where nothing does.
type Diff struct {
	Schema  string       `json:"schema"` // aitk.diff/1
	Same    bool         `json:"same"`   // nothing below differs
	Figures []DiffFigure `json:"figures"`
	Texts   []DiffText   `json:"settings"` // model, device, dimensions, settings
	Tensors []DiffTensor `json:"tensors"`  // of program step, by the change in bytes
	Ops     []DiffOp     `json:"ops"`      // of program step, by the change in seconds
}

// DiffFigure is a number of the reports: bytes, seconds or a count, as its name says.
type DiffFigure struct {
	Name   string  `json:"name"`
	Before float64 `json:"before"`
	After  float64 `json:"after"`
}

// DiffText is a setting.
type DiffText struct {
	Name   string `json:"name"`
	Before string `json:"before"`
	After  string `json:"after"`
}

// DiffTensor is a content of program step; in a plan that has none of the name its bytes are 0 and its fate is empty.
type DiffTensor struct {
	Name        string `json:"name"`
	BytesBefore int64  `json:"bytes_before"`
	BytesAfter  int64  `json:"bytes_after"`
	Before      string `json:"before"` // kept, recomputed, swapped
	After       string `json:"after"`
}

// DiffOp is the runs of an op of program step.
type DiffOp struct {
	Name          string  `json:"name"`
	RunsBefore    int64   `json:"runs_before"`
	RunsAfter     int64   `json:"runs_after"`
	SecondsBefore float64 `json:"seconds_before"`
	SecondsAfter  float64 `json:"seconds_after"`
}

// Compare finds what differs between plans a and b. Tensors and ops are matched by name, those of one name in their order.
func Compare(a, b *Plan) *Diff {
	d := &Diff{Schema: "aitk.diff/1", Figures: []DiffFigure{}, Texts: []DiffText{}, Tensors: []DiffTensor{}, Ops: []DiffOp{}}
	d.figures(a, b)
	d.texts(a, b)
	d.tensors(a, b)
	d.ops(a, b)
	d.Same = len(d.Figures)+len(d.Texts)+len(d.Tensors)+len(d.Ops) == 0
	return d
}

func (d *Diff) figures(a, b *Plan) {
	add := func(name string, x, y float64) {
		if x != y {
			d.Figures = append(d.Figures, DiffFigure{name, x, y})
		}
	}
	for s := range ir.NumSpaces {
		if s == ir.Disk {
			continue
		}
		bytes := func(p *Plan) float64 {
			if x := p.Arena(s); x != nil {
				return float64(x.Bytes)
			}
			return 0
		}
		add(s.String()+"_arena_bytes", bytes(a), bytes(b))
		add(s.String()+"_peak_bytes", float64(PeakOf(a, s).Bytes), float64(PeakOf(b, s).Bytes))
	}
	x, y := &a.Report, &b.Report
	count := func(name string, before, after int64) { add(name, float64(before), float64(after)) }
	count("budget_bytes", x.BudgetBytes, y.BudgetBytes)
	count("bound_bytes", x.BoundBytes, y.BoundBytes)
	count("minimum_budget_bytes", x.MinimumBudgetBytes, y.MinimumBudgetBytes)
	count("unlimited_arena_bytes", x.UnlimitedArenaBytes, y.UnlimitedArenaBytes)
	count("saved_bytes", x.SavedBytes, y.SavedBytes)
	count("swap_out_bytes", x.SwapOutBytes, y.SwapOutBytes)
	count("swap_in_bytes", x.SwapInBytes, y.SwapInBytes)
	count("quantized_saved_bytes", x.QuantizedSavedBytes, y.QuantizedSavedBytes)
	count("recomputed_nodes", x.RecomputedNodes, y.RecomputedNodes)
	add("step_seconds", seconds(x.StepPicos), seconds(y.StepPicos))
	add("unlimited_step_seconds", seconds(x.UnlimitedStepPicos), seconds(y.UnlimitedStepPicos))
	add("recomputed_seconds", seconds(x.RecomputedPicos), seconds(y.RecomputedPicos))
	add("stall_seconds", seconds(x.StallPicos), seconds(y.StallPicos))
}

func (d *Diff) texts(a, b *Plan) {
	add := func(name, x, y string) {
		if x != y {
			d.Texts = append(d.Texts, DiffText{name, x, y})
		}
	}
	add("model", a.Model, b.Model)
	add("graph_sha256", a.GraphSum, b.GraphSum)
	add("device", a.Profile.Device, b.Profile.Device)
	add("profile", a.Profile.Name, b.Profile.Name)
	add("profile_sha256", a.Profile.SHA256, b.Profile.SHA256)
	settings := func(p *Plan) (names []string, text map[string]string) {
		text = map[string]string{}
		put := func(name, value string) {
			if old, twice := text[name]; twice {
				text[name] = old + " " + value
				return
			}
			text[name] = value
			names = append(names, name)
		}
		for _, x := range p.Dims {
			put("dim "+x.Name, fmt.Sprint(x.Size))
		}
		for _, x := range p.Options {
			put(x.Key, x.Value)
		}
		return names, text
	}
	before, x := settings(a)
	after, y := settings(b)
	for _, name := range before {
		add(name, x[name], y[name])
	}
	for _, name := range after {
		if _, there := x[name]; !there {
			add(name, "", y[name])
		}
	}
}

// tensorsOf lists the contents of program step with their fates, by name and number among those of one name.
func tensorsOf(p *Plan) (names []string, of map[string]DiffTensor) {
	of = map[string]DiffTensor{}
	seen := map[string]int{}
	_, prog := p.Program("step")
	what := make([]string, len(p.Symbols))
	for _, x := range p.Report.Decisions {
		what[x.Symbol] = x.What
	}
	for i := range p.Symbols {
		s := &p.Symbols[i]
		if s.Program != prog && s.Program != -1 || prog < 0 {
			continue
		}
		name := p.symbolName(SymbolID(i))
		if seen[name]++; seen[name] > 1 {
			name = fmt.Sprintf("%s (%d)", name, seen[name])
		}
		names = append(names, name)
		of[name] = DiffTensor{Name: name, BytesBefore: s.Bytes, Before: cmp.Or(what[i], "kept")}
	}
	return names, of
}

func (d *Diff) tensors(a, b *Plan) {
	before, x := tensorsOf(a)
	after, y := tensorsOf(b)
	for _, name := range before {
		t, u := x[name], y[name]
		t.BytesAfter, t.After = u.BytesBefore, u.Before
		if t.BytesBefore != t.BytesAfter || t.Before != t.After {
			d.Tensors = append(d.Tensors, t)
		}
	}
	for _, name := range after {
		if _, there := x[name]; !there {
			u := y[name]
			d.Tensors = append(d.Tensors, DiffTensor{Name: name, BytesAfter: u.BytesBefore, After: u.Before})
		}
	}
	slices.SortStableFunc(d.Tensors, func(p, q DiffTensor) int {
		return cmp.Compare(max(q.BytesBefore, q.BytesAfter), max(p.BytesBefore, p.BytesAfter))
	})
}

// opsOf adds up the runs of each op of program step, by its place in the model.
func opsOf(p *Plan) (names []string, of map[string]DiffOp) {
	of = map[string]DiffOp{}
	step, _ := p.Program("step")
	if step == nil {
		return nil, of
	}
	for _, i := range step.Instrs {
		x, ok := i.(*Exec)
		if !ok {
			continue
		}
		name := strings.TrimSpace(ir.OpName(x.Op) + " " + from(x.Origin))
		o, there := of[name]
		if !there {
			names = append(names, name)
		}
		o.Name, o.RunsBefore, o.SecondsBefore = name, o.RunsBefore+1, o.SecondsBefore+seconds(x.Picos)
		of[name] = o
	}
	return names, of
}

func (d *Diff) ops(a, b *Plan) {
	before, x := opsOf(a)
	after, y := opsOf(b)
	for _, name := range before {
		o, u := x[name], y[name]
		o.RunsAfter, o.SecondsAfter = u.RunsBefore, u.SecondsBefore
		if o.RunsBefore != o.RunsAfter || o.SecondsBefore != o.SecondsAfter {
			d.Ops = append(d.Ops, o)
		}
	}
	for _, name := range after {
		if _, there := x[name]; !there {
			u := y[name]
			d.Ops = append(d.Ops, DiffOp{Name: name, RunsAfter: u.RunsBefore, SecondsAfter: u.SecondsBefore})
		}
	}
	change := func(o DiffOp) float64 { return max(o.SecondsAfter-o.SecondsBefore, o.SecondsBefore-o.SecondsAfter) }
	slices.SortStableFunc(d.Ops, func(p, q DiffOp) int { return cmp.Compare(change(q), change(p)) })
}

// mostDiffs is how many tensors and ops WriteDiff lists; all are in the JSON.
const mostDiffs = 40

// WriteDiff writes a diff of the plans of two files for reading.
func WriteDiff(w io.Writer, d *Diff, before, after string) error {
	if d.Same {
		_, err := fmt.Fprintf(w, "%s and %s run the same: no figure, setting, tensor or op differs\n", before, after)
		return err
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "\t%s\t%s\tchange\n", before, after)
	number := func(name string, x float64) string {
		switch {
		case strings.HasSuffix(name, "_seconds"):
			return FormatPicos(int64(x*1e12 + 0.5))
		case name == "budget_bytes" && x < 0:
			return "none"
		}
		return fmt.Sprintf("%.0f", x)
	}
	for _, f := range d.Figures {
		change := "-"
		if f.Before > 0 && f.After >= 0 {
			change = fmt.Sprintf("%+.2f %%", 100*(f.After/f.Before-1))
		}
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\n", f.Name, number(f.Name, f.Before), number(f.Name, f.After), change)
	}
	for _, x := range d.Texts {
		fmt.Fprintf(t, "%s\t%s\t%s\t\n", plain(x.Name), cmp.Or(plain(short(x.Before, 40)), "-"), cmp.Or(plain(short(x.After, 40)), "-"))
	}
	for _, x := range d.Tensors[:min(len(d.Tensors), mostDiffs)] {
		side := func(bytes int64, what string) string {
			if what == "" {
				return "-"
			}
			return fmt.Sprintf("%s, %d B", plain(what), bytes)
		}
		fmt.Fprintf(t, "tensor %s\t%s\t%s\t%+d B\n", plain(short(x.Name, 50)), side(x.BytesBefore, x.Before), side(x.BytesAfter, x.After), x.BytesAfter-x.BytesBefore)
	}
	more(t, len(d.Tensors), "tensors")
	for _, x := range d.Ops[:min(len(d.Ops), mostDiffs)] {
		side := func(runs int64, s float64) string {
			return fmt.Sprintf("%d x, %s", runs, FormatPicos(int64(s*1e12+0.5)))
		}
		fmt.Fprintf(t, "op %s\t%s\t%s\t%+.3g s\n", plain(short(x.Name, 50)), side(x.RunsBefore, x.SecondsBefore), side(x.RunsAfter, x.SecondsAfter), x.SecondsAfter-x.SecondsBefore)
	}
	more(t, len(d.Ops), "ops")
	return t.Flush()
}

func more(w io.Writer, n int, what string) {
	if n > mostDiffs {
		fmt.Fprintf(w, "and %d more %s: --json has all\t\t\t\n", n-mostDiffs, what)
	}
}
