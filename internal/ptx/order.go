package ptx

import "slices"

// order numbers a kernel's blocks for the choice of the lanes that run next: the lowest number first. Lanes that part at a branch meet again where all ways
// from it join if that place comes after everything between, so the order is topological, and a loop's blocks stand together before all that
// follows the loop: lanes that left wait for those that still go round.
//
//	the text            its order
//	B0: bra B3 if p     B0
//	B1: loop: bra B4    B1 B4       compilers put B4, the rare half of a loop, at the end of the text; by the text's order
//	B2: bra B1 if q     B2          lanes would reach the barrier in B2 without those in B4
//	B3: ret             B3
//	B4: bra B2
//
// The components of the graph are ordered topologically; inside one, its entry comes first and the rest is ordered again without the edges
// back to the entry.
func order(bs []*block) []int {
	number := make([]int, len(bs))
	n := 0
	all := reachable(bs)
	var place func(nodes []int, header int)
	place = func(nodes []int, header int) {
		in := make(map[int]bool, len(nodes))
		for _, v := range nodes {
			in[v] = true
		}
		for _, c := range components(bs, nodes, in, header) {
			if len(c) == 1 {
				number[c[0]] = n
				n++
				continue
			}
			place(c, entryOf(bs, c, nodes))
		}
	}
	place(all, -1)
	for v := range bs { // no lane gets to the rest, but block 0 must be first
		if !slices.Contains(all, v) {
			number[v] = n
			n++
		}
	}
	return number
}

// reachable are the blocks that the first leads to, itself included.
func reachable(bs []*block) []int {
	seen := make([]bool, len(bs))
	seen[0] = true
	out := []int{0}
	for k := 0; k < len(out); k++ {
		for _, v := range bs[out[k]].next {
			if !seen[v] {
				seen[v] = true
				out = append(out, v)
			}
		}
	}
	slices.Sort(out)
	return out
}

// entryOf is the block of a component that the others around it lead to; the first in the text if none does or several do.
func entryOf(bs []*block, c, around []int) int {
	in := map[int]bool{}
	for _, v := range c {
		in[v] = true
	}
	best := -1
	for _, u := range around {
		if in[u] {
			continue
		}
		for _, v := range bs[u].next {
			if in[v] && (best < 0 || v < best) {
				best = v
			}
		}
	}
	if best < 0 {
		best = slices.Min(c)
	}
	return best
}

// components are the strongly connected components among nodes, edges into the header left out, in topological order (Tarjan's algorithm).
func components(bs []*block, nodes []int, in map[int]bool, header int) [][]int {
	index, low, on := map[int]int{}, map[int]int{}, map[int]bool{}
	var stack []int
	var out [][]int
	var visit func(v int)
	visit = func(v int) {
		index[v] = len(index) + 1
		low[v] = index[v]
		stack = append(stack, v)
		on[v] = true
		for _, u := range bs[v].next {
			if !in[u] || u == header {
				continue
			}
			if index[u] == 0 {
				visit(u)
				low[v] = min(low[v], low[u])
			} else if on[u] {
				low[v] = min(low[v], index[u])
			}
		}
		if low[v] != index[v] {
			return
		}
		at := slices.Index(stack, v)
		c := slices.Clone(stack[at:])
		stack = stack[:at]
		for _, u := range c {
			on[u] = false
		}
		out = append(out, c)
	}
	if header >= 0 {
		visit(header)
	}
	for _, v := range nodes {
		if index[v] == 0 {
			visit(v)
		}
	}
	slices.Reverse(out)
	return out
}
