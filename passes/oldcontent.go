package passes

import (
	"slices"

	"aitk/ir"
	"aitk/ir/op"
)

// keepOld copies the old content of a parameter for those who read it after the new content is made, which takes its place: nodes that stand behind
// the update, and results, which the caller reads when all is done.
//
//	update %1 %7                       %6 = Cast %1
//	%7 = MovingAverage %1 %2           %7 = MovingAverage %1 %2
//	%8 = Sqrt %1               ->      %8 = Sqrt %6
//	result "mean" %1                   result "mean" %6
//
// The optimizer stands behind every reader and no result of a training step is a weight, so this is for graphs that were written otherwise.
func keepOld(g *ir.Graph) {
	for _, p := range g.Params {
		if p.Next != nil && p.Next.Def != nil && ir.ViewOf(p.Next.Def) == nil {
			keepOldOf(g, p)
		}
	}
}

func keepOldOf(g *ir.Graph, p *ir.Param) {
	update := p.Next.Def
	at := slices.Index(g.Nodes, update)
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
		n.Phase, n.Origin = update.Phase, update.Origin
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
	for _, n := range g.Nodes[at+1:] {
		for i, v := range n.In {
			n.In[i] = kept(v)
		}
	}
	for i, r := range g.Results {
		g.Results[i].Value = kept(r.Value)
	}
	g.Nodes = slices.Insert(g.Nodes, at, made...)
}
