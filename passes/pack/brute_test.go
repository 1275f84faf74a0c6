package pack_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"aitk/passes/pack"
)

// smallest is the least arena of a small problem without windows, by trying all orders of the free buffers: in the order of its offsets, any
// placement can be made by putting each buffer at the lowest offset that fits beside the fixed ones and those before it. It stops at floor,
// below which there is nothing. Buffers of one group move as one.
func smallest(buffers []pack.Buffer, floor int64) int64 {
	var units [][]int
	of := map[int32]int{}
	for i, b := range buffers {
		if k, seen := of[b.Group]; b.Group > 0 && seen {
			units[k] = append(units[k], i)
			continue
		}
		of[b.Group] = len(units)
		units = append(units, []int{i})
	}
	meet := func(a, b pack.Buffer) bool {
		for _, s := range a.Spans {
			for _, q := range b.Spans {
				if s.Start < q.End && q.Start < s.End {
					return true
				}
			}
		}
		return false
	}
	at := make([]int64, len(units))
	placed := make([]bool, len(units))
	fits := func(u int, offset int64) (bool, int64) { // or where to try next
		for v := range units {
			if !placed[v] {
				continue
			}
			for _, i := range units[u] {
				for _, j := range units[v] {
					a, b := buffers[i], buffers[j]
					if a.Bytes > 0 && b.Bytes > 0 && meet(a, b) && offset < at[v]+b.Bytes && at[v] < offset+a.Bytes {
						return false, at[v] + b.Bytes
					}
				}
			}
		}
		return true, 0
	}
	top := func(u int) int64 {
		most := int64(0)
		for _, i := range units[u] {
			if buffers[i].Bytes > 0 && len(buffers[i].Spans) > 0 {
				most = max(most, at[u]+buffers[i].Bytes)
			}
		}
		return most
	}
	best := int64(1) << 60
	start := int64(0)
	for u, unit := range units {
		for _, i := range unit {
			if buffers[i].Fixed {
				placed[u], at[u] = true, buffers[i].Offset
			}
		}
	}
	for u := range units {
		if placed[u] {
			start = max(start, top(u))
		}
	}
	var visit func(left int, high, last int64)
	visit = func(left int, high, last int64) {
		if high >= best || best <= floor {
			return
		}
		if left == 0 {
			best = high
			return
		}
		for u := range units {
			if placed[u] {
				continue
			}
			align := int64(1)
			for _, i := range units[u] {
				align = max(align, buffers[i].Align)
			}
			offset := int64(0)
			for {
				ok, next := fits(u, offset)
				if ok {
					break
				}
				offset = (next + align - 1) / align * align
			}
			if offset < last {
				continue // another order makes the same placement
			}
			placed[u], at[u] = true, offset
			visit(left-1, max(high, top(u)), offset)
			placed[u] = false
		}
	}
	left := 0
	for u := range units {
		if !placed[u] {
			left++
		}
	}
	visit(left, start, 0)
	return best
}

// fullRectangle cuts a rectangle of a random height into n buffers, so that every moment is filled to the top, and then shakes it a little. Such problems often
// need more than their load.
func fullRectangle(rng *rand.Rand, n int) []pack.Buffer {
	type block struct{ t0, t1, y0, y1 int64 }
	all := []block{{0, 4 + rng.Int64N(8), 0, 4 + rng.Int64N(12)}}
	for tries := 0; len(all) < n && tries < 200; tries++ {
		k := rng.IntN(len(all))
		b := all[k]
		if rng.IntN(2) == 0 && b.t1-b.t0 > 1 {
			m := b.t0 + 1 + rng.Int64N(b.t1-b.t0-1)
			all[k].t1 = m
			all = append(all, block{m, b.t1, b.y0, b.y1})
		} else if b.y1-b.y0 > 1 {
			m := b.y0 + 1 + rng.Int64N(b.y1-b.y0-1)
			all[k].y1 = m
			all = append(all, block{b.t0, b.t1, m, b.y1})
		}
	}
	var out []pack.Buffer
	for _, b := range all {
		s := pack.Span{Start: b.t0, End: b.t1}
		if rng.IntN(4) == 0 {
			s.Start = max(0, s.Start-rng.Int64N(2))
			s.End += rng.Int64N(2)
		}
		out = append(out, pack.Buffer{Bytes: b.y1 - b.y0, Spans: []pack.Span{s}})
	}
	return out
}

// anything is n buffers of every kind: gaps, arcs across the turn, alignments, groups, fixed ones, no bytes, no time.
func anything(rng *rand.Rand, n int) []pack.Buffer {
	horizon := 3 + rng.Int64N(8)
	kind := rng.IntN(6)
	var out []pack.Buffer
	for i := range n {
		a := rng.Int64N(horizon)
		e := a + 1 + rng.Int64N(horizon-a)
		b := pack.Buffer{Bytes: rng.Int64N(12), Spans: []pack.Span{{Start: a, End: e}}}
		switch {
		case rng.IntN(20) == 0:
			b.Spans = nil
		case kind == 1 && rng.IntN(3) == 0 && e+1 < horizon:
			b.Spans = append(b.Spans, pack.Span{Start: e + 1, End: horizon})
		case kind == 2 && rng.IntN(3) == 0 && a > 0 && e < horizon:
			b.Spans = []pack.Span{{Start: 0, End: a}, {Start: e, End: horizon}}
		case kind == 3:
			b.Align = 1 << rng.IntN(4)
		case kind == 4:
			b.Align = 4
		case kind == 5 && rng.IntN(3) == 0 && i > 0:
			b.Group = int32(1 + rng.IntN(2))
		}
		if rng.IntN(12) == 0 && b.Group == 0 {
			b.Fixed, b.Offset = true, rng.Int64N(20)
			b.Offset -= b.Offset % max(b.Align, 1)
		}
		out = append(out, b)
	}
	return out
}

// The exact search finds the optimum of small problems of every kind, proves it, and says infeasible for one byte less.
func TestBruteForce(t *testing.T) {
	hard := 0
	count := uint64(3000)
	if testing.Short() {
		count = 600
	}
	for seed := range count {
		rng := rand.New(rand.NewPCG(seed, 4))
		var in []pack.Buffer
		if n := 1 + rng.IntN(10); seed%2 == 0 {
			in = fullRectangle(rng, n)
		} else {
			in = anything(rng, min(n, 8))
		}
		if above, err := checkSmall(in); err != nil {
			t.Fatalf("seed %d: %v\n%+v", seed, err, in)
		} else if above {
			hard++
		}
	}
	t.Logf("%d of %d problems need more than their load", hard, count)
	if hard < int(count)/200 {
		t.Errorf("only %d of %d problems need more than their load: the problems are too easy to test anything", hard, count)
	}
}

// checkSmall compares a small problem with brute force, and tells whether its optimum is above the load.
func checkSmall(in []pack.Buffer) (above bool, err error) {
	ctx := context.Background()
	// Without heuristics' luck: the bound comes from the search alone.
	r, err := pack.Solve(ctx, pack.Problem{Buffers: in}, pack.Options{Tries: -1})
	if err != nil {
		if fixedOverlap(in) {
			return false, nil
		}
		return false, err
	}
	if fixedOverlap(in) {
		return false, fmt.Errorf("fixed buffers overlap and there is no error")
	}
	load := loadOf(in)
	want := smallest(in, load)
	if r.ArenaBytes != want || r.Status != pack.Optimal || r.BoundBytes != want {
		return false, fmt.Errorf("arena %d, bound %d (%s), %v after %d nodes; brute force %d", r.ArenaBytes, r.BoundBytes, r.BoundName, r.Status, r.Nodes, want)
	}
	if want == 0 {
		return false, nil
	}
	if r, err = pack.Solve(ctx, pack.Problem{Buffers: in, CapacityBytes: want}, pack.Options{Tries: -1}); err != nil || r.ArenaBytes != want {
		return false, fmt.Errorf("at capacity %d: arena %d, %v, %w", want, r.ArenaBytes, r.Status, err)
	}
	if want > 1 {
		if r, err = pack.Solve(ctx, pack.Problem{Buffers: in, CapacityBytes: want - 1}, pack.Options{Tries: -1}); err != nil || r.Status != pack.Infeasible {
			return false, fmt.Errorf("at capacity %d, one less than the optimum: %v, bound %d, %w", want-1, r.Status, r.BoundBytes, err)
		}
	}
	return want > load, nil
}

// loadOf is the most bytes live at one time, counted moment by moment.
func loadOf(in []pack.Buffer) int64 {
	most := int64(0)
	for t := range int64(40) {
		sum := int64(0)
		groups := map[int32]int64{}
		for _, b := range in {
			for _, s := range b.Spans {
				if s.Start <= t && t < s.End {
					if b.Group > 0 {
						groups[b.Group] = max(groups[b.Group], b.Bytes)
					} else {
						sum += b.Bytes
					}
				}
			}
		}
		for _, g := range groups {
			sum += g
		}
		most = max(most, sum)
	}
	return most
}

func fixedOverlap(in []pack.Buffer) bool {
	for i, a := range in {
		for _, b := range in[:i] {
			if !a.Fixed || !b.Fixed || a.Offset >= b.Offset+b.Bytes || b.Offset >= a.Offset+a.Bytes || a.Bytes == 0 || b.Bytes == 0 {
				continue
			}
			for _, s := range a.Spans {
				for _, q := range b.Spans {
					if s.Start < q.End && q.Start < s.End {
						return true
					}
				}
			}
		}
	}
	return false
}

func FuzzSmall(f *testing.F) {
	f.Add(uint64(1), uint8(6))
	f.Fuzz(func(t *testing.T, seed uint64, n uint8) {
		rng := rand.New(rand.NewPCG(seed, 5))
		in := anything(rng, 1+int(n)%7)
		if seed%3 == 0 {
			in = fullRectangle(rng, 1+int(n)%9)
		}
		if _, err := checkSmall(in); err != nil {
			t.Fatalf("%v\n%+v", err, in)
		}
	})
}
