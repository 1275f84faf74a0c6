package checkpoint_test

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"aitk/internal/safetensors"
	"aitk/ir"
	"aitk/runtime/train/checkpoint"
)

// content is what the checkpoint of a step holds: 64 KiB that tell the step.
func content(step int64) []byte { return bytes.Repeat([]byte{byte(step), byte(step >> 8)}, 1<<15) }

func specs() []safetensors.Spec {
	return []safetensors.Spec{{Name: "w", Type: ir.T(ir.U8, 1<<16)}}
}

func manifest(step int64) checkpoint.Manifest {
	return checkpoint.Manifest{Tool: "test", Model: "m.onnx", GraphSum: "abc", Step: step, Seed: 3, Settings: []checkpoint.Setting{{Key: "lr", Value: "0.1"}}}
}

func write(dir string, step int64) (string, error) {
	return checkpoint.Write(dir, manifest(step), specs(), func(w *safetensors.Writer) error { return w.WriteAt("w", content(step), 0) })
}

func mustWrite(t *testing.T, dir string, steps ...int64) {
	t.Helper()
	for _, s := range steps {
		if _, err := write(dir, s); err != nil {
			t.Fatal(err)
		}
	}
}

// holds checks that the newest checkpoint is of a step and whole.
func holds(t *testing.T, dir string, step int64) {
	t.Helper()
	c, skipped, err := checkpoint.Latest(dir)
	if err != nil || c == nil {
		t.Fatalf("no checkpoint: %v, skipped %v", err, skipped)
	}
	defer c.Close()
	raw := make([]byte, 1<<16)
	if err := c.Params.ReadTensor("w", raw); err != nil {
		t.Fatal(err)
	}
	if c.Manifest.Step != step || !bytes.Equal(raw, content(step)) {
		t.Errorf("the newest checkpoint is of step %d (content right: %v), want %d", c.Manifest.Step, bytes.Equal(raw, content(c.Manifest.Step)), step)
	}
}

func names(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, e := range entries {
		out = append(out, e.Name())
	}
	return out
}

// TestKeep: the newest stay, nothing else lies about, an equal checkpoint is kept and a different one of the same step replaces.
func TestKeep(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "deep", "runs")
	mustWrite(t, dir, 1, 2, 30, 4)
	if err := checkpoint.Keep(dir, 2); err != nil {
		t.Fatal(err)
	}
	if got := names(t, dir); !slices.Equal(got, []string{"step-00000004", "step-00000030"}) {
		t.Errorf("the folder holds %v", got)
	}
	if err := checkpoint.Keep(dir, 0); err != nil || len(names(t, dir)) != 2 {
		t.Errorf("keeping all: %v, %v", names(t, dir), err)
	}
	before, err := os.Stat(filepath.Join(dir, "step-00000030"))
	if err != nil {
		t.Fatal(err)
	}
	mustWrite(t, dir, 30)
	if after, err := os.Stat(filepath.Join(dir, "step-00000030")); err != nil || !os.SameFile(before, after) {
		t.Error("an equal checkpoint was written again")
	}
	m := manifest(30)
	m.Seed = 4
	if _, err := checkpoint.Write(dir, m, specs(), func(w *safetensors.Writer) error { return w.WriteAt("w", content(30), 0) }); err != nil {
		t.Fatal(err)
	}
	holds(t, dir, 30)
	if got := names(t, dir); len(got) != 2 {
		t.Errorf("the folder holds %v", got)
	}
}

// TestFailedWrite leaves what was there.
func TestFailedWrite(t *testing.T) {
	dir := t.TempDir()
	mustWrite(t, dir, 7)
	stop := errors.New("stop")
	for _, fill := range []func(*safetensors.Writer) error{
		func(w *safetensors.Writer) error { return w.WriteAt("w", content(7)[:100], 0) },
		func(*safetensors.Writer) error { return stop },
	} {
		for _, step := range []int64{7, 8} {
			if _, err := checkpoint.Write(dir, manifest(step), specs(), fill); err == nil {
				t.Error("an incomplete checkpoint was accepted")
			}
		}
	}
	holds(t, dir, 7)
	if got := names(t, dir); !slices.Equal(got, []string{"step-00000007"}) {
		t.Errorf("the folder holds %v", got)
	}
}

// TestLeftovers: what a kill or a bad disk leaves is passed over, put back, or named.
func TestLeftovers(t *testing.T) {
	for _, c := range []struct {
		name   string
		damage func(dir string) error
		newest int64
		says   string
		left   []string
	}{
		{"unfinished", func(dir string) error {
			return os.Rename(filepath.Join(dir, "step-00000002"), filepath.Join(dir, ".aitk-new-2-99"))
		}, 1, "", []string{"step-00000001"}},
		{"killed while replacing", func(dir string) error {
			return os.Rename(filepath.Join(dir, "step-00000002"), filepath.Join(dir, ".aitk-old-00000002"))
		}, 2, "", []string{"step-00000001", "step-00000002"}},
		{"killed after replacing", func(dir string) error {
			return os.CopyFS(filepath.Join(dir, ".aitk-old-00000002"), os.DirFS(filepath.Join(dir, "step-00000002")))
		}, 2, "", []string{"step-00000001", "step-00000002"}},
		{"no manifest", func(dir string) error { return os.Remove(filepath.Join(dir, "step-00000002", "manifest.json")) }, 1, "", nil},
		{"cut off", func(dir string) error {
			return os.Truncate(filepath.Join(dir, "step-00000002", "params.safetensors"), 1000)
		}, 1, "", nil},
		{"one bit", func(dir string) error {
			path := filepath.Join(dir, "step-00000002", "params.safetensors")
			raw, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			raw[len(raw)-5] ^= 1
			return os.WriteFile(path, raw, 0o666)
		}, 1, "is damaged", nil},
		{"wrong folder", func(dir string) error {
			return os.Rename(filepath.Join(dir, "step-00000002"), filepath.Join(dir, "step-00000003"))
		}, 1, "", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			mustWrite(t, dir, 1, 2)
			if err := c.damage(dir); err != nil {
				t.Fatal(err)
			}
			open, skipped, err := checkpoint.Latest(dir)
			if err != nil || open == nil || (len(skipped) > 0) != (c.says != "") || c.says != "" && !strings.Contains(skipped[0].Error(), c.says) {
				t.Fatalf("newest %v, skipped %v, error %v", open, skipped, err)
			}
			open.Close()
			holds(t, dir, c.newest)
			if got := names(t, dir); c.left != nil && !slices.Equal(got, c.left) {
				t.Errorf("the folder holds %v, want %v", got, c.left)
			}
		})
	}
	if c, _, err := checkpoint.Latest(filepath.Join(t.TempDir(), "none")); c != nil || err != nil {
		t.Errorf("a folder that is not there: %v, %v", c, err)
	}
}

// TestManifests that nobody should follow.
func TestManifests(t *testing.T) {
	for text, want := range map[string]string{
		`{"schema":"aitk.checkpoint/9"}`:                                                         "schema",
		`{"schema":"aitk.checkpoint/1","files":[{"name":"../x"}]}`:                               "leaves the folder",
		`{"schema":"aitk.checkpoint/1","files":[]}`:                                              "names no params.safetensors",
		`{"schema":"aitk.checkpoint/1","step":-1,"files":[{"name":"params.safetensors"}]}`:       "negative",
		`{"schema":"aitk.checkpoint/1","files":[{"name":"params.safetensors","bytes":1000000}]}`: "no such file",
		`{`: "manifest.json",
	} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "manifest.json"), []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		if _, err := checkpoint.Open(dir); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

// TestCompare lists every difference.
func TestCompare(t *testing.T) {
	m, now := manifest(5), manifest(0)
	if err := m.Compare(&now); err != nil {
		t.Error(err)
	}
	now.Seed, now.GraphSum = 4, "def"
	now.Settings = []checkpoint.Setting{{Key: "lr", Value: "0.2"}, {Key: "batch", Value: "8"}}
	err := m.Compare(&now)
	for _, want := range []string{"graph is another", "seed was 3 and is 4", "lr was 0.1 and is 0.2", "batch was not given and is 8"} {
		if err == nil || !strings.Contains(err.Error(), want) || ir.KindOf(err) != ir.Usage {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

// child is the variable that makes the test binary write checkpoints until it is killed.
const child = "AITK_TEST_CHECKPOINTS"

func TestMain(m *testing.M) {
	if dir := os.Getenv(child); dir != "" {
		first, _ := strconv.ParseInt(os.Getenv(child+"_FIRST"), 10, 64)
		for step := first; ; step++ {
			if _, err := write(dir, step); err != nil {
				fmt.Println("error", err)
				os.Exit(1)
			}
			fmt.Println(step) // from here on it must be there
			if err := checkpoint.Keep(dir, 2); err != nil {
				fmt.Println("error", err)
				os.Exit(1)
			}
		}
	}
	os.Exit(m.Run())
}

// TestKilled kills a process that writes checkpoints, at random moments, again and again: the newest that it had finished is always there and whole.
func TestKilled(t *testing.T) {
	dir := t.TempDir()
	random := rand.New(rand.NewPCG(1, 2))
	next, newer := int64(1), 0
	for range 25 {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), child+"="+dir, fmt.Sprintf("%s_FIRST=%d", child, next))
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewReader(out)
		if line, err := lines.ReadString('\n'); err != nil || line != fmt.Sprintln(next) { // it is at work
			t.Fatalf("the writer says %q, %v", line, err)
		}
		time.Sleep(time.Duration(random.IntN(20_000)) * time.Microsecond)
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		rest, err := io.ReadAll(lines)
		if err != nil {
			t.Fatal(err)
		}
		cmd.Wait()
		done := next
		for _, line := range strings.Fields(string(rest)) {
			if done, err = strconv.ParseInt(line, 10, 64); err != nil {
				t.Fatalf("the writer says %q", rest)
			}
		}
		c, skipped, err := checkpoint.Latest(dir)
		if err != nil || c == nil || len(skipped) > 0 {
			t.Fatalf("after a kill: checkpoint %v, skipped %v, error %v", c, skipped, err)
		}
		step := c.Manifest.Step
		c.Close()
		if step != done && step != done+1 { // the next one may just have been renamed
			t.Fatalf("step %d was finished, the newest checkpoint is of step %d", done, step)
		}
		if step == done+1 {
			newer++
		}
		holds(t, dir, step)
		for _, name := range names(t, dir) {
			if strings.HasPrefix(name, ".") {
				t.Errorf("%s was not cleaned away", name)
			}
		}
		next = step + 1
	}
	t.Logf("25 kills, %d checkpoints; %d kills fell between rename and report", next-1, newer)
}
