package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// stopAt cancels a run when a text is written for the first time.
type stopAt struct {
	bytes.Buffer
	text string
	stop func()
}

func (s *stopAt) Write(p []byte) (int, error) {
	if bytes.Contains(p, []byte(s.text)) {
		s.stop()
	}
	return s.Buffer.Write(p)
}

// A run that is interrupted finishes its step, writes a checkpoint and exits with 130; it ends where an uninterrupted one does.
func TestInterrupt(t *testing.T) {
	golden := filepath.Join(root, "testdata", "golden", "mlp_digits")
	dir := t.TempDir()
	train := func(ctx context.Context, stdout, stderr interface{ Write([]byte) (int, error) }, more ...string) int {
		args := []string{"train", filepath.Join(golden, "model.onnx"), "--data", filepath.Join(golden, "batches.safetensors")}
		return run(ctx, append(args, more...), nil, stdout, stderr)
	}
	var out, errs bytes.Buffer
	if code := train(context.Background(), &out, &errs, "--save", filepath.Join(dir, "whole")); code != 0 {
		t.Fatalf("exit %d: %s", code, errs.String())
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	ck := filepath.Join(dir, "ck")
	stdout := &stopAt{text: `{"step":6,`, stop: cancel}
	errs.Reset()
	code := train(ctx, stdout, &errs, "--checkpoint", ck, "--metrics", "-", "--save", filepath.Join(dir, "part"))
	if code != exitInterrupted || !strings.Contains(errs.String(), "aitk: interrupted after step 7; go on with --resume ") {
		t.Fatalf("exit %d: %s", code, errs.String())
	}
	if _, err := os.Stat(filepath.Join(dir, "part")); err == nil {
		t.Error("an interrupted run has saved its weights")
	}
	errs.Reset()
	code = train(context.Background(), &out, &errs, "--checkpoint", ck, "--resume", "latest", "--budget", "100%", "--save", filepath.Join(dir, "resumed"))
	if code != 0 || !strings.Contains(errs.String(), "7 steps done") {
		t.Fatalf("exit %d: %s", code, errs.String())
	}
	want, err := os.ReadFile(filepath.Join(dir, "whole"))
	if err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(filepath.Join(dir, "resumed")); err != nil || !bytes.Equal(got, want) {
		t.Errorf("the resumed run saved other bytes (%v)", err)
	}
	if code := train(ctx, &out, &errs); code != exitInterrupted {
		t.Errorf("cancelled before it began: exit %d", code)
	}
}
