package plan_test

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"aitk/ir"
	"aitk/ir/plan"
)

// hostile is a name that would break out of every format that does not quote it.
const hostile = "\"]; x [label=<b>&lt;\\N\\\n\r\x00\x1b[31m,=1+1\xff…"

func measured(n int, name string) *plan.Plan {
	p := chainPlan(n, name)
	plan.Measure(p)
	return p
}

func view(t *testing.T, write func(w *bytes.Buffer) error) string {
	t.Helper()
	var b bytes.Buffer
	if err := write(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func dot(t *testing.T, p *plan.Plan) string {
	return view(t, func(w *bytes.Buffer) error { return plan.WriteDOT(w, p) })
}
func explain(t *testing.T, p *plan.Plan) string {
	return view(t, func(w *bytes.Buffer) error { return plan.WriteExplain(w, p) })
}
func summary(t *testing.T, p *plan.Plan) string {
	return view(t, func(w *bytes.Buffer) error { return plan.WriteSummary(w, p) })
}
func csvOf(t *testing.T, p *plan.Plan) string {
	return view(t, func(w *bytes.Buffer) error { return plan.WriteCSV(w, p) })
}
func jsonOf(t *testing.T, p *plan.Plan) string {
	return view(t, func(w *bytes.Buffer) error { return plan.WriteJSON(w, p) })
}

func TestJSONFields(t *testing.T) {
	p := measured(6, "")
	p.Report.BoundBytes, p.Report.MinimumBudgetBytes, p.Report.OverheadBoundPPM, p.Report.RecomputedFLOPs = 11, 12, 20000, 13
	p.Report.StepPicos, p.Report.UnlimitedStepPicos = 105e10, 100e10
	var d map[string]any
	if err := json.Unmarshal([]byte(jsonOf(t, p)), &d); err != nil {
		t.Fatal(err)
	}
	for field, want := range map[string]any{
		"schema": "aitk.plan/1", "fits": true, "budget_bytes": float64(1 << 20), "bound_bytes": 11.0, "minimum_budget_bytes": 12.0,
		"step_seconds": 1.05, "unlimited_step_seconds": 1.0, "overhead_bound": 0.02, "naive_bytes": float64(p.Report.NaiveBytes), "saved_bytes": float64(p.Report.SavedBytes),
	} {
		if d[field] != want {
			t.Errorf("%s is %v, want %v", field, d[field], want)
		}
	}
	if x := d["overhead"].(float64); x < 0.0499 || x > 0.0501 {
		t.Errorf("overhead %v", x)
	}
	if a := d["arena_bytes"].(map[string]any); a["device"] != float64(p.Arenas[0].Bytes) || a["pinned"] != 4096.0 {
		t.Errorf("arena_bytes %v", a)
	}
	for field, keys := range map[string][]string{"recomputed": {"nodes", "flops", "seconds"}, "swapped": {"out_bytes", "in_bytes", "stall_seconds"},
		"quantized": {"weights", "saved_bytes"}, "peak_bytes": {"device", "pinned"}} {
		for _, k := range keys {
			if _, ok := d[field].(map[string]any)[k]; !ok {
				t.Errorf("%s has no %s", field, k)
			}
		}
	}
	for field, n := range map[string]int{"phases": 3, "buffers": len(p.Buffers), "programs": 2} {
		if len(d[field].([]any)) != n {
			t.Errorf("%s has %d entries, want %d", field, len(d[field].([]any)), n)
		}
	}
	phase := d["phases"].([]any)[0].(map[string]any)
	if phase["name"] != "forward" || len(phase["alive"].([]any)) == 0 || phase["peak_bytes"] == nil || phase["at"] == nil {
		t.Errorf("phase %v", phase)
	}
	p.Report.BudgetBytes = -1
	if !strings.Contains(jsonOf(t, p), `"budget_bytes": null`) {
		t.Error("no limit is not null")
	}
	if s := jsonOf(t, &plan.Plan{}); strings.Contains(s, ": null") && !strings.Contains(s, `"budget_bytes"`) {
		t.Error("an empty plan has empty lists")
	}
}

func TestExplainByHand(t *testing.T) {
	text := explain(t, measured(3, ""))
	// 0-2 forward; 3 computes a1 again from a0 (b7) and w1 (b2); 6 updates w2 in place at 0x2000.
	for _, line := range []string{
		"pc   lane     instr                        reads  writes         live      from",
		"000  compute  times                        b6 b0  b7@0x0004000   20.0 KiB  fwd0",
		"003  compute  times                        b7 b2  b10@0x0005000  28.0 KiB  fwd1, recompute of pc 1",
		"006  compute  update{rate=0.1,axes=[0,1]}  b4 b11  b13@0x0002000",
		"# peak ",
		"<- peak",
	} {
		if !strings.Contains(squeeze(text), squeeze(line)) {
			t.Errorf("no line %q in\n%s", line, text)
		}
	}
	swaps := explain(t, measured(6, ""))
	if !regexp.MustCompile(`d2h +swap-out b\d+ -> h\d+ +b\d+ +h\d+@0x0000000 .*a2, 4096 B, next use pc \d+`).MatchString(swaps) || !strings.Contains(swaps, "# decisions") {
		t.Errorf("no swap-out in\n%s", swaps)
	}
}

// squeeze takes the table's filling out.
func squeeze(s string) string { return regexp.MustCompile(` +`).ReplaceAllString(s, " ") }

func TestSummary(t *testing.T) {
	p := measured(6, "")
	p.Report.UnlimitedArenaBytes, p.Report.MinimumBudgetBytes = 2<<20, 1<<19
	text := summary(t, p)
	for _, word := range []string{"chain.onnx", "batch=32", "unlimited arena  2.0 MiB", "1.0 MiB (1048576 B), 50.0 % of unlimited; minimum 512.0 KiB (524288 B)", "pinned arena", "bound", "recomputed", "moved", "predicted step", "peak at instruction 10 of program step"} {
		if !strings.Contains(text, word) {
			t.Errorf("no %q in\n%s", word, text)
		}
	}
	p.Report.Fits = false
	p.Profile.Device = "cpu"
	if text = summary(t, p); !strings.Contains(text, "does not fit") || !strings.Contains(text, "same RAM") {
		t.Errorf("summary:\n%s", text)
	}
}

func TestCSV(t *testing.T) {
	p := measured(3, hostile)
	rows, err := csv.NewReader(strings.NewReader(csvOf(t, p))).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	spans := 0
	for _, b := range p.Buffers {
		spans += len(b.Live)
	}
	if len(rows) != spans+1 || rows[0][0] != "id" || rows[1][3] != "4096" || rows[1][5] != ir.Device.String() {
		t.Errorf("%d rows for %d spans: %v", len(rows), spans, rows[:2])
	}
}

func TestDOT(t *testing.T) {
	text := dot(t, measured(8, ""))
	for _, what := range []string{"digraph plan {", "subgraph cluster_0", "forward: peak", "backward: peak", `style=bold, constraint`, "bold,dashed", `headlabel="recompute 4096 B"`, `headlabel="4096 B"`, "PEAK", "@0x", "#d00000"} {
		if !strings.Contains(text, what) {
			t.Errorf("no %q", what)
		}
	}
	if strings.Count(text, "PEAK") != 1 {
		t.Error("the peak is not marked once")
	}
}

// TestHostileNames: a name is a name. Views of a plan with such names have the same structure as those of one with plain names.
func TestHostileNames(t *testing.T) {
	a, b := measured(8, ""), measured(8, hostile)
	b.Model = hostile
	b.Programs[0].Name = hostile
	for name, write := range map[string]func(*testing.T, *plan.Plan) string{"dot": dot, "explain": explain, "summary": summary, "json": jsonOf, "csv": csvOf} {
		plainText, text := write(t, a), write(t, b)
		if strings.ContainsAny(text, "\x00\x1b\r") {
			t.Errorf("%s: control characters", name)
		}
		if name == "json" {
			if !json.Valid([]byte(text)) {
				t.Error("json: not valid")
			}
		} else if x, y := strings.Count(plainText, "\n"), strings.Count(text, "\n"); x != y {
			t.Errorf("%s: %d lines, %d with hostile names", name, x, y)
		}
	}
	strip := regexp.MustCompile(`"(\\.|[^"\\])*"`)
	if x, y := strip.ReplaceAllString(dot(t, a), "S"), strip.ReplaceAllString(dot(t, b), "S"); x != y {
		t.Errorf("dot: structure differs:\n%s", y)
	}
}

func TestGraphvizReadsIt(t *testing.T) {
	tool, err := exec.LookPath("dot")
	if err != nil {
		t.Skip("Graphviz is not installed")
	}
	cmd := exec.Command(tool, "-Tplain")
	cmd.Stdin = strings.NewReader(dot(t, measured(8, hostile)))
	out, err := cmd.CombinedOutput()
	if err != nil || bytes.Contains(out, []byte("Warning")) {
		t.Fatalf("%v: %s", err, out)
	}
	// Time runs downwards: in "node i7 x y ..." y falls with the instruction, where it does not stand beside another.
	last := 1e9
	for _, m := range regexp.MustCompile(`(?m)^node i(\d+) \S+ (\S+)`).FindAllSubmatch(out, -1) {
		var y float64
		if err := json.Unmarshal(m[2], &y); err != nil {
			t.Fatal(err)
		}
		if y > last+1e-6 {
			t.Errorf("instruction %s stands above the one before it", m[1])
		}
		last = y
	}
}

func TestViewsAreDeterministic(t *testing.T) {
	for name, write := range map[string]func(*testing.T, *plan.Plan) string{"dot": dot, "explain": explain, "summary": summary, "json": jsonOf, "csv": csvOf} {
		first, second := write(t, measured(9, "")), write(t, measured(9, ""))
		if first != second {
			t.Errorf("%s differs from run to run", name)
		}
	}
	for _, p := range []*plan.Plan{{}, {Programs: []plan.Program{{Name: "step"}}}} {
		dot(t, p)
		explain(t, p)
		summary(t, p)
		jsonOf(t, p)
		csvOf(t, p)
	}
}
