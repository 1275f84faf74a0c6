package passes

import (
	"slices"

	"aitk/ir"
	"aitk/ir/op"
)

// keepOld copies the content of a parameter for those who read it when its bytes may hold it no more: nodes behind the update, whose result takes
// the place of the old content; the update itself, where it cannot write over what it reads; and results, which the caller reads when all is done
// and a parameter may lie in host memory.
//
//	update %1 %7                       %6 = Cast %1
//	%7 = MovingAverage %1 %2           %7 = MovingAverage %1 %2
//	%8 = Sqrt %1               ->      %8 = Sqrt %6
//	result "mean" %1                   result "mean" %6
//
// The optimizer stands behind every reader and no result of a training step is a weight, so this is for graphs that were written otherwise.
func keepOld(g *ir.Graph) {
	of := map[*ir.Value]*ir.Param{} // parameters and their views
	updates := map[*ir.Node][]*ir.Param{}
	for _, p := range g.Params {
		of[p.Value] = p
		if p.Next != nil && p.Next.Def != nil && ir.ViewOf(p.Next.Def) == nil {
			updates[p.Next.Def] = append(updates[p.Next.Def], p)
		}
	}
	changed, wanted, apart := map[*ir.Param]bool{}, map[*ir.Param]bool{}, map[*ir.Param]bool{}
	st := StoragesOf(g)
	for _, n := range g.Nodes {
		for _, v := range n.In {
			if p := of[v]; changed[p] {
				wanted[p] = true
			}
		}
		if x := ir.ViewOf(n); x != nil && of[x] != nil {
			of[n.Out[0]] = of[x]
		}
		for _, p := range updates[n] {
			changed[p] = true
			apart[p] = slices.ContainsFunc(n.In, func(v *ir.Value) bool { return of[v] == p }) && !writesOver(st, n, p)
		}
	}
	for _, r := range g.Results {
		if p := of[r.Value]; p != nil && p.Type.DType != ir.I4 { // a packed weight has no Cast, and Dequantize alone reads it
			wanted[p] = true
		}
	}
	for _, p := range g.Params {
		switch {
		case apart[p]:
			at := slices.Index(g.Nodes, p.Next.Def)
			keepOldOf(g, p, at, at)
		case wanted[p] && changed[p]:
			at := slices.Index(g.Nodes, p.Next.Def)
			keepOldOf(g, p, at, at+1)
		case wanted[p]:
			keepOldOf(g, p, len(g.Nodes), len(g.Nodes))
		}
	}
}

// writesOver tells whether n, which reads p and makes its new content, writes it over the old one whatever else dies there: no other operand may be
// the first that it could take.
func writesOver(st *Storages, n *ir.Node, p *ir.Param) bool {
	for _, a := range ir.AliasesOf(n.Op) {
		if h, ok := couldTake(st, n, a); ok && n.Out[a.Out] == p.Next {
			return h.In == st.Of[p.Value.ID]
		}
	}
	return false
}

// keepOldOf copies p in front of node number at, which makes the new content, if any does; nodes from number from on and results read the copy.
func keepOldOf(g *ir.Graph, p *ir.Param, at, from int) {
	same := map[*ir.Value]bool{p.Value: true} // the parameter and its views in front of the update
	for _, n := range g.Nodes[:at] {
		if x := ir.ViewOf(n); x != nil && same[x] {
			same[n.Out[0]] = true
		}
	}
	var made []*ir.Node // the copy and views of it
	copies := map[*ir.Value]*ir.Value{}
	add := func(o ir.Op, in *ir.Value) *ir.Value {
		n, err := g.NewNode(o, in)
		if err != nil {
			panic(ir.Bugf("copy of the old content of %q: %v", p.Name, err))
		}
		if at < len(g.Nodes) {
			n.Phase, n.Origin = g.Nodes[at].Phase, g.Nodes[at].Origin
		}
		made = append(made, n)
		return n.Out[0]
	}
	kept := func(v *ir.Value) *ir.Value {
		if !same[v] {
			return v
		}
		if copies[p.Value] == nil {
			copies[p.Value] = add(op.Cast{To: p.Type.DType}, p.Value)
		}
		if copies[v] == nil {
			copies[v] = add(op.Reshape{Shape: v.Type.Shape}, copies[p.Value])
		}
		return copies[v]
	}
	for _, n := range g.Nodes[from:] {
		for i, v := range n.In {
			n.In[i] = kept(v)
		}
	}
	for i, r := range g.Results {
		g.Results[i].Value = kept(r.Value)
	}
	g.Nodes = slices.Insert(g.Nodes, at, made...)
}
