package passes

import (
	"fmt"
	"strings"
	"testing"

	"aitk/ir"
	"aitk/ir/plan"
)

// TestHazards emits instructions given as "lane, accesses" and shows the list with its waits. An access is r or w and a range of device bytes, or
// of the pinned arena behind a p.
func TestHazards(t *testing.T) {
	for _, c := range []struct{ name, emit, want string }{
		{"one lane needs no wait", `
			compute w0-8
			compute r0-8 w8-16
			compute w0-8`, `
			0 compute
			1 compute
			2 compute`},
		{"a read waits for the write", `
			h2d w0-8
			compute r0-8`, `
			0 h2d
			1 compute waits on 0
			2 compute`},
		{"a write waits for the read", `
			d2h r0-8 pw0-8
			compute w0-8`, `
			0 d2h
			1 compute waits on 0
			2 compute`},
		{"a write waits for the write", `
			h2d w0-8
			compute w0-8`, `
			0 h2d
			1 compute waits on 0
			2 compute`},
		{"two reads go side by side", `
			d2h r0-8 pw0-8
			compute r0-8 w8-16`, `
			0 d2h
			1 compute`},
		{"bytes that touch do not overlap, spaces neither", `
			d2h r0-8 pw16-24
			compute w8-16
			compute w16-24`, `
			0 d2h
			1 compute
			2 compute`},
		{"one byte in common is enough", `
			d2h r0-8 pw0-8
			compute w7-16`, `
			0 d2h
			1 compute waits on 0
			2 compute`},
		{"no bytes, no wait", `
			h2d w0-8
			compute r4-4`, `
			0 h2d
			1 compute`},
		{"a range over several stretches waits for the last of each lane", `
			h2d w0-8
			d2h r8-16 pw0-8
			h2d w24-32
			compute w0-40`, `
			0 h2d
			1 d2h
			2 h2d
			3 compute waits on 2
			4 compute waits on 1
			5 compute`},
		{"a wait says what its lane had waited for", `
			h2d w0-8
			compute r0-8 w8-16
			d2h r8-16 pw0-8
			d2h r0-8 pw8-16`, `
			0 h2d
			1 compute waits on 0
			2 compute
			3 d2h waits on 2
			4 d2h
			5 d2h`},
		{"a wait is not repeated", `
			h2d w0-8
			compute r0-4
			compute r4-8`, `
			0 h2d
			1 compute waits on 0
			2 compute
			3 compute`},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := emitted(t, c.emit)
			if got := describeInstrs(h.instrs); got != dedent(c.want) {
				t.Errorf("got\n%swant\n%s", got, dedent(c.want))
			}
		})
	}
}

// A program that ends has joined all lanes; one that may follow itself begins with waits for the run before, in the numbers of the new list.
func TestHazardsJoinAndCycle(t *testing.T) {
	h := emitted(t, `
		h2d w0-8
		compute r0-8 w8-16
		d2h r8-16 pw0-8`)
	h.join()
	h.join() // all is known
	want := dedent(`
		0 h2d
		1 compute waits on 0
		2 compute
		3 d2h waits on 2
		4 d2h
		5 compute waits on 4`)
	if got := describeInstrs(h.instrs); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	moved := h.cycle()
	want = dedent(`
		0 h2d waits on 6 of the run before
		1 h2d waits on 8 of the run before
		2 d2h waits on 6 of the run before
		3 d2h waits on 4 of the run before
		4 h2d
		5 compute waits on 4
		6 compute
		7 d2h waits on 6
		8 d2h
		9 compute waits on 8`)
	if got := describeInstrs(h.instrs); got != want || moved != 4 {
		t.Errorf("moved by %d, got\n%swant\n%s", moved, got, want)
	}
}

func emitted(t *testing.T, text string) *hazards {
	t.Helper()
	h := newHazards()
	for line := range strings.Lines(dedent(text)) {
		w := strings.Fields(line)
		if len(w) == 0 {
			continue
		}
		var touches []access
		for _, x := range w[1:] {
			a := access{space: ir.Device}
			if rest, ok := strings.CutPrefix(x, "p"); ok {
				a.space, x = ir.Pinned, rest
			}
			a.write = x[0] == 'w'
			if _, err := fmt.Sscanf(x[1:], "%d-%d", &a.start, &a.end); err != nil {
				t.Fatalf("access %q: %v", x, err)
			}
			touches = append(touches, a)
		}
		var in plan.Instr
		switch w[0] {
		case "compute":
			in = &plan.Exec{Lane: plan.Compute}
		case "h2d":
			in = &plan.Copy{Lane: plan.H2D}
		case "d2h":
			in = &plan.Copy{Lane: plan.D2H}
		default:
			t.Fatalf("no lane %q", w[0])
		}
		if pc := h.emit(in, touches); h.instrs[pc] != in {
			t.Errorf("emit gave number %d, where another instruction stands", pc)
		}
	}
	return h
}

func describeInstrs(list []plan.Instr) string {
	var b strings.Builder
	for pc, in := range list {
		fmt.Fprintf(&b, "%d %v", pc, plan.LaneOf(in))
		if w, ok := in.(*plan.Wait); ok {
			fmt.Fprintf(&b, " waits on %d", w.On)
			if w.Back == 1 {
				b.WriteString(" of the run before")
			}
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// dedent is text without the indentation of its lines and without empty ones.
func dedent(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" {
			b.WriteString(line + "\n")
		}
	}
	return b.String()
}
