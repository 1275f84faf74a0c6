package data_test

import (
	"math"
	"slices"
	"testing"

	"aitk/runtime/train/data"
)

// TestPermutation: every number once, for sizes around the corners of the domain.
func TestPermutation(t *testing.T) {
	for _, n := range []int64{1, 2, 3, 4, 5, 8, 9, 10, 15, 16, 17, 99, 100, 101, 1438, 1797} {
		for key := range uint32(3) {
			p := data.NewPermutation(n, [2]uint32{key, 9})
			seen := make([]bool, n)
			for i := range n {
				j := p.At(i)
				if j < 0 || j >= n || seen[j] {
					t.Fatalf("n %d, key %d: position %d gives %d", n, key, i, j)
				}
				seen[j] = true
			}
		}
	}
}

// TestPermutationIsEven counts where each number goes over many keys: a chi-square of n-1 degrees of freedom in each row stays within six
// standard deviations, and all n! orders of a small n occur about equally often.
func TestPermutationIsEven(t *testing.T) {
	const n, keys = 13, 4000
	var to [n][n]float64
	for k := range uint32(keys) {
		p := data.NewPermutation(n, [2]uint32{k, 1})
		for i := range int64(n) {
			to[i][p.At(i)]++
		}
	}
	for i := range to {
		chi, want := 0.0, float64(keys)/n
		for _, x := range to[i] {
			chi += (x - want) * (x - want) / want
		}
		if limit := n - 1 + 6*math.Sqrt(2*(n-1)); chi > limit {
			t.Errorf("number %d is spread unevenly: chi-square %.1f above %.1f", i, chi, limit)
		}
	}
	orders := map[[4]int64]int{}
	for k := range uint32(4800) {
		p := data.NewPermutation(4, [2]uint32{k, 2})
		orders[[4]int64{p.At(0), p.At(1), p.At(2), p.At(3)}]++
	}
	for o, x := range orders {
		if x < 100 || x > 320 {
			t.Errorf("order %v came %d times of 4800", o, x)
		}
	}
	if len(orders) != 24 {
		t.Errorf("%d of 24 orders occurred", len(orders))
	}
}

// sequence is an epoch's samples.
func sequence(o *data.Order, epoch int64) []int64 {
	var s []int64
	for i := range o.Train() {
		s = append(s, o.Sample(epoch, i))
	}
	return s
}

// TestOrder: epochs are permutations of the same samples, differ by seed and epoch, and can be entered anywhere; the split depends on neither.
func TestOrder(t *testing.T) {
	for _, c := range []struct {
		samples int64
		held    float64
		want    int64
	}{{1797, 0.2, 359}, {10, 0, 0}, {10, 0.01, 1}, {10, 0.99, 9}, {2, 0.5, 1}, {1, 0.5, 0}} {
		o := data.NewOrder(c.samples, c.held, 5)
		if o.Held() != c.want || o.Train() != c.samples-c.want {
			t.Errorf("%d samples, %v held out: %d and %d", c.samples, c.held, o.Train(), o.Held())
		}
	}
	a, b := data.NewOrder(100, 0.2, 1), data.NewOrder(100, 0.2, 2)
	var held []int64
	for i := range a.Held() {
		held = append(held, a.HeldSample(i))
		if a.HeldSample(i) != b.HeldSample(i) {
			t.Errorf("held-out sample %d depends on the seed", i)
		}
	}
	first := sequence(a, 0)
	for name, s := range map[string][]int64{"next epoch": sequence(a, 1), "other seed": sequence(b, 0)} {
		if slices.Equal(s, first) {
			t.Errorf("%s: the same order", name)
		}
		all := slices.Sorted(slices.Values(append(slices.Clone(s), held...)))
		for i, x := range all {
			if int64(i) != x {
				t.Fatalf("%s and held-out samples together are %v", name, all)
			}
		}
	}
	if again := data.NewOrder(100, 0.2, 1); again.Sample(1, 7) != sequence(a, 1)[7] || again.Sample(0, 3) != first[3] {
		t.Error("a sample depends on what was asked before")
	}
	if n := testing.AllocsPerRun(10, func() { a.Sample(3, 1); a.Sample(4, 1) }); n != 0 {
		t.Errorf("ordering allocates %v times", n)
	}
}
