package importer

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	load "aitk/internal/weights"
	"aitk/ir"
)

// newValue is what the tests train every parameter to: numbers that differ between parameters and elements.
func newValue(name string, t ir.Type, dst []byte) {
	x := ir.NewTensor(t)
	seed := 0.0
	for _, c := range name {
		seed = math.Mod(seed*31+float64(c), 1009)
	}
	for i := range x.F {
		x.F[i] = math.Sin(float64(i)*0.7+seed)/4 + 0.5
	}
	x.Round()
	copy(dst, x.Encode())
}

// structure is a graph without where its tensors lie and its nodes come from.
func structure(g *ir.Graph) string {
	s := regexp.MustCompile(`(?m) ; .*$`).ReplaceAllString(g.String(), "")
	s = regexp.MustCompile(` init=.*?( aliases=.*)?$`).ReplaceAllString(s, "")
	var lines []string
	for l := range strings.Lines(s) {
		if strings.HasPrefix(l, "graph @") {
			continue
		}
		if strings.Contains(l, " = param ") {
			l, _, _ = strings.Cut(l, " init=")
			l, _, _ = strings.Cut(l, " aliases=")
			l, _, _ = strings.Cut(l, " reason=")
		}
		lines = append(lines, strings.TrimRight(l, " \n"))
	}
	return strings.Join(lines, "\n")
}

func importAnyhow(t *testing.T, path string) *Model {
	t.Helper()
	seen, err := Inspect(path)
	if err != nil {
		t.Fatal(err)
	}
	dims := map[string]int64{}
	for _, d := range seen.Dims {
		dims[d.Name] = 2
	}
	m, err := Import(path, Options{Dims: dims, Eval: true})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// TestExport writes models with new weights and reads them again: the same graph under the same names, and the new weights.
func TestExport(t *testing.T) {
	files, _ := filepath.Glob(filepath.Join("..", "..", "shared", "models", "small", "*", "*.onnx"))
	more, _ := filepath.Glob(filepath.Join("..", "testdata", "onnx", "lint", "ts_*.onnx"))
	for _, path := range append(files, more...) {
		base := filepath.Base(filepath.Dir(path)) + "/" + filepath.Base(path)
		t.Run(base, func(t *testing.T) {
			before := importAnyhow(t, path)
			limits := []int64{0, 1} // in one file, and beside it
			if st, err := os.Stat(path); err != nil || st.Size() > 256<<10 {
				limits = limits[1:]
			}
			for _, limit := range limits {
				out := filepath.Join(t.TempDir(), "out.onnx")
				trained := map[string]bool{}
				err := Export(path, out, ExportOptions{ExternalBytes: limit, Value: func(name string, typ ir.Type, dst []byte) (bool, error) {
					p := before.Graph.Param(name)
					if p == nil || p.Role == ir.Buffer || !typ.Equal(p.Type) {
						return false, nil
					}
					trained[name] = true
					newValue(name, typ, dst)
					return true, nil
				}})
				if err != nil {
					t.Fatal(err)
				}
				after := importAnyhow(t, out)
				a, b := structure(before.Graph), structure(after.Graph)
				if base == "lint/ts_false_ties.onnx" { // weights that are Identity nodes are turned there, others where they are read first
					a, b = unordered(a), unordered(b)
				}
				if a != b {
					t.Fatalf("the graph is another one:\n%s", firstDifference(a, b))
				}
				r := load.NewReader()
				defer r.Close()
				for _, p := range after.Graph.Params {
					raw, err := r.Bytes(p.Name, p.Type, &p.Init)
					if err != nil {
						t.Fatal(err)
					}
					want := make([]byte, len(raw))
					if trained[p.Name] {
						newValue(p.Name, p.Type, want)
					} else if want, err = r.Bytes("old "+p.Name, p.Type, &before.Graph.Param(p.Name).Init); err != nil {
						t.Fatal(err)
					}
					if !bytes.Equal(raw, want) {
						t.Errorf("parameter %q is not what was written", p.Name)
					}
				}
				if _, err := os.Stat(out + dataSuffix); (err == nil) != (limit == 1) {
					t.Errorf("limit %d: data file: %v", limit, err)
				}
			}
		})
	}
	model := filepath.Join("..", "testdata", "onnx", "lint", "ts_clean.onnx")
	if err := Export(model, model, ExportOptions{}); err == nil || ir.KindOf(err) != ir.Usage {
		t.Errorf("writing over the model that is read: %v", err)
	}
}

// unordered is lines without numbers and names of values, in alphabetical order, without those that turn a weight.
func unordered(s string) string {
	lines := slices.DeleteFunc(strings.Split(regexp.MustCompile(`%\d+( "[^"]*")?`).ReplaceAllString(s, "%"), "\n"), func(l string) bool { return strings.Contains(l, "Transpose{perm=[1,0]}") })
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

func firstDifference(a, b string) string {
	x, y := strings.Split(a, "\n"), strings.Split(b, "\n")
	for i := range min(len(x), len(y)) {
		if x[i] != y[i] {
			return fmt.Sprintf("line %d\n%s\n%s", i, x[i], y[i])
		}
	}
	return fmt.Sprintf("%d and %d lines", len(x), len(y))
}
