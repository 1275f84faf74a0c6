package importer

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"aitk/importer/onnxpb"
)

// expectation is what a linter must say of a graph: codes that it must report, and where given the only ones that it may.
type expectation struct {
	Must []string  `json:"lint_must_include"`
	Only *[]string `json:"lint_only"`
}

func codesOf(t *testing.T, path string, opt LintOptions) []string {
	t.Helper()
	list, err := Lint(path, opt)
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	var codes []string
	for _, f := range list {
		if f.Message == "" || f.Severity == "" {
			t.Errorf("%s: a finding without message or severity: %+v", path, f)
		}
		codes = append(codes, f.Code)
	}
	slices.Sort(codes)
	return slices.Compact(codes)
}

func (e *expectation) check(t *testing.T, name string, codes []string) {
	t.Helper()
	for _, c := range e.Must {
		if !slices.Contains(codes, c) {
			t.Errorf("%s: lint says %v and not %s", name, codes, c)
		}
	}
	for _, c := range codes {
		if e.Only != nil && !slices.Contains(*e.Only, c) {
			t.Errorf("%s: lint says %s, and may say only %v", name, c, *e.Only)
		}
	}
}

// TestLintTraps holds the linter against exports that lost, hid or changed something.
func TestLintTraps(t *testing.T) {
	folder := filepath.Join("..", "..", "shared", "models", "small", "traps")
	raw, err := os.ReadFile(filepath.Join(folder, "expect.json"))
	if err != nil {
		t.Skip("the collection of traps is not at hand")
	}
	var expected map[string]*expectation
	if err := json.Unmarshal(raw, &expected); err != nil {
		t.Fatal(err)
	}
	for name, e := range expected {
		t.Run(name, func(t *testing.T) {
			e.check(t, name, codesOf(t, filepath.Join(folder, name+".onnx"), LintOptions{}))
		})
	}
}

// TestLintClean: recommended exports of real models give no finding but the batch norm that the exporter always writes in inference mode.
func TestLintClean(t *testing.T) {
	files, _ := filepath.Glob(filepath.Join("..", "..", "shared", "models", "small", "*", "model.onnx"))
	if len(files) == 0 {
		t.Skip("the collection of small models is not at hand")
	}
	only := &expectation{Only: &[]string{InferenceBatchNorm}}
	for _, f := range files {
		if m, err := Inspect(f); err != nil || m.Unsupported != nil {
			t.Logf("%s: some ops have no lowering", f)
			continue
		}
		only.check(t, f, codesOf(t, f, LintOptions{}))
	}
}

// TestLintExports: real exports of other tools and older exporters, each with one fault (testdata/make/lint_torch.py and lint_more.py).
func TestLintExports(t *testing.T) {
	folder := filepath.Join("..", "testdata", "onnx", "lint")
	raw, err := os.ReadFile(filepath.Join(folder, "expect.json"))
	if err != nil {
		t.Fatal(err)
	}
	var expected map[string]struct {
		Must  []string  `json:"must"`
		Only  *[]string `json:"only"` // beside Must
		Fails bool      `json:"fails"`
	}
	if err := json.Unmarshal(raw, &expected); err != nil {
		t.Fatal(err)
	}
	for name, e := range expected {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(folder, name+".onnx")
			want := expectation{Must: e.Must}
			if e.Only != nil {
				want.Only = new(append(slices.Clone(*e.Only), e.Must...))
			}
			want.check(t, name, codesOf(t, path, LintOptions{}))
			if findings, _ := Lint(path, LintOptions{}); e.Only != nil && Trainable(findings) == e.Fails {
				t.Errorf("training can work: %v, want %v", !e.Fails, e.Fails)
			}
		})
	}
	if _, err := Lint(filepath.Join(folder, "missing.onnx"), LintOptions{}); err == nil {
		t.Error("a missing file is no error")
	}
	// With the flags that the findings name, the remedies work.
	if codes := codesOf(t, filepath.Join(folder, "ts_inference_bn.onnx"), LintOptions{Options: Options{BatchNorm: BatchNormTrain}}); len(codes) != 0 {
		t.Errorf("--batch-norm train leaves %v", codes)
	}
	if codes := codesOf(t, filepath.Join(folder, "ts_argmax.onnx"), LintOptions{Options: Options{Outputs: []string{"/m/fc2/Gemm_output_0"}}}); len(codes) != 0 {
		t.Errorf("--output leaves %v", codes)
	}
}

// TestLintUnnamed: what is wrong with a node without a name is told with its op, its place and its first output.
func TestLintUnnamed(t *testing.T) {
	m := model(13, []*onnxpb.ValueInfoProto{vi("x", float, 2, 3)}, []*onnxpb.TensorProto{floats("w", []int64{3, 4})},
		node("MatMul", "m", in("x", "w"), in("h")), node("Transpose", "", in("h"), in("y"), attrInts("perm", 0, 0)))
	findings, err := Lint(save(t, m), LintOptions{})
	if err != nil || len(findings) == 0 {
		t.Fatal(findings, err)
	}
	if f := findings[0]; f.Code != InvalidGraph || f.Node != "y" || !strings.Contains(f.Message, "unnamed node #1 (Transpose)") {
		t.Errorf("%+v", f)
	}
}

// TestShellWord: a name in a remedy can be pasted into a shell, and cannot steer the terminal.
func TestShellWord(t *testing.T) {
	for name, want := range map[string]string{"a.b_1": "a.b_1", "a b": "'a b'", "it's": `'it'\''s'`, "\x1b[31m\"'\\": `$'\x1b[31m"\'\\'`, "\u202ex": `$'\u202ex'`} {
		if got := shellWord(name); got != want {
			t.Errorf("%q is quoted as %s, want %s", name, got, want)
		}
	}
}
