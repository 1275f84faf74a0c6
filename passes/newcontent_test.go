package passes

import (
	"testing"

	"aitk/ir"
	"aitk/ir/plan/check"
	"aitk/passes/cost"
)

// A golden of testdata/copies is a scheduled program, and the same made fit to be taken apart: no constants, new contents of their own, no old
// content read behind the update or by one that cannot write over it. It has a plan that the checker takes.
func TestCopies(t *testing.T) {
	eachGolden(t, "copies", func(t *testing.T, file string, sections map[string]string) {
		g := parseGolden(t, sections["in.ir"])
		c := compiler{sources: []*ir.Graph{g}}
		h := c.copies()[0]
		h.Renumber()
		if err := ir.Verify(h); err != nil {
			t.Error(err)
		}
		if g.String() != parseGolden(t, sections["in.ir"]).String() {
			t.Error("the source was changed")
		}
		compareGolden(t, file, "out.ir", h.String(), sections["out.ir"])
		sameNumbers(t, g, h)
		prof := cost.CPUGeneric()
		placed, err := place([]*ir.Graph{h}, prof)
		if err != nil {
			t.Fatal(err)
		}
		if err := check.Check(lower(placed, prof)); err != nil {
			t.Error(err)
		}
	})
}
