package pack_test

import (
	"math/rand/v2"
	"strings"
	"testing"

	"aitk/passes/pack"
)

func TestValidateCatches(t *testing.T) {
	span := func(a, b int64) []pack.Span { return []pack.Span{{Start: a, End: b}} }
	in := []pack.Buffer{
		{Bytes: 4, Align: 4, Spans: span(0, 2)},
		{Bytes: 4, Align: 4, Spans: span(1, 3)},
		{Bytes: 8, Spans: span(0, 9), Fixed: true, Offset: 8},
		{Bytes: 2, Group: 1, Spans: span(4, 6)},
		{Bytes: 6, Group: 1, Spans: span(5, 7)},
		{Bytes: 4, Spans: span(3, 4), Windows: []pack.Window{{Span: pack.Span{Start: 5, End: 6}, Low: 2, High: 4}}},
	}
	good := []int64{0, 4, 8, 0, 0, 16}
	if err := pack.Validate(in, good); err != nil {
		t.Fatal(err)
	}
	cases := []struct {
		name   string
		buffer int
		offset int64
		want   string
	}{
		{"overlap", 1, 0, "overlap"},
		{"misaligned", 1, 6, "alignment"},
		{"negative", 0, -4, "lies at -4"},
		{"fixed one moved", 2, 16, "fixed true"},
		{"group torn apart", 3, 1, "group 1"},
		{"group and another", 4, 7, "group 1"},
		{"over a fixed one", 5, 9, "overlap"},
		{"window over a group", 5, 1, "overlap"},
		{"end overflows", 5, 1<<63 - 2, "overflows"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			bad := append([]int64(nil), good...)
			bad[c.buffer] = c.offset
			if err := pack.Validate(in, bad); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want one with %q", err, c.want)
			}
		})
	}
	if pack.Validate(in, good[:3]) == nil {
		t.Error("too few offsets accepted")
	}
}

// Good placements are broken in one place, and the verdict is that of comparing all pairs.
func TestValidateMutations(t *testing.T) {
	caught, harmless := 0, 0
	for seed := range uint64(3000) {
		rng := rand.New(rand.NewPCG(seed, 11))
		in := anything(rng, 2+rng.IntN(14))
		for i := range in {
			if rng.IntN(4) == 0 && len(in[i].Spans) == 1 && in[i].Bytes > 1 {
				end := in[i].Spans[0].End
				in[i].Windows = []pack.Window{{Span: pack.Span{Start: end, End: end + 1 + rng.Int64N(3)}, Low: rng.Int64N(in[i].Bytes), High: in[i].Bytes}}
			}
		}
		r, err := pack.Pack(in, pack.Options{Tries: -1, Nodes: -1})
		if err != nil {
			if fixedOverlapWindows(in) {
				continue
			}
			t.Fatalf("seed %d: %v", seed, err)
		}
		i := rng.IntN(len(in))
		r.Offsets[i] = max(0, r.Offsets[i]+(rng.Int64N(21)-10)*max(in[i].Align, 1))
		want := allPairs(in, r.Offsets)
		if got := pack.Validate(in, r.Offsets) == nil; got != want {
			t.Fatalf("seed %d: valid %v, by all pairs %v\n%+v\n%v", seed, got, want, in, r.Offsets)
		}
		if want {
			harmless++
		} else {
			caught++
		}
	}
	if caught < 500 || harmless < 500 {
		t.Errorf("%d bad placements and %d good ones: too few of a kind", caught, harmless)
	}
}

func fixedOverlapWindows(in []pack.Buffer) bool {
	for i, a := range in {
		for _, b := range in[:i] {
			if a.Fixed && b.Fixed && meetAt(a, b, a.Offset, b.Offset) {
				return true
			}
		}
	}
	return false
}

// meetAt tells whether two buffers share a byte at one time.
func meetAt(a, b pack.Buffer, at, bt int64) bool {
	all := func(b pack.Buffer) []pack.Window {
		out := append([]pack.Window(nil), b.Windows...)
		for _, s := range b.Spans {
			out = append(out, pack.Window{Span: s, High: b.Bytes})
		}
		return out
	}
	for _, x := range all(a) {
		for _, y := range all(b) {
			if x.Start < y.End && y.Start < x.End && max(at+x.Low, bt+y.Low) < min(at+x.High, bt+y.High) {
				return true
			}
		}
	}
	return false
}

func allPairs(in []pack.Buffer, offsets []int64) bool {
	for i, a := range in {
		if a.Align > 1 && offsets[i]%a.Align != 0 || a.Fixed && offsets[i] != a.Offset {
			return false
		}
		for j, b := range in[:i] {
			if a.Group > 0 && a.Group == b.Group {
				if offsets[i] != offsets[j] {
					return false
				}
				continue
			}
			if meetAt(a, b, offsets[i], offsets[j]) {
				return false
			}
		}
	}
	return true
}
