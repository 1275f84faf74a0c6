package passes

import (
	"bytes"
	"cmp"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"aitk/ir"
	"aitk/ir/op"
	"aitk/passes/cost"
	"aitk/passes/memory"
	"aitk/runtime/ref"
)

// A golden of testdata/residence is a program and a memory decision made by hand, and the program with the decision written into it. Ops are
// named by their first output, a value stands for its storage:
//
//	recompute %4 before %8
//	swap %3 after %4 free %6 before %7 use %8 write      (free may be end, after may be start; write and wraps as in memory.Swap)
//	home %1                                              (the parameter's home is the host)
//
// The simulator must find the decision legal, and both programs must give the same numbers. `-update` writes out.ir anew.
func TestResidence(t *testing.T) {
	files, err := filepath.Glob("testdata/residence/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no goldens: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			sections := readGolden(t, file)
			g := parseGolden(t, sections["in.ir"])
			before := g.Clone()
			p := newProblem(g, cost.CPUGeneric(), nil)
			p.Recompute, p.BudgetBytes = true, -1
			p.Lanes = &memory.Lanes{D2HBytesPerSec: 1e9, H2DBytesPerSec: 1e9, HostBudgetBytes: -1}
			sol := parseSolution(t, p, sections["solution"])
			if _, err := memory.Simulate(&p.Problem, sol); err != nil {
				t.Fatalf("the solution is not legal: %v", err)
			}
			writeResidence(p, sol)
			g.Renumber()
			if err := ir.Verify(g); err != nil {
				t.Error(err)
			}
			compareGolden(t, file, "out.ir", g.String(), sections["out.ir"])
			sameNumbers(t, before, g)
		})
	}
}

// readGolden is the sections of a text archive; what stands before the first one says what the case is about.
func readGolden(t *testing.T, file string) map[string]string {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	sections := map[string]string{}
	for _, s := range parseArchive(data) {
		sections[s.name] = s.text
	}
	return sections
}

// updating tells whether the test binary was called with -update, which golden_test.go defines for the whole folder.
func updating() bool { return flag.Lookup("update").Value.String() == "true" }

// compareGolden holds the last section of a golden against what came out, or writes it.
func compareGolden(t *testing.T, file, name, got, want string) {
	t.Helper()
	if got == want {
		return
	}
	if !updating() {
		t.Errorf("got\n%s\nwant\n%s", got, want)
		return
	}
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	head, _, _ := bytes.Cut(data, []byte("-- "+name+" --\n"))
	if err := os.WriteFile(file, fmt.Appendf(head, "-- %s --\n%s", name, got), 0o644); err != nil {
		t.Fatal(err)
	}
}

func parseGolden(t *testing.T, text string) *ir.Graph {
	t.Helper()
	g, err := ir.Parse(text, op.Vocabulary())
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// parseSolution reads a decision and sorts it as the solver does.
func parseSolution(t *testing.T, p *problem, text string) *memory.Solution {
	t.Helper()
	storage := func(name string) int32 {
		id, err := strconv.Atoi(strings.TrimPrefix(name, "%"))
		if err != nil || id < 0 || id >= len(p.st.Of) {
			t.Fatalf("no value %q", name)
		}
		return p.st.Of[id]
	}
	stage := func(name string) int32 {
		switch name {
		case "start":
			return -1
		case "end":
			return int32(len(p.ops))
		}
		return p.Values[storage(name)].Def
	}
	sol := &memory.Solution{HostHome: make([]bool, len(p.Values))}
	for line := range strings.Lines(text) {
		w := strings.Fields(line)
		switch {
		case len(w) == 4 && w[0] == "recompute":
			sol.Recomputes = append(sol.Recomputes, memory.Recompute{Op: stage(w[1]), Stage: stage(w[3])})
		case len(w) >= 10 && w[0] == "swap":
			sol.Swaps = append(sol.Swaps, memory.Swap{Value: storage(w[1]), After: stage(w[3]), Free: stage(w[5]), Before: stage(w[7]), Use: stage(w[9]),
				Write: slices.Contains(w[10:], "write"), Wraps: slices.Contains(w[10:], "wraps")})
		case len(w) == 2 && w[0] == "home":
			sol.HostHome[storage(w[1])] = true
		default:
			t.Fatalf("not a decision: %q", line)
		}
	}
	slices.SortFunc(sol.Recomputes, func(a, b memory.Recompute) int { return cmp.Or(cmp.Compare(a.Stage, b.Stage), cmp.Compare(a.Op, b.Op)) })
	slices.SortFunc(sol.Swaps, func(a, b memory.Swap) int {
		return cmp.Or(cmp.Compare(a.After, b.After), cmp.Compare(a.Value, b.Value))
	})
	return sol
}

// sameNumbers evaluates both programs on the same content. Nothing that the back half does to a program may change a bit.
func sameNumbers(t *testing.T, before, after *ir.Graph) {
	t.Helper()
	run := func(g *ir.Graph) map[string]ir.Tensor {
		inputs, params := map[string]ir.Tensor{}, map[string]ir.Tensor{}
		content := func(v *ir.Value, name string) ir.Tensor {
			x := ir.NewTensor(v.Type)
			for i := range x.F {
				x.F[i] = float64(i%7)/4 - float64(len(name)%3)
			}
			return x
		}
		for _, v := range g.Inputs {
			inputs[v.Name] = content(v, v.Name)
		}
		for _, p := range g.Params {
			switch p.Role {
			case ir.Shadow:
				params[p.Name] = content(p.Value, p.Of)
			case ir.Literal:
				params[p.Name] = must(ir.DecodeTensor(p.Type, p.Init.Literal))
			default:
				params[p.Name] = content(p.Value, p.Name)
			}
		}
		results, changed, err := ref.Run(g, inputs, params)
		if err != nil {
			t.Fatal(err)
		}
		for name, x := range changed {
			results["parameter "+name] = x
		}
		return results
	}
	want, got := run(before), run(after)
	for name, x := range want {
		if !slices.Equal(x.F, got[name].F) || !slices.Equal(x.I, got[name].I) {
			t.Errorf("%s differs", name)
		}
	}
}
