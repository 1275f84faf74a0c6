package e2e

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"aitk/importer"
	"aitk/ir"
	"aitk/passes"
	"aitk/runtime/cpu"
)

// Every golden training of the collection, of every file of its model: losses, parameters and gradients as PyTorch has them, and the same bits at 60 % of the
// memory and at the minimum. The table says how much of each limit was used, and which goldens cannot be trained and why.
func TestCollection(t *testing.T) {
	var lines []string
	for _, r := range sampled(collection(t)) {
		line := ""
		t.Run(r.String(), func(t *testing.T) { line = trained(t, r) })
		if line == "" { // not asked for
			continue
		}
		lines = append(lines, fmt.Sprintf("%-62s %s", r, line))
	}
	t.Logf("parts of the limit that losses, parameters and gradients used\n%s", strings.Join(lines, "\n"))
}

// trained trains one golden and returns its line of the table.
func trained(t *testing.T, r run) string {
	g := readGolden(t, r.dir+"/"+r.golden)
	if why := g.unbuilt(); why != "" {
		return why
	}
	x := open(t, r)
	f := parity(t, x)
	law := "with the tag long"
	if thorough {
		law = smallLaw(t, r)
	}
	if x.tabled {
		law += "; tables of the exporter's, which PyTorch's run does not have"
	}
	if len(x.gone) > 0 {
		x.confessed(t)
		law += fmt.Sprintf("; %d parameters have another form in this file", len(x.gone))
	}
	if t.Failed() {
		law += " FAILED"
	}
	part := func(p float64) string {
		if p < 0 {
			return "   -"
		}
		return fmt.Sprintf("%4.2f", p)
	}
	return fmt.Sprintf("losses %s  parameters %s  gradients %s  budget law: %s", part(f.losses), part(f.params), part(f.grads), law)
}

// smallLaw holds the budget law at 60 % of the unlimited arena and at the minimum, by all means at once.
func smallLaw(t *testing.T, r run) string {
	t.Helper()
	r.plain = true
	x := open(t, r)
	steps := 2 * max(int(x.g.Accumulate), 1)
	o := passes.MemoryOptions{BudgetBytes: -1, HostBudgetBytes: -1, Recompute: true, Swap: true}
	free := x.compile(t, o)
	unlimited := free.Arena(ir.Device).Bytes
	want := digest(x.train(t, free, steps, cpu.Options{}))
	m := mode{"both", true, true}
	minimum := x.atMinimum(t, m, o)
	said := fmt.Sprintf("minimum %.1f %%", 100*float64(minimum)/float64(unlimited))
	for _, budget := range []int64{unlimited * 6 / 10, minimum} {
		if budget < minimum {
			said = "60 % is below the " + said
			continue
		}
		o.BudgetBytes = budget
		if got := digest(x.delayed(t, x.within(t, m, o), steps)); got != want {
			t.Errorf("%d bytes: other bits than the unlimited plan", budget)
		}
	}
	return said
}

// confessed checks that lint says of every parameter that the file does not hold what became of it.
func (x *trainer) confessed(t *testing.T) {
	t.Helper()
	findings, err := importer.Lint(filepath.Join(x.dir, x.file), importer.LintOptions{})
	check(t, err)
	for _, name := range x.gone {
		if !slices.ContainsFunc(findings, func(f importer.Finding) bool { return f.Parameter == name }) {
			t.Errorf("lint does not say what became of %q", name)
		}
	}
}
