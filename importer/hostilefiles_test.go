//go:build unix

package importer

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"aitk/importer/onnxpb"
)

// within fails if f takes longer than a file that nobody writes to may hold anyone up.
func within(t *testing.T, what string, f func() error) (err error) {
	t.Helper()
	done := make(chan error, 1)
	go func() { done <- f() }()
	select {
	case err = <-done:
	case <-time.After(10 * time.Second):
		t.Fatalf("%s: still waiting", what)
	}
	return err
}

// TestPipes: a pipe in the place of the model or of its data is refused, and nobody waits for a writer.
func TestPipes(t *testing.T) {
	dir := t.TempDir()
	pipe := filepath.Join(dir, "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Skipf("no pipes here: %v", err)
	}
	data := linear("pipe")
	raw, err := proto.Marshal(data)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "m.onnx")
	if err := os.WriteFile(path, raw, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, p := range []string{pipe, path} {
		for what, f := range map[string]func() error{
			"import":  func() error { _, err := Import(p, Options{}); return err },
			"inspect": func() error { _, err := Inspect(p); return err },
			"export":  func() error { return Export(p, filepath.Join(dir, "out.onnx"), ExportOptions{}) },
		} {
			if err := within(t, what, f); err == nil || !strings.Contains(err.Error(), "regular file") {
				t.Errorf("%s of %s: %v", what, filepath.Base(p), err)
			}
		}
	}
	if findings, err := Lint(path, LintOptions{}); err != nil || Trainable(findings) {
		t.Errorf("lint: %v, %v", findings, err)
	}
}

// TestHardLinks: a data file with a second name is read, and lint says so.
func TestHardLinks(t *testing.T) {
	dir := t.TempDir()
	raw, err := proto.Marshal(linear("w.bin"))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "m.onnx")
	for name, content := range map[string][]byte{path: raw, filepath.Join(dir, "w.bin"): make([]byte, 16)} {
		if err := os.WriteFile(name, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	has := func() bool {
		findings, err := Lint(path, LintOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return hasCode(findings, LinkedData)
	}
	if has() {
		t.Error("a file with one name is called linked")
	}
	if err := os.Link(filepath.Join(dir, "w.bin"), filepath.Join(dir, "elsewhere")); err != nil {
		t.Skipf("no hard links here: %v", err)
	}
	if !has() {
		t.Error("lint says nothing of a data file with two names")
	}
}

// linear is a product with a weight whose data lies in a file.
func linear(location string) *onnxpb.ModelProto {
	w := &onnxpb.TensorProto{Name: proto.String("w"), DataType: proto.Int32(1), Dims: []int64{2, 2}, DataLocation: onnxpb.TensorProto_EXTERNAL.Enum(),
		ExternalData: []*onnxpb.StringStringEntryProto{{Key: proto.String("location"), Value: proto.String(location)}}}
	return model(13, []*onnxpb.ValueInfoProto{vi("x", float, 1, 2)}, []*onnxpb.TensorProto{w}, node("MatMul", "a", in("x", "w"), in("y")))
}
