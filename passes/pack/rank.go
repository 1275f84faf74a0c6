package pack

import (
	"cmp"
	"fmt"
	"math/bits"
	"math/rand/v2"
	"slices"
)

// ranker makes orders over the items of one direction of time: keys by item, the least is tried first.
type ranker struct {
	p    *problem
	peak []int64 // by item: the largest load of a section under it
	most int64   // load of a section
}

func newRanker(p *problem) *ranker {
	r := &ranker{p: p, peak: p.peakLoads()}
	if len(p.load) > 0 {
		r.most = slices.Max(p.load)
	}
	return r
}

// mirrored is the ranker for the other direction of time, of the problem m.
func (r *ranker) mirrored(m *problem) *ranker {
	return &ranker{p: m, peak: r.peak, most: r.most}
}

// names are the orders that win in turn on training-like problems.
var names = [...]string{"first-born", "load-life", "end", "load-birth", "load-area", "last-born", "life", "size", "area"}

// named is the k-th of the named orders, as places.
func (r *ranker) named(k int) []int32 {
	items := r.p.items
	life := func(i int32) int64 { return int64(items[i].end - items[i].start) }
	area := func(i int32) float64 { return float64(life(i)) * float64(items[i].bytes) }
	birth := func(a, b int32) int { return cmp.Compare(items[a].start, items[b].start) }
	last := func(a, b int32) int { return cmp.Compare(items[b].end, items[a].end) }
	load := func(a, b int32) int { return cmp.Compare(r.peak[b], r.peak[a]) }
	var compare func(a, b int32) int
	switch names[k] {
	case "first-born":
		compare = func(a, b int32) int { return cmp.Or(birth(a, b), last(a, b)) }
	case "load-life":
		compare = func(a, b int32) int { return cmp.Or(load(a, b), cmp.Compare(life(b), life(a)), last(a, b)) }
	case "load-birth":
		compare = func(a, b int32) int { return cmp.Or(load(a, b), birth(a, b)) }
	case "load-area":
		compare = func(a, b int32) int { return cmp.Or(load(a, b), cmp.Compare(area(b), area(a))) }
	case "end":
		compare = last
	case "last-born":
		compare = func(a, b int32) int { return birth(b, a) }
	case "life":
		compare = func(a, b int32) int { return cmp.Compare(life(b), life(a)) }
	case "size":
		compare = func(a, b int32) int { return cmp.Compare(items[b].bytes, items[a].bytes) }
	case "area":
		compare = func(a, b int32) int { return cmp.Compare(area(b), area(a)) }
	default:
		panic(fmt.Sprintf("no order %q", names[k]))
	}
	order := make([]int32, len(items))
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortFunc(order, func(a, b int32) int {
		return cmp.Or(compare(a, b), cmp.Compare(items[b].bytes, items[a].bytes), cmp.Compare(a, b))
	})
	keys := make([]int32, len(items))
	for k, i := range order {
		keys[i] = int32(k)
	}
	return keys
}

// blend weighs the features of an item, in thousandths; the noise is per item. All is whole numbers, so that every machine draws the same.
type blend struct{ size, life, load, start, end, noise int64 }

func drawBlend(rng *rand.Rand) blend {
	w := func() int64 { return rng.Int64N(2001) - 500 }
	return blend{w(), w(), 4 * w(), 4 * (w() - 500), 4 * (w() - 500), w() / 5}
}

// unit is 1 in the features of a blend.
const unit = 1 << 16

// key is the key of item i under a blend. The natural logarithms of sizes and lives, and the rest as a share of the whole, are the features.
func (r *ranker) key(i int, w *blend, rng *rand.Rand) int32 {
	it := &r.p.items[i]
	sections := int64(r.p.sections)
	score := w.size*logarithm(uint64(it.bytes)) + w.life*logarithm(uint64(it.end-it.start)) + w.load*share(r.peak[i], r.most) +
		w.start*(int64(it.start)*unit/sections) + w.end*(int64(it.end)*unit/sections) + w.noise*rng.Int64N(unit)
	return int32(min(max(-score/16, -int64(never)+1), int64(never)-1))
}

// logarithm is ln(1+x) in units, linear between powers of two.
func logarithm(x uint64) int64 {
	x++
	n := bits.Len64(x) - 1
	binary := int64(n)*unit + int64((x<<(63-n)<<1)>>48)
	return binary * 45426 / unit // ln 2
}

// share is a/b in units.
func share(a, b int64) int64 {
	for b >= 1<<46 {
		a, b = a>>1, b>>1
	}
	return a * unit / max(b, 1)
}

// blended are the keys of all items under a blend.
func (r *ranker) blended(w blend, seed uint64, keys []int32) []int32 {
	rng := rand.New(rand.NewPCG(seed, 2))
	for i := range r.p.items {
		keys[i] = r.key(i, &w, rng)
	}
	return keys
}

// near is a blend beside w.
func (w blend) near(rng *rand.Rand) blend {
	for _, x := range []*int64{&w.size, &w.life, &w.load, &w.start, &w.end} {
		if rng.IntN(2) == 0 {
			*x += rng.Int64N(801) - 400
		}
	}
	return w
}

// peakLoads is, for each item, the largest load of a section that it covers, by a tree of maxima over sections.
func (p *problem) peakLoads() []int64 {
	n := int(p.sections)
	tree := make([]int64, 2*n)
	copy(tree[n:], p.load)
	for k := n - 1; k > 0; k-- {
		tree[k] = max(tree[2*k], tree[2*k+1])
	}
	out := make([]int64, len(p.items))
	for i := range p.items {
		for _, q := range p.of(&p.items[i]) {
			for a, e := int(q.start)+n, int(q.end)+n; a < e; a, e = a/2, e/2 {
				if a&1 == 1 {
					out[i] = max(out[i], tree[a])
					a++
				}
				if e&1 == 1 {
					e--
					out[i] = max(out[i], tree[e])
				}
			}
		}
	}
	return out
}
