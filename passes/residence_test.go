package passes

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"aitk/ir"
	"aitk/passes/cost"
	"aitk/passes/memory"
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
	eachGolden(t, "residence", func(t *testing.T, file string, sections map[string]string) {
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
