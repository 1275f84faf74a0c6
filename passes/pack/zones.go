package pack

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
)

// Zone search. A pass over one order is good in one stretch of time and bad in another, and the arena is as high as the worst stretch. So
// orders are varied by stretch: the items that end above the target mark zones of time; in every zone at once the items get the keys of a
// fresh blend, and one pass tells which zones got lower. Those keep their new keys, the others get the old ones back. A pass costs the
// same for one zone as for thousands, which is what makes long traces cheap.

// zone is a stretch of sections, and the highest end of an item in it.
type zone struct {
	start, end int32
	high       int64
}

// zoned is a zone search in one direction of time.
type zoned struct {
	*ranker
	all   *problem // in forward time, in which zones are counted
	rng   *rand.Rand
	pass  func(keys []int32) []int64
	keys  []int32 // the best so far, zone by zone
	next  []int32 // that are tried
	zones []zone
}

// zones searches from the best order and the best blend so far.
func (h *portfolio) zones(tries int) {
	var passes []pass
	walks := min(max(tries/12, 1), 20)
	for k := range walks {
		passes = append(passes, pass{name: fmt.Sprintf("zones-%d", k), order: -1, offsets: func(w *worker, limit int64) []int64 {
			z := &zoned{all: h.p, rng: rand.New(rand.NewPCG(uint64(k), 7))}
			z.next = make([]int32, len(h.p.items))
			d, ahead := k%2, k/2%2 == 0
			switch {
			case k%3 == 0 && h.blend != nil:
				d, ahead = h.blendDirection, h.blendAhead
				z.ranker, z.keys = h.directions[d], slices.Clone(h.directions[d].blended(*h.blend, h.blendSeed, w.keys))
			case k%3 == 1 && h.order >= 0:
				d, ahead = h.direction, h.ahead
				z.ranker = h.directions[d]
				z.keys = z.named(h.order)
				for i, n := range z.keys { // on the scale of blends
					z.keys[i] = int32((int64(n) - int64(len(z.keys))/2) * 5000 * unit / 16 / int64(len(z.keys)))
				}
			default:
				z.ranker = h.directions[d]
				z.keys = slices.Clone(z.blended(drawBlend(z.rng), uint64(k), w.keys))
			}
			z.pass = func(keys []int32) []int64 { return h.pass(w, d, keys, ahead, infinite) }
			return z.walk(h, max(tries/walks, 1))
		}})
	}
	h.run(passes)
}

// walk varies the zones of the first keys so many times. It returns the best placement.
func (z *zoned) walk(h *portfolio, tries int) []int64 {
	offsets := z.pass(z.keys)
	best, high := slices.Clone(offsets), z.all.arena(offsets)
	z.zones = z.find(offsets, h.target)
	for range tries {
		if high <= h.target || h.ctx.Err() != nil {
			break
		}
		wide := z.widen()
		z.vary(wide)
		offsets = z.pass(z.next)
		if top := z.all.arena(offsets); top < high {
			high = top
			copy(best, offsets)
		}
		z.judge(wide, z.find(offsets, h.target))
	}
	return best
}

// find marks the zones of a placement: the stretches of the items that end above the target, joined where they meet.
func (z *zoned) find(offsets []int64, target int64) []zone {
	var out []zone
	for i := range z.all.items {
		it := &z.all.items[i]
		if high := offsets[i] + it.raw; high > target {
			out = append(out, zone{it.start, min(it.end, z.all.sections), high})
		}
	}
	return join(out)
}

// join sorts zones and joins those that meet.
func join(zones []zone) []zone {
	slices.SortFunc(zones, func(a, b zone) int { return cmp.Or(cmp.Compare(a.start, b.start), cmp.Compare(a.end, b.end)) })
	out := zones[:0]
	for _, q := range zones {
		if n := len(out) - 1; n >= 0 && q.start <= out[n].end {
			out[n].end, out[n].high = max(out[n].end, q.end), max(out[n].high, q.high)
		} else {
			out = append(out, q)
		}
	}
	return out
}

// widen stretches every zone by a random length, and joins them.
func (z *zoned) widen() []zone {
	wide := slices.Clone(z.zones)
	for k := range wide {
		q := &wide[k]
		more := 2 + int32(z.rng.IntN(int(q.end-q.start)*2+20))
		q.start, q.end = max(q.start-more, 0), min(q.end+more, z.all.sections)
	}
	return join(wide)
}

// vary gives the items that meet a zone the keys of a blend of their own.
func (z *zoned) vary(wide []zone) {
	copy(z.next, z.keys)
	blends := make([]blend, len(wide))
	for k := range blends {
		blends[k] = drawBlend(z.rng)
	}
	for i := range z.all.items {
		if k := meets(wide, &z.all.items[i]); k >= 0 {
			z.next[i] = z.key(i, &blends[k], z.rng)
		}
	}
}

// meets is the first zone that an item meets, -1: none.
func meets(zones []zone, it *item) int {
	k, _ := slices.BinarySearchFunc(zones, it.start, func(q zone, t int32) int { return cmp.Compare(q.end, t+1) })
	if k < len(zones) && zones[k].start < it.end {
		return k
	}
	return -1
}

// judge keeps the new keys of the zones that got lower, and takes note of zones that are new.
func (z *zoned) judge(wide, now []zone) {
	old := make([]int64, len(wide))
	fresh := make([]int64, len(wide))
	for k, q := range wide {
		old[k] = q.high
	}
	var elsewhere []zone
	for _, q := range now {
		k, _ := slices.BinarySearchFunc(wide, q.start, func(w zone, t int32) int { return cmp.Compare(w.end, t+1) })
		if k == len(wide) || wide[k].start >= q.end {
			elsewhere = append(elsewhere, q)
			continue
		}
		for ; k < len(wide) && wide[k].start < q.end; k++ {
			fresh[k] = max(fresh[k], q.high)
		}
	}
	keep := make([]bool, len(wide))
	for k := range wide {
		keep[k] = fresh[k] <= old[k]
	}
	for i := range z.all.items {
		if k := meets(wide, &z.all.items[i]); k >= 0 && keep[k] {
			z.keys[i] = z.next[i]
		}
	}
	// The zones to work on: where the new keys stay, those of the new placement; elsewhere the old ones.
	out := elsewhere
	for _, q := range now {
		if k := meetsZone(wide, q); k >= 0 && keep[k] {
			out = append(out, q)
		}
	}
	for _, q := range z.zones {
		if k := meetsZone(wide, q); k < 0 || !keep[k] {
			out = append(out, q)
		}
	}
	z.zones = join(out)
}

func meetsZone(zones []zone, q zone) int {
	return meets(zones, &item{start: q.start, end: q.end})
}
