package pack_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"aitk/passes/pack"
	"aitk/passes/pack/packcsv"
)

// instances reads the public problems of a folder beside the repository, or skips the test.
func instances(t testing.TB, folder string) map[string][]pack.Buffer {
	paths, _ := filepath.Glob(filepath.Join("..", "..", "..", "shared", "bench", folder, "*.csv"))
	if len(paths) == 0 {
		t.Skip("the public packing problems are not beside the repository")
	}
	out := map[string][]pack.Buffer{}
	for _, path := range paths {
		f, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		table, err := packcsv.Read(f)
		f.Close()
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		name, _, _ := strings.Cut(filepath.Base(path), ".")
		out[name] = table.Buffers
	}
	return out
}

// cpu is the user time of this process so far, in seconds.
func cpu() float64 {
	var u syscall.Rusage
	syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return float64(u.Utime.Sec) + float64(u.Utime.Usec)/1e6
}

func TestChallenging(t *testing.T) {
	all := instances(t, "minimalloc/challenging")
	total := 0.0
	for _, name := range strings.Split("ABCDEFGHIJK", "") {
		before := cpu()
		r, err := pack.Solve(context.Background(), pack.Problem{Buffers: all[name], CapacityBytes: 1 << 20}, pack.Options{Nodes: 1 << 20})
		if err != nil {
			t.Fatal(err)
		}
		spent := cpu() - before
		total += spent
		t.Logf("%s: %d buffers, %v, arena %d, bound %d, %d passes, %d nodes, %.3f s by %s", name, len(all[name]), r.Status, r.ArenaBytes, r.BoundBytes, r.Passes, r.Nodes, spent, r.Method)
		if r.ArenaBytes > 1<<20 {
			t.Errorf("%s: %d bytes", name, r.ArenaBytes)
		}
	}
	t.Logf("%.3f s of CPU together", total)
}
