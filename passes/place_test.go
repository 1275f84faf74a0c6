package passes

import (
	"fmt"
	"strings"
	"testing"

	"aitk/ir"
	"aitk/passes/cost"
)

// A golden of testdata/place is one program or several, as the memory pass leaves them, and where everything lies: first the arenas, then the
// homes of parameters, then by program each storage with its seat, its bytes and the moments of the program during which it holds them.
func TestPlace(t *testing.T) {
	eachGolden(t, "place", func(t *testing.T, file string, sections map[string]string) {
		prof := cost.CPUGeneric()
		if name := strings.TrimSpace(sections["profile"]); name != "" {
			prof = must(cost.GPU(name))
		}
		var programs []*ir.Graph
		for _, name := range []string{"step.ir", "update.ir"} {
			if text := sections[name]; text != "" {
				programs = append(programs, parseGolden(t, text))
			}
		}
		p, err := place(programs, prof)
		if err != nil {
			t.Fatal(err)
		}
		compareGolden(t, file, "seats", describePlacement(p), sections["seats"])
	})
}

func describePlacement(p *placement) string {
	var b strings.Builder
	seat := func(i int32) string {
		s := &p.seats[i]
		return fmt.Sprintf("seat %d  %v [%d,%d)", i, s.space, s.offset, s.offset+s.bytes)
	}
	for space, r := range p.arenas {
		if r.ArenaBytes > 0 {
			fmt.Fprintf(&b, "%v arena of %d bytes\n", ir.Space(space), r.ArenaBytes)
		}
	}
	for _, q := range p.params {
		fmt.Fprintf(&b, "home of %s: %s\n", q.Name, seat(q.home))
	}
	for i, s := range p.staging {
		fmt.Fprintf(&b, "staging %d: %s\n", i, seat(s))
	}
	for _, s := range p.programs {
		fmt.Fprintf(&b, "program %s, %d nodes\n", s.g.Name, len(s.nodes))
		for i, x := range s.live.Storages.All {
			start, end := s.span(int32(i))
			fmt.Fprintf(&b, "  %%%-3d %s  moments [%d,%d)", x.Root.ID, seat(s.seat[i]), start, end)
			if s.handed[i] >= 0 {
				fmt.Fprintf(&b, ", written over by node %d", s.handed[i])
			}
			b.WriteByte('\n')
		}
		for i, at := range s.scratch {
			if at >= 0 {
				fmt.Fprintf(&b, "  scratch of node %d: %s\n", i, seat(at))
			}
		}
	}
	return b.String()
}

// What takes a seat that is not free is a bug of the pass before, and named: here a result is the old content of a parameter that the program
// overwrites, which keepOld would have copied.
func TestPlaceRefusesTwoInOneSeat(t *testing.T) {
	g := parseGolden(t, `graph @step
  %0 = param "w" trainable weight : f32[16]
  %1 = Exp %0
  update %0 %1
  result "old" %0
`)
	defer func() {
		if bug, ok := recover().(*ir.Bug); !ok || !strings.Contains(bug.Error(), "new content of parameter w takes its seat at moment 2 before it is free") {
			t.Errorf("got %v", bug)
		}
	}()
	_, _ = place([]*ir.Graph{g}, cost.CPUGeneric())
	t.Error("it was placed")
}
