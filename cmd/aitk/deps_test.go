package main

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// lattice is the import policy. "a, b < c, d" lets c and d import a and b, and all that those may import. A package that no line
// names may not exist. Do not relax a line to fix a build: move the code.
//
// What is absent on purpose: importer, passes and runtime never import one another; ir knows no op by name; the plan checker imports nothing of
// the passes that it judges; the solvers (passes/memory, passes/pack) know neither graph nor plan.
const lattice = `
	ir < internal/quant
	ir, internal/quant < ir/op
	ir/op < ir/gen
	ir, ir/plan/planpb < ir/plan
	ir/plan < ir/plan/check

	internal/regular < internal/safetensors, internal/weights, importer, runtime/train/data, runtime/train/checkpoint, cmd/aitk
	internal/durable < internal/safetensors, importer, runtime/train/checkpoint, cmd/aitk
	ir < internal/safetensors
	ir, internal/quant < internal/weights
	ir, internal/safetensors < internal/adapter
	ir, ir/op, importer/onnxpb, internal/safetensors, internal/weights < importer
	importer < importer/onnxgo

	ir < passes/cost
	passes/pack < passes/pack/packcsv, passes/pack/tracegen
	ir, ir/op, ir/plan, ir/plan/check, passes/cost, passes/memory, passes/pack < passes
	passes/memory < passes/memory/networks
	passes/memory/networks < cmd/aitk

	ir, ir/plan, ir/plan/check < runtime
	ir, ir/op < runtime/ref, runtime/gorgonia
	runtime, ir/op < runtime/cpu, runtime/cuda, runtime/null
	runtime/cpu < runtime/cuda
	runtime, runtime/ref, ir/gen < runtime/devicetest
	runtime, ir/op < runtime/calibrate
	ir, internal/safetensors < runtime/train/data, runtime/train/checkpoint, runtime/train/metrics
	ir/op < runtime/train/data
	runtime, internal/safetensors, internal/weights < runtime/train
	runtime/train/data, runtime/train/checkpoint, runtime/train/metrics < runtime/train

	internal/ptx < internal/fakecuda, internal/fakecuda/ptxc
	internal/fakecuda < internal/fakecuda/ptxc
	internal/ptx, internal/fakecuda, runtime/cuda/drv < runtime/cuda

	passes/memory < passes/memory/moccasin
	passes/memory/moccasin < cmd/aitk
	passes/memory/moccasin, passes/memory/networks, passes/pack/packcsv < internal/benchplan
	passes, passes/cost < passes/estimate
	internal/adapter, passes/estimate, runtime/calibrate < cmd/aitk, internal/e2e
	internal/e2e, internal/fakecuda < internal/e2e/oncuda
	passes/pack/packcsv < cmd/aitk
	importer, importer/onnxgo, passes, runtime/train, runtime/cpu, runtime/cuda, runtime/null < cmd/aitk, internal/e2e, internal/conformance
	runtime/ref, runtime/gorgonia, runtime/devicetest, ir/gen, ir/plan/check < cmd/aitk, internal/e2e, internal/conformance
	cmd/aitk/config < cmd/aitk
`

// testLattice is what tests may import besides.
const testLattice = `
	ir/op < ir
	runtime/ref < ir/op, ir/gen, importer, passes
	ir/plan/check, ir/op, ir/gen < ir/plan, ir/plan/check
	internal/safetensors, internal/weights, ir/gen < importer, passes, internal/quant
	passes/memory/moccasin < passes/memory
	passes/pack/packcsv, passes/pack/tracegen < passes/pack
	ir/gen, runtime/null, runtime/cpu, runtime/ref < runtime, runtime/train
	passes/memory/networks < passes/memory
	runtime/devicetest, runtime/ref, ir/gen < runtime/cpu, runtime/cuda, runtime/null
	importer, internal/weights, runtime/ref, ir/gen < runtime/gorgonia
	runtime/cpu < runtime/calibrate
	internal/fakecuda < cmd/aitk
`

// foreign is who may import which module, by the beginning of its packages' paths; all may import the standard library.
var foreign = map[string][]string{
	"google.golang.org/protobuf/":     {"importer/onnxpb", "importer", "importer/onnxgo", "internal/conformance", "ir/plan/planpb", "ir/plan"},
	"gorgonia.org/":                   {"runtime/gorgonia", "importer/onnxgo"},
	"gonum.org/":                      {"importer/onnxgo"},
	"github.com/owulveryck/onnx-go":   {"importer/onnxgo"},
	"gorgonia.org/cu":                 {"runtime/cuda", "runtime/cuda/drv"},
	"golang.org/x/sys/":               {"runtime", "runtime/cpu", "internal/e2e"},
	"golang.org/x/term":               {"cmd/aitk"},
	"github.com/rogpeppe/go-internal": {"cmd/aitk", "passes", "internal/e2e"},
	"go.yaml.in/yaml/":                {"cmd/aitk/config"},
}

const module = "aitk"

// root is the repository's folder, from this package's.
const root = "../.."

// relation is what a text of rules says: importer -> imported, closed transitively.
func relation(t *testing.T, text string) map[string]map[string]bool {
	may := map[string]map[string]bool{}
	add := func(p string) map[string]bool {
		if may[p] == nil {
			may[p] = map[string]bool{}
		}
		return may[p]
	}
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		below, above, ok := strings.Cut(line, "<")
		if !ok {
			t.Fatalf("rule without <: %s", line)
		}
		for _, b := range strings.Split(below, ",") {
			add(strings.TrimSpace(b))
			for _, a := range strings.Split(above, ",") {
				add(strings.TrimSpace(a))[strings.TrimSpace(b)] = true
			}
		}
	}
	return may
}

func closeTransitively(may map[string]map[string]bool) {
	for k := range may {
		for i := range may {
			if may[i][k] {
				for j := range may[k] {
					may[i][j] = true
				}
			}
		}
	}
}

// goFiles lists the repository's Go files, testdata and hidden folders aside, as slash paths from the root.
func goFiles(t *testing.T) []string {
	t.Helper()
	var files []string
	err := fs.WalkDir(os.DirFS(root), ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && path != "." && (d.Name() == "testdata" || strings.HasPrefix(d.Name(), ".") || strings.HasPrefix(d.Name(), "_")) {
			return fs.SkipDir
		}
		if !d.IsDir() && strings.HasSuffix(path, ".go") {
			files = append(files, path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(files) < 50 {
		t.Fatalf("found only %d Go files", len(files))
	}
	return files
}

func TestImports(t *testing.T) {
	may, mayTest := relation(t, lattice), relation(t, testLattice)
	closeTransitively(may)
	for p := range mayTest {
		if may[p] == nil {
			t.Errorf("the rules for tests name %s, which is not in the lattice", p)
		}
	}
	for p := range may {
		if may[p][p] {
			t.Errorf("the lattice lets %s import itself", p)
		}
	}
	for _, path := range goFiles(t) {
		dir := filepath.ToSlash(filepath.Dir(path))
		test := strings.HasSuffix(path, "_test.go")
		if may[dir] == nil {
			t.Errorf("%s: package %s stands in no rule of the lattice", path, dir)
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, path), nil, parser.ImportsOnly)
		if err != nil {
			t.Error(err)
			continue
		}
		for _, spec := range f.Imports {
			imported, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				t.Error(err)
				continue
			}
			p, ours := strings.CutPrefix(imported, module+"/")
			switch {
			case ours:
				// What a test may import brings along what that may import.
				ok := p == dir || may[dir][p]
				for q := range mayTest[dir] {
					ok = ok || test && (p == q || may[q][p])
				}
				if !ok {
					t.Errorf("%s imports %s, which the lattice does not allow", path, p)
				}
			case strings.Contains(strings.SplitN(imported, "/", 2)[0], "."):
				if !foreignAllowed(imported, dir) {
					t.Errorf("%s imports %s, which is not for package %s", path, imported, dir)
				}
			case imported == "C" && dir != "runtime/cuda/drv": // behind the build tag cuda
				t.Errorf("%s uses cgo", path)
			}
		}
	}
}

func foreignAllowed(imported, dir string) bool {
	for prefix, users := range foreign {
		if strings.HasPrefix(imported, prefix) && slices.Contains(users, dir) {
			return true
		}
	}
	return false
}

// TestLatticeHolds asks the relation itself for what must never become possible, however the rules are edited.
func TestLatticeHolds(t *testing.T) {
	may := relation(t, lattice)
	closeTransitively(may)
	under := func(p, top string) bool { return p == top || strings.HasPrefix(p, top+"/") }
	tops := []string{"importer", "passes", "runtime"}
	for p := range may {
		for q := range may[p] {
			for _, a := range tops {
				for _, b := range tops {
					if a != b && under(p, a) && under(q, b) {
						t.Errorf("%s may import %s", p, q)
					}
				}
			}
		}
	}
	never := []struct{ from, to string }{
		{"ir", "ir/op"}, {"ir/plan", "ir/op"}, {"ir/plan/check", "passes"}, {"ir/plan/check", "ir/op"}, {"runtime", "ir/op"},
		{"passes/memory", "ir"}, {"passes/pack", "ir"}, {"runtime/ref", "ir/plan"}, {"runtime/gorgonia", "runtime"},
	}
	for _, n := range never {
		if may[n.from][n.to] {
			t.Errorf("%s may import %s", n.from, n.to)
		}
		if may[n.from] == nil || may[n.to] == nil {
			t.Errorf("%s or %s is in no rule", n.from, n.to)
		}
	}
}
