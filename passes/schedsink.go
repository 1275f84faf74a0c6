package passes

import (
	"math"
	"slices"

	"aitk/ir"
)

// sink moves nodes down to right before their first reader where that costs nothing: their own result lives shorter, and each operand's
// storage lives at least as long for another reader's sake.
//
//	%3 = Transpose %1        (%1 a parameter, so alive all through)     ->   moves in front of %90
//	...
//	%90 = MatMul %80 %3
//
// The walk is from the last node to the first, so the places of all readers are final when a node is looked at, and a chain sinks as a
// whole. Stateful nodes stay, since what they update is ordered by precede and gains nothing; results stay, since they live to the end.
func sink(g *ir.Graph, s *Storages, order []*ir.Node) []*ir.Node {
	k := &sinker{s: s, lazy: lazyNodes(g), users: make([][]*ir.Node, g.NumNodes()), place: make([]int32, g.NumNodes()), lastUse: make([]int32, len(s.All))}
	for i := range k.lastUse {
		k.lastUse[i] = -1
		if kind := s.All[i].Kind; kind == ParamStorage || kind == ConstStorage {
			k.lastUse[i] = math.MaxInt32
		}
	}
	for id, kept := range g.Kept() {
		if kept {
			k.lastUse[s.Of[id]] = math.MaxInt32
		}
	}
	for _, n := range order {
		for _, v := range n.In {
			if v.Def != nil {
				k.users[v.Def.ID] = append(k.users[v.Def.ID], n)
			}
		}
	}
	before := precede(g, s, order)
	for _, m := range order {
		for _, n := range before[m.ID] {
			k.users[n.ID] = append(k.users[n.ID], m)
		}
	}
	for i := len(order) - 1; i >= 0; i-- {
		k.settle(order[i], int32(i))
	}
	// Nodes of one place keep their order before the node that stands there by right.
	sorted := slices.Clone(order)
	slices.SortStableFunc(sorted, func(a, b *ir.Node) int { return int(k.place[a.ID]) - int(k.place[b.ID]) })
	return sorted
}

type sinker struct {
	s       *Storages
	lazy    []bool
	users   [][]*ir.Node // by node ID
	place   []int32      // by node ID: position before which it stands; its own where it did not move
	lastUse []int32      // by storage: the last place of a reader that has been settled
}

// settle gives a node its final place.
func (k *sinker) settle(n *ir.Node, at int32) {
	first := int32(math.MaxInt32)
	for _, u := range k.users[n.ID] {
		first = min(first, k.place[u.ID])
	}
	k.place[n.ID] = at
	if first != math.MaxInt32 && k.free(n, first) {
		k.place[n.ID] = first
	}
	if ir.ViewOf(n) != nil {
		return // reads nothing itself: its readers read the storage
	}
	for _, v := range n.In {
		st := k.s.Of[v.ID]
		k.lastUse[st] = max(k.lastUse[st], k.place[n.ID])
	}
}

// free tells whether n may stand at a later place without making anything live longer.
func (k *sinker) free(n *ir.Node, place int32) bool {
	if k.lazy[n.ID] {
		return true
	}
	if ir.IsStateful(n.Op) {
		return false
	}
	for _, v := range n.In {
		if k.lastUse[k.s.Of[v.ID]] < place {
			return false
		}
	}
	return true
}
