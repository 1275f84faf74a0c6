package passes

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"aitk/ir"
	"aitk/ir/op"
	"aitk/runtime/ref"
)

// eachGolden runs a test for every text archive of a folder below testdata, with its sections by name. What stands before the first section says
// what the case is about.
func eachGolden(t *testing.T, folder string, test func(t *testing.T, file string, sections map[string]string)) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("testdata", folder, "*.txtar"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no goldens: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			sections := map[string]string{}
			for _, s := range parseArchive(data) {
				sections[s.name] = s.text
			}
			test(t, file, sections)
		})
	}
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
