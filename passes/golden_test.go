package passes_test

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"aitk/ir"
	"aitk/ir/op"
	"aitk/passes"
)

var update = flag.Bool("update", false, "write the goldens of testdata anew")

// A golden is a text archive: passes (names), options (key=value lines), in.ir, and what comes out: a section <program>.ir for each program,
// stats, notes where there are any, or error. Sections before in.ir are input; the rest is compared and written with -update.
func TestGoldens(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no goldens: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			head, want := splitGolden(data)
			r, err := passes.DecodeReproducer(data)
			if err != nil {
				t.Fatal(err)
			}
			got := runGolden(t, r)
			if *update {
				if err := os.WriteFile(file, append(head, got...), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if !bytes.Equal(got, want) {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
		})
	}
}

// splitGolden cuts behind the section in.ir.
func splitGolden(data []byte) (head, tail []byte) {
	at := bytes.Index(data, []byte("-- in.ir --\n"))
	if at < 0 {
		return data, nil
	}
	rest := data[at+len("-- in.ir --\n"):]
	end := bytes.Index(rest, []byte("\n-- "))
	if end < 0 {
		return data, nil
	}
	cut := at + len("-- in.ir --\n") + end + 1
	return data[:cut:cut], data[cut:]
}

func runGolden(t *testing.T, r *passes.Reproducer) []byte {
	t.Helper()
	g, err := ir.Parse(r.Graph, op.Vocabulary())
	if err != nil {
		t.Fatal(err)
	}
	ctx := &passes.Context{}
	ctx.Options.VerifyEach = true
	for _, s := range r.Options {
		if err := ctx.Options.Set(s.Key, s.Value); err != nil {
			return fmt.Appendf(nil, "-- error --\n%v\n", err)
		}
	}
	ctx.Assume(passes.HasLoss | passes.Split | passes.Canonical)
	var out bytes.Buffer
	if err := passes.Run(ctx, g, pick(t, r.Passes), passes.Order()); err != nil {
		fmt.Fprintf(&out, "-- error --\n%v\n", err)
		return out.Bytes()
	}
	for _, p := range ctx.Programs {
		fmt.Fprintf(&out, "-- %s.ir --\n%s", p.Name, p.String())
		reparsed, err := ir.Parse(p.String(), op.Vocabulary())
		if err != nil {
			t.Errorf("the output does not parse: %v", err)
		} else if reparsed.String() != p.String() {
			t.Error("print-parse-print differs")
		}
	}
	out.WriteString("-- stats --\n")
	for _, s := range ctx.Stats {
		fmt.Fprintf(&out, "%s %s: %d -> %d nodes, %d -> %d bytes", s.Pass, s.Program, s.NodesBefore, s.NodesAfter, s.BytesBefore, s.BytesAfter)
		for _, c := range s.Counts {
			fmt.Fprintf(&out, ", %s %d", c.What, c.N)
		}
		out.WriteByte('\n')
	}
	if len(ctx.Notes) > 0 {
		fmt.Fprintf(&out, "-- notes --\n%s\n", strings.Join(ctx.Notes, "\n"))
	}
	return out.Bytes()
}

// pick takes passes of the pipeline by name, in the order asked.
func pick(t *testing.T, names []string) []passes.Pass {
	t.Helper()
	var list []passes.Pass
	for _, name := range names {
		found := false
		for _, p := range passes.Pipeline() {
			if p.Name == name {
				list = append(list, p)
				found = true
			}
		}
		if !found {
			t.Fatalf("no pass is named %q", name)
		}
	}
	return list
}
