package pack

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
)

// rank is an order over the items: keys[i] is the place of item i, 0 is tried first.
type rank struct {
	name   string
	keys   []int32
	random bool
}

// ranks are the orders that win in turn on training-like problems, then random blends of the same features.
func (p *problem) ranks(tries int) []rank {
	n := len(p.items)
	peak := p.peakLoads()
	life := func(i int) int64 { return int64(p.items[i].end - p.items[i].start) }
	area := func(i int) float64 { return float64(life(i)) * float64(p.items[i].bytes) }
	birth := func(a, b int) int { return cmp.Compare(p.items[a].start, p.items[b].start) }
	last := func(a, b int) int { return cmp.Compare(p.items[b].end, p.items[a].end) }
	features := []struct {
		name string
		less func(a, b int) int
	}{
		{"first-born", func(a, b int) int { return cmp.Or(birth(a, b), last(a, b)) }},
		{"load-life", func(a, b int) int {
			return cmp.Or(cmp.Compare(peak[b], peak[a]), cmp.Compare(life(b), life(a)), last(a, b))
		}},
		{"load-birth", func(a, b int) int { return cmp.Or(cmp.Compare(peak[b], peak[a]), birth(a, b)) }},
		{"load-area", func(a, b int) int { return cmp.Or(cmp.Compare(peak[b], peak[a]), cmp.Compare(area(b), area(a))) }},
		{"end", last},
		{"last-born", func(a, b int) int { return birth(b, a) }},
		{"life", func(a, b int) int { return cmp.Compare(life(b), life(a)) }},
		{"size", func(a, b int) int { return cmp.Compare(p.items[b].bytes, p.items[a].bytes) }},
		{"area", func(a, b int) int { return cmp.Compare(area(b), area(a)) }},
	}
	var out []rank
	order := make([]int, n)
	add := func(name string, random bool, compare func(a, b int) int) {
		for i := range order {
			order[i] = i
		}
		slices.SortFunc(order, func(a, b int) int {
			return cmp.Or(compare(a, b), cmp.Compare(p.items[b].bytes, p.items[a].bytes), cmp.Compare(a, b))
		})
		keys := make([]int32, n)
		for k, i := range order {
			keys[i] = int32(k)
		}
		out = append(out, rank{name, keys, random})
	}
	for _, f := range features {
		add(f.name, false, f.less)
	}
	rng := rand.New(rand.NewPCG(1, 2)) // fixed: the same problem gives the same placement
	score := make([]float64, n)
	most := float64(max(p.maxLoad(), 1))
	for t := range tries {
		var w [6]float64
		for k := range w {
			w[k] = rng.Float64()*2 - 0.5
		}
		for i, it := range p.items {
			score[i] = w[0]*math.Log1p(float64(it.bytes)) + w[1]*math.Log1p(float64(life(i))) +
				w[2]*4*float64(peak[i])/most +
				(w[3]-0.5)*4*float64(it.start)/float64(p.sections) + (w[4]-0.5)*4*float64(it.end)/float64(p.sections) + 0.2*w[5]*rng.Float64()
		}
		add(fmt.Sprintf("random-%d", t), true, func(a, b int) int { return cmp.Compare(score[b], score[a]) })
	}
	return out
}

func (p *problem) maxLoad() int64 {
	if len(p.load) == 0 {
		return 0
	}
	return slices.Max(p.load)
}

// peakLoads is, for each item, the largest load of a section that it covers, by a sparse table over sections.
func (p *problem) peakLoads() []int64 {
	n := int(p.sections)
	table := [][]int64{p.load}
	for w := 1; 2*w <= n; w *= 2 {
		prev := table[len(table)-1]
		next := make([]int64, n-2*w+1)
		for i := range next {
			next[i] = max(prev[i], prev[i+w])
		}
		table = append(table, next)
	}
	query := func(a, e int32) int64 {
		k := 0
		for int32(2<<k) <= e-a {
			k++
		}
		return max(table[k][a], table[k][e-int32(1<<k)])
	}
	out := make([]int64, len(p.items))
	for i, it := range p.items {
		for _, q := range p.of(&it) {
			out[i] = max(out[i], query(q.start, q.end))
		}
	}
	return out
}
