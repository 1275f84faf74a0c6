package pack

import "slices"

// firstFitLimit bounds first fit, which looks at every placed conflict of every item.
const firstFitLimit = 4000

// firstFit places the items in rank order, fixed ones first, each at the lowest offset that no conflicting placed item touches. It
// handles any spans.
func (p *problem) firstFit(keys []int32) []int64 {
	order := make([]int, len(p.items))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int {
		fa, fb := p.buffers[p.items[a].buffer].Fixed, p.buffers[p.items[b].buffer].Fixed
		if fa != fb {
			if fa {
				return -1
			}
			return 1
		}
		return int(keys[a] - keys[b])
	})
	offsets := make([]int64, len(p.buffers))
	for i, b := range p.buffers {
		if b.Fixed {
			offsets[i] = b.Offset // empty buffers too
		}
	}
	var placed []int // by offset
	for _, i := range order {
		it := &p.items[i]
		at := int64(0)
		if b := p.buffers[it.buffer]; b.Fixed {
			at = b.Offset
		} else {
			for _, j := range placed {
				o := &p.items[j]
				lo := offsets[o.buffer]
				if lo >= at+it.bytes {
					break
				}
				if hi := lo + o.bytes; hi > at && overlap(it.spans, o.spans) {
					at = (hi + p.unit - 1) / p.unit * p.unit // a fixed item may end anywhere
				}
			}
		}
		offsets[it.buffer] = at
		k, _ := slices.BinarySearchFunc(placed, at, func(j int, at int64) int { return cmpInt(offsets[p.items[j].buffer], at) })
		placed = slices.Insert(placed, k, i)
	}
	return offsets
}

func overlap(a, b [][2]int32) bool {
	for i, j := 0, 0; i < len(a) && j < len(b); {
		switch {
		case a[i][1] <= b[j][0]:
			i++
		case b[j][1] <= a[i][0]:
			j++
		default:
			return true
		}
	}
	return false
}
