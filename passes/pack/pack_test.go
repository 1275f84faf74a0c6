package pack

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// Small cases whose best arena can be seen by eye.
func TestPack(t *testing.T) {
	one := func(bytes, start, end int64) Buffer { return Buffer{Bytes: bytes, Spans: []Span{{start, end}}} }
	cases := []struct {
		name string
		in   []Buffer
		want int64
	}{
		{"none", nil, 0},
		{"empty buffer", []Buffer{one(0, 0, 1)}, 0},
		{"alone", []Buffer{one(7, 0, 1)}, 7},
		{"apart in time", []Buffer{one(5, 0, 1), one(7, 1, 2)}, 7},
		{"together", []Buffer{one(5, 0, 2), one(7, 1, 2)}, 12},
		// The first hole must be tried: c fits under b beside a.
		{"gap at front", []Buffer{one(60, 0, 2), one(120, 1, 3), one(60, 2, 4)}, 180},
		{"alignment", []Buffer{{Bytes: 3, Align: 8, Spans: []Span{{0, 2}}}, {Bytes: 3, Align: 8, Spans: []Span{{0, 2}}}}, 11},
		// Leaves at 2, is back at 6: x takes its bytes in between.
		{"arc across the turn", []Buffer{{Bytes: 10, Spans: []Span{{0, 2}, {6, 8}}}, one(10, 2, 6), one(4, 0, 8)}, 14},
		{"three spans", []Buffer{{Bytes: 10, Spans: []Span{{0, 1}, {2, 3}, {4, 5}}}, one(10, 1, 2), one(10, 3, 4)}, 10},
		{"fixed", []Buffer{{Bytes: 4, Spans: []Span{{0, 4}}, Fixed: true, Offset: 4}, one(4, 0, 2), one(4, 2, 4)}, 8},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			r, err := Pack(c.in, Options{})
			if err != nil {
				t.Fatal(err)
			}
			if r.ArenaBytes != c.want {
				t.Errorf("arena %d, want %d (offsets %v by %s)", r.ArenaBytes, c.want, r.Offsets, r.Method)
			}
			if r.BoundBytes > r.ArenaBytes {
				t.Errorf("bound %d exceeds arena %d", r.BoundBytes, r.ArenaBytes)
			}
		})
	}
}

func TestPackRefuses(t *testing.T) {
	cases := map[string][]Buffer{

		"empty span":     {{Bytes: 1, Spans: []Span{{2, 2}}}},
		"unsorted spans": {{Bytes: 1, Spans: []Span{{4, 5}, {1, 2}}}},
		"negative size":  {{Bytes: -1, Spans: []Span{{0, 1}}}},
		"bad alignment":  {{Bytes: 1, Align: 3, Spans: []Span{{0, 1}}}},
		"overflow":       {{Bytes: 1 << 62, Spans: []Span{{0, 1}}}, {Bytes: 1 << 62, Spans: []Span{{0, 1}}}},
		"fixed overlap": {{Bytes: 4, Fixed: true, Spans: []Span{{0, 2}}},
			{Bytes: 4, Fixed: true, Offset: 2, Spans: []Span{{1, 3}}}},
	}
	for name, in := range cases {
		if _, err := Pack(in, Options{}); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// Random problems of every kind: the placement is valid by an oracle that compares all pairs, and not below the bound.
func TestPackRandom(t *testing.T) {
	for seed := range uint64(400) {
		rng := rand.New(rand.NewPCG(seed, 9))
		n, horizon := 1+rng.IntN(60), int64(2+rng.IntN(40))
		align := int64(1) << rng.IntN(5)
		var in []Buffer
		for range n {
			a := rng.Int64N(horizon)
			e := a + 1 + rng.Int64N(horizon-a)
			b := Buffer{Bytes: rng.Int64N(1000), Align: align, Spans: []Span{{a, e}}}
			switch k := rng.IntN(10); {
			case k == 0:
				b.Spans = []Span{{0, horizon}}
			case k <= 2 && a > 1 && e < horizon:
				b.Spans = []Span{{0, a}, {e, horizon}}
			case k == 3 && seed%3 == 0 && e < horizon-2:
				b.Spans = append(b.Spans, Span{e + 1, e + 2})
			}
			in = append(in, b)
		}
		r, err := Pack(in, Options{})
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		for i := range in {
			for j := range i {
				together := false
				for _, a := range in[i].Spans {
					for _, b := range in[j].Spans {
						together = together || a.Start < b.End && b.Start < a.End
					}
				}
				if together && r.Offsets[i] < r.Offsets[j]+in[j].Bytes && r.Offsets[j] < r.Offsets[i]+in[i].Bytes {
					t.Fatalf("seed %d: %d and %d overlap", seed, i, j)
				}
			}
		}
		if r.ArenaBytes < r.BoundBytes {
			t.Fatalf("seed %d: arena %d below bound %d", seed, r.ArenaBytes, r.BoundBytes)
		}
		again, _ := Pack(in, Options{})
		if !slices.Equal(r.Offsets, again.Offsets) {
			t.Fatalf("seed %d: two runs differ", seed)
		}
	}
}

func TestValidateCatches(t *testing.T) {
	in := []Buffer{{Bytes: 4, Align: 4, Spans: []Span{{0, 2}}}, {Bytes: 4, Align: 4, Spans: []Span{{1, 3}}}}
	for _, bad := range [][]int64{{0, 0}, {0, 2}, {-4, 0}, {0}} {
		if Validate(in, bad) == nil {
			t.Errorf("offsets %v accepted", bad)
		}
	}
}

// The public training-like traces: arena over bound must stay near the published state of the art.
func TestTraces(t *testing.T) {
	dir := filepath.Join("..", "..", "..", "shared", "bench")
	if _, err := os.Stat(dir); err != nil {
		t.Skip("the public packing instances are not beside the repository")
	}
	for _, trace := range []struct {
		name  string
		limit float64
	}{{"resnet50", 1}, {"G_1", 1}, {"pangu_2.6B", 1.0038}, {"S_1", 1}} {
		name, limit := trace.name, trace.limit
		in := readCSV(t, filepath.Join(dir, "idealloc", name+".csv"))
		r, err := Pack(in, Options{Tries: 4})
		if err != nil {
			t.Fatal(err)
		}
		ratio := float64(r.ArenaBytes) / float64(r.BoundBytes)
		t.Logf("%s: %d buffers, %.5f of the bound by %s", name, len(in), ratio, r.Method)
		if ratio > limit {
			t.Errorf("%s: %.5f, want at most %.5f", name, ratio, limit)
		}
	}
}

func readCSV(t testing.TB, path string) []Buffer {
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var out []Buffer
	col := map[string]int{}
	for sc := bufio.NewScanner(f); sc.Scan(); {
		fields := strings.Split(strings.TrimSpace(sc.Text()), ",")
		if len(col) == 0 {
			for i, c := range fields {
				col[c] = i
			}
			continue
		}
		num := func(names ...string) int64 {
			for _, n := range names {
				if i, ok := col[n]; ok {
					x, err := strconv.ParseInt(fields[i], 10, 64)
					if err != nil {
						t.Fatal(err)
					}
					return x
				}
			}
			t.Fatal(fmt.Errorf("%s: no column of %v", path, names))
			return 0
		}
		out = append(out, Buffer{Bytes: num("size"), Spans: []Span{{num("start", "lower"), num("end", "upper")}}})
	}
	return out
}

func BenchmarkPack(b *testing.B) {
	path := filepath.Join("..", "..", "..", "shared", "bench", "idealloc", "Y_1.csv")
	if _, err := os.Stat(path); err != nil {
		b.Skip("the public packing instances are not beside the repository")
	}
	in := readCSV(b, path)
	for b.Loop() {
		if _, err := Pack(in, Options{Tries: -1}); err != nil {
			b.Fatal(err)
		}
	}
}
