package pack_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"aitk/passes/pack"
	"aitk/passes/pack/packcsv"
	"aitk/passes/pack/tracegen"
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
		out[strings.TrimSuffix(strings.TrimSuffix(filepath.Base(path), ".csv"), ".1048576")] = table.Buffers
	}
	return out
}

var challenging = strings.Split("ABCDEFGHIJK", "")

// variants are the problems as they come, and three held-out forms of each: time mirrored with the rows reversed, rows shuffled, and sizes
// a little smaller, so that no choice of the search can be made for the originals.
var variants = []struct {
	name string
	make func(in []pack.Buffer) []pack.Buffer
}{
	{"as-published", func(in []pack.Buffer) []pack.Buffer { return in }},
	{"mirrored", func(in []pack.Buffer) []pack.Buffer {
		slices.Reverse(in)
		for i := range in {
			s := in[i].Spans[0]
			in[i].Spans = []pack.Span{{Start: -s.End, End: -s.Start}}
		}
		return in
	}},
	{"shuffled", func(in []pack.Buffer) []pack.Buffer {
		rand.New(rand.NewPCG(1, 1)).Shuffle(len(in), func(i, j int) { in[i], in[j] = in[j], in[i] })
		return in
	}},
	{"perturbed", func(in []pack.Buffer) []pack.Buffer {
		rng := rand.New(rand.NewPCG(2, 1))
		for i := range in {
			in[i].Bytes -= rng.Int64N(1 + in[i].Bytes/2000)
		}
		return in
	}},
}

const nodes = 400_000

// TestChallenging packs minimalloc's suite into its capacity, which is the lower bound of eight of the eleven.
func TestChallenging(t *testing.T) {
	for _, v := range variants {
		all := instances(t, "minimalloc/challenging")
		for _, name := range challenging {
			r, err := pack.Solve(context.Background(), pack.Problem{Buffers: v.make(all[name]), CapacityBytes: 1 << 20}, pack.Options{Nodes: nodes, Tries: -1})
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%s/%s: %v, arena %d, bound %d, %d nodes by %s", name, v.name, r.Status, r.ArenaBytes, r.BoundBytes, r.Nodes, r.Method)
			if r.ArenaBytes > 1<<20 {
				t.Errorf("%s/%s: %d bytes, %v", name, v.name, r.ArenaBytes, r.Status)
			}
		}
	}
}

// TestTraces packs the training-like traces of idealloc to the bound.
func TestTraces(t *testing.T) {
	all := instances(t, "idealloc")
	for _, c := range []struct {
		name  string
		limit float64
	}{{"resnet50", 1}, {"G_1", 1}, {"S_1", 1}, {"Y_1", 1}, {"pangu_2.6B", 1.0038}} {
		r, err := pack.Pack(all[c.name], pack.Options{})
		if err != nil {
			t.Fatal(err)
		}
		ratio := float64(r.ArenaBytes) / float64(r.BoundBytes)
		t.Logf("%s: %d buffers, %.5f of the bound, %v after %d passes and %d nodes by %s", c.name, len(all[c.name]), ratio, r.Status, r.Passes, r.Nodes, r.Method)
		if ratio > c.limit {
			t.Errorf("%s: %.5f of the bound, want at most %.5f", c.name, ratio, c.limit)
		}
	}
}

// TestSynthetic packs ragged training traces. Equal sizes must give the load, as interval colouring does.
func TestSynthetic(t *testing.T) {
	for _, c := range []struct {
		name  string
		in    []pack.Buffer
		limit float64
	}{
		{"1k", tracegen.Sized(1_000).Make(1), 1.01},
		{"10k", tracegen.Sized(10_000).Make(1), 1.01},
		{"equal sizes", tracegen.Config{Layers: 12, MicroBatches: 6, InFlight: 3, EqualSizes: true}.Make(1), 1},
		{"whole step", tracegen.Config{Layers: 8, MicroBatches: 4, InFlight: 2, Align: 512, Persistent: true, Optimizer: true, Offload: true}.Make(1), 1.01},
	} {
		r, err := pack.Pack(c.in, pack.Options{})
		if err != nil {
			t.Fatal(err)
		}
		ratio := float64(r.ArenaBytes) / float64(r.BoundBytes)
		t.Logf("%s: %d buffers, %.5f of the bound, %v after %d passes and %d nodes by %s", c.name, len(c.in), ratio, r.Status, r.Passes, r.Nodes, r.Method)
		if ratio > c.limit {
			t.Errorf("%s: %.5f of the bound, want at most %.5f", c.name, ratio, c.limit)
		}
	}
}

// TestFull finds the perfect packing of cut rectangles.
func TestFull(t *testing.T) {
	for seed := range uint64(20) {
		in := tracegen.Full(seed, 40, 1<<16, 30)
		r, err := pack.Pack(in, pack.Options{Tries: -1})
		if err != nil {
			t.Fatal(err)
		}
		if r.ArenaBytes != 1<<16 {
			t.Errorf("seed %d: arena %d, want %d: %v after %d nodes", seed, r.ArenaBytes, 1<<16, r.Status, r.Nodes)
		}
	}
}

// The number of goroutines does not show in the result.
func TestWorkers(t *testing.T) {
	in := tracegen.Sized(2_500).Make(4)
	one, err := pack.Pack(in, pack.Options{Tries: 24, Nodes: 500})
	if err != nil {
		t.Fatal(err)
	}
	for _, workers := range []int{2, 5} {
		r, err := pack.Pack(in, pack.Options{Tries: 24, Nodes: 500, Workers: workers})
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(r.Offsets, one.Offsets) || r.Method != one.Method || r.Passes != one.Passes || r.Nodes != one.Nodes {
			t.Errorf("%d workers: arena %d by %s after %d passes, one worker %d by %s after %d", workers, r.ArenaBytes, r.Method, r.Passes, one.ArenaBytes, one.Method, one.Passes)
		}
	}
}

// Hints give a placement back, and a small change moves few buffers.
func TestHints(t *testing.T) {
	in := tracegen.Sized(500).Make(5)
	first, err := pack.Pack(in, pack.Options{Nodes: 5000})
	if err != nil {
		t.Fatal(err)
	}
	for i := range in {
		in[i].Hinted, in[i].Hint = true, first.Offsets[i]
	}
	again, err := pack.Pack(in, pack.Options{Nodes: 5000})
	if err != nil {
		t.Fatal(err)
	}
	moved := 0
	for i := range in {
		if again.Offsets[i] != first.Offsets[i] {
			moved++
		}
	}
	if again.ArenaBytes > first.ArenaBytes || moved > len(in)/20 {
		t.Errorf("arena %d after %d with hints, %d of %d buffers moved", again.ArenaBytes, first.ArenaBytes, moved, len(in))
	}
}

// A context that has ended still gives a placement.
func TestStopped(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	in := tracegen.Sized(1_000).Make(2)
	r, err := pack.Solve(ctx, pack.Problem{Buffers: in}, pack.Options{})
	if err != nil || pack.Validate(in, r.Offsets) != nil {
		t.Errorf("%v, %v", err, r.Status)
	}
}

func BenchmarkChallenging(b *testing.B) {
	all := instances(b, "minimalloc/challenging")
	for _, name := range challenging {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if _, err := pack.Solve(context.Background(), pack.Problem{Buffers: all[name], CapacityBytes: 1 << 20}, pack.Options{Nodes: nodes, Tries: -1}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkTraces(b *testing.B) {
	for name, in := range instances(b, "idealloc") {
		b.Run(name, func(b *testing.B) { benchmark(b, in) })
	}
}

func BenchmarkSynthetic(b *testing.B) {
	for _, n := range []int{1_000, 10_000, 100_000, 1_000_000} {
		for seed := range uint64(2) {
			b.Run(fmt.Sprintf("%d/%d", n, seed+1), func(b *testing.B) { benchmark(b, tracegen.Sized(n).Make(seed+1)) })
		}
	}
}

func benchmark(b *testing.B, in []pack.Buffer) {
	for b.Loop() {
		r, err := pack.Pack(in, pack.Options{Workers: 2})
		if err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(r.ArenaBytes)/float64(r.BoundBytes), "arena/bound")
		b.ReportMetric(float64(r.Passes), "passes")
	}
}
