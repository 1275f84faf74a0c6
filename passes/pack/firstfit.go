package pack

import (
	"cmp"
	"slices"
)

// firstFitLimit bounds first fit, which looks at every placed conflict of every item.
const firstFitLimit = 4000

// firstFit places the items in rank order, fixed ones first, each at the lowest offset that no conflicting placed item touches. It
// handles any parts.
func (p *problem) firstFit(keys []int32) []int64 {
	order := make([]int32, len(p.items))
	for i, k := range keys {
		order[k] = int32(i)
	}
	slices.SortStableFunc(order, func(a, b int32) int {
		return cmp.Compare(min(p.items[b].at, 0), min(p.items[a].at, 0)) // fixed ones first
	})
	offsets := make([]int64, len(p.items))
	var placed []int32 // by offset
	for _, i := range order {
		it := &p.items[i]
		at := max(it.at, 0)
		if it.at < 0 {
			for _, j := range placed {
				o := &p.items[j]
				if offsets[j] >= at+it.bytes {
					break
				}
				if offsets[j]+o.bytes > at {
					if tall := p.tallest(it, o); tall > 0 && offsets[j]+tall > at {
						at = alignUp(offsets[j]+tall, it.align) // a fixed item may end anywhere
					}
				}
			}
		}
		offsets[i] = at
		k, _ := slices.BinarySearchFunc(placed, at, func(j int32, at int64) int { return cmp.Compare(offsets[j], at) })
		placed = slices.Insert(placed, k, i)
	}
	return offsets
}

// tallest is the most bytes that o takes while it is live; 0: they are not live together.
func (p *problem) tallest(it, o *item) int64 {
	most := int64(0)
	a, b := p.of(it), p.of(o)
	for i, j := 0, 0; i < len(a) && j < len(b); {
		switch {
		case a[i].end <= b[j].start:
			i++
		case b[j].end <= a[i].start:
			j++
		default:
			most = max(most, b[j].bytes)
			if a[i].end < b[j].end {
				i++
			} else {
				j++
			}
		}
	}
	return most
}

func alignUp(at, align int64) int64 { return (at + align - 1) &^ (align - 1) }
