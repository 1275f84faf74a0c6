package pack

import (
	"math/rand/v2"
	"slices"
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
		{"no time", []Buffer{{Bytes: 9, Spans: nil}, one(4, 0, 1)}, 4},
		{"equal sizes", []Buffer{one(8, 0, 2), one(8, 1, 3), one(8, 2, 4), one(8, 3, 5), one(8, 0, 1)}, 16},
		{"one moment each", []Buffer{one(1, 0, 1), one(2, 1, 2), one(3, 2, 3)}, 3},
		{"gap", []Buffer{{Bytes: 6, Spans: []Span{{0, 1}, {2, 3}}}, one(6, 1, 2)}, 6},
		{"window", []Buffer{{Bytes: 6, Spans: []Span{{0, 1}, {2, 3}}, Windows: []Window{{Span{1, 2}, 0, 2}}}, one(4, 1, 2)}, 6},
		{"aliases", []Buffer{{Bytes: 6, Group: 1, Spans: []Span{{0, 2}}}, {Bytes: 3, Group: 1, Spans: []Span{{1, 3}}}, one(3, 2, 3), one(2, 0, 3)}, 8},
		{"aliases and alignment", []Buffer{{Bytes: 6, Group: 1, Spans: []Span{{0, 2}}}, {Align: 8, Group: 1}, one(2, 0, 3)}, 8},
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
		r, err := Pack(in, Options{Tries: 10, Nodes: 500})
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
		again, _ := Pack(in, Options{Tries: 10, Nodes: 500, Workers: 3})
		if !slices.Equal(r.Offsets, again.Offsets) {
			t.Fatalf("seed %d: two runs differ", seed)
		}
	}
}

// TestManyBuffersThatAreNoArcs: more buffers than first fit is for otherwise, which no other heuristic takes because one of them comes and goes.
func TestManyBuffersThatAreNoArcs(t *testing.T) {
	buffers := []Buffer{{Bytes: 8, Spans: []Span{{0, 10}, {20, 30}, {40, 50}}}}
	for k := range int64(firstFitLimit + 10) {
		buffers = append(buffers, Buffer{Bytes: 8 + k%5*8, Spans: []Span{{k, k + 3 + k%7}}})
	}
	for _, o := range []Options{{}, {Tries: -1, Nodes: -1}, {Tries: 9, Nodes: 100, Enough: 1000}} {
		r, err := Pack(buffers, o)
		if err != nil || r.ArenaBytes < r.BoundBytes {
			t.Errorf("%+v: %v, arena %d, bound %d", o, err, r.ArenaBytes, r.BoundBytes)
		}
	}
}
