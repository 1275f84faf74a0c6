package passes

import (
	"encoding/binary"
	"fmt"
	"hash/maphash"
	"slices"

	"aitk/ir"
	"aitk/ir/op"
)

// cse merges nodes that compute the same: equal op and attributes, the same operands. Literals of equal type and bytes are merged first.
//
//	%2 = Add %0 %1
//	%3 = Add %1 %0           (gone: Add commutes, operands are compared in ID order)
//	%4 = Mul %2 %3           becomes Mul %2 %2
//
// Never merged: stateful ops (each runs exactly once); ops of different random streams, since the stream is an attribute; and a node that
// makes the new content of a parameter, because two parameters cannot end in one place. The earlier node stays, so order is kept.
func cse(name string) Pass {
	return Pass{
		Name:      name,
		Doc:       "compute equal things once",
		Takes:     Scheduled | WithinBudget | Placed,
		Preserves: Bits,
		Each:      true,
		Run: func(ctx *Context, g *ir.Graph) error {
			nodes, consts := mergeEqual(g)
			ctx.Count("nodes merged", nodes)
			ctx.Count("constants merged", consts)
			return nil
		},
	}
}

func mergeEqual(g *ir.Graph) (nodes, consts int64) {
	sub := make([]*ir.Value, g.NumValues())
	find := func(v *ir.Value) *ir.Value {
		if w := sub[v.ID]; w != nil {
			return w
		}
		return v
	}
	consts = mergeConsts(g, sub)
	next := nextOf(g)
	seen := make(map[string]*ir.Node, len(g.Nodes))
	kept := g.Nodes[:0:0]
	for _, n := range g.Nodes {
		for i, v := range n.In {
			n.In[i] = find(v)
		}
		if !mergeable(n, next) {
			kept = append(kept, n)
			continue
		}
		key := nodeKey(n)
		first, ok := seen[key]
		if !ok {
			seen[key] = n
			kept = append(kept, n)
			continue
		}
		for i, v := range n.Out {
			sub[v.ID] = first.Out[i]
		}
		nodes++
	}
	g.Nodes = kept
	g.Replace(sub)
	return nodes, consts
}

func mergeable(n *ir.Node, next []bool) bool {
	if len(n.Out) == 0 || ir.IsStateful(n.Op) {
		return false
	}
	for _, v := range n.Out {
		if next[v.ID] || v.Type.Space != ir.Device {
			return false
		}
	}
	return true
}

// nextOf marks, by value ID, the new contents of parameters.
func nextOf(g *ir.Graph) []bool {
	next := make([]bool, g.NumValues())
	for _, p := range g.Params {
		if p.Next != nil {
			next[p.Next.ID] = true
		}
	}
	return next
}

// mergeConsts maps literals to the first one of equal content.
func mergeConsts(g *ir.Graph, sub []*ir.Value) int64 {
	seed := maphash.MakeSeed() // only groups: which literal stays does not depend on it
	byHash := make(map[uint64][]*ir.Const)
	kept := g.Consts[:0:0]
	next := nextOf(g)
	for _, c := range g.Consts {
		h := maphash.Bytes(seed, c.Data)
		i := slices.IndexFunc(byHash[h], func(d *ir.Const) bool { return d.Type.Equal(c.Type) && string(d.Data) == string(c.Data) })
		if i < 0 || next[c.ID] {
			byHash[h] = append(byHash[h], c)
			kept = append(kept, c)
			continue
		}
		sub[c.ID] = byHash[h][i].Value
	}
	merged := int64(len(g.Consts) - len(kept))
	g.Consts = kept
	return merged
}

// nodeKey is equal for nodes that compute the same. Attributes print unambiguously in Go syntax; the exact type of the operands is
// implied by their IDs.
func nodeKey(n *ir.Node) string {
	ids := make([]ir.ID, len(n.In))
	for i, v := range n.In {
		ids[i] = v.ID
	}
	if commutes(n.Op) {
		slices.Sort(ids)
	}
	key := fmt.Appendf(nil, "%#v\x00", n.Op)
	for _, id := range ids {
		key = binary.LittleEndian.AppendUint32(key, uint32(id))
	}
	return string(key)
}

// commutes tells whether swapping the two operands changes no bit of the result.
func commutes(o ir.Op) bool {
	switch o.(type) {
	case op.Add, op.Mul, op.Max, op.Min, op.Equal, op.And, op.Or, op.Xor:
		return true
	}
	return false
}
