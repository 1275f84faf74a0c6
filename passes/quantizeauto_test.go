package passes

import (
	"math/rand/v2"
	"testing"
)

// TestLadder: prices rise along the ladder; every stretch saves what it says; and no choice of formats that saves as much takes less time, up to one rung, by trying all.
func TestLadder(t *testing.T) {
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 3))
		var weights []AutoWeight
		for i := range 1 + rng.IntN(5) {
			w := AutoWeight{Name: string(rune('a' + i)), WasBytes: 1000 + rng.Int64N(4000)}
			for _, format := range []string{"nf4", "int4", "int8", "fp8"}[:1+rng.IntN(4)] {
				w.Formats = append(w.Formats, AutoFormat{Spec: QuantizeSpec{Glob: w.Name, Format: format}, Bytes: rng.Int64N(w.WasBytes * 3 / 4), Picos: 1 + rng.Int64N(1000), RelL2: rng.Float64() / 10})
			}
			weights = append(weights, w)
		}
		l := NewLadder(weights)
		for k := 1; k < len(l.rungs); k++ {
			a, b := l.rungs[k-1], l.rungs[k]
			if float64(a.picos)/float64(a.saves) > float64(b.picos)/float64(b.saves)*(1+1e-12) {
				t.Fatalf("seed %d: rung %d is cheaper than the one before", seed, k)
			}
		}
		for k := range int64(5) {
			want := l.SavedBytes * k / 4
			specs, saved := l.Specs(want)
			gotSaved, gotPicos := costOf(weights, specs)
			if gotSaved != saved || saved < want || len(specs) != len(weights) {
				t.Fatalf("seed %d: %d specs save %d, said to save %d, want %d", seed, len(specs), gotSaved, saved, want)
			}
			if best := cheapest(weights, saved); gotPicos > best { // the ladder's own points are on the hull
				t.Fatalf("seed %d: saving %d takes %d, possible is %d", seed, saved, gotPicos, best)
			}
		}
	}
}

// costOf adds up what specs save and what they take.
func costOf(weights []AutoWeight, specs []QuantizeSpec) (saved, picos int64) {
	for i, s := range specs {
		for _, f := range weights[i].Formats {
			if f.Spec.Format == s.Format {
				saved, picos = saved+weights[i].WasBytes-f.Bytes, picos+f.Picos
			}
		}
	}
	return saved, picos
}

// cheapest tries all choices that save at least so much.
func cheapest(weights []AutoWeight, saved int64) int64 {
	best := int64(1) << 60
	var try func(i int, saves, picos int64)
	try = func(i int, saves, picos int64) {
		if i == len(weights) {
			if saves >= saved {
				best = min(best, picos)
			}
			return
		}
		try(i+1, saves, picos)
		for _, f := range weights[i].Formats {
			try(i+1, saves+weights[i].WasBytes-f.Bytes, picos+f.Picos)
		}
	}
	try(0, 0, 0)
	return best
}
