package passes

import (
	"slices"

	"aitk/ir"
)

// ownNext gives each parameter a new content that no other parameter shares, since each must have it at a home of its own.
//
//	%4 = Fill                          %4 = Fill
//	update %0 %4               ->      %5 = Fill
//	update %1 %4                       update %0 %4
//	                                   update %1 %5
//
// cse does not merge such nodes (two zero fills are equal), so this is for graphs that were written so. What it cannot run twice without harm
// is a bug of the pass that made it.
func ownNext(g *ir.Graph) {
	taken := map[*ir.Value]bool{}
	for _, p := range g.Params {
		if p.Next == nil {
			continue
		}
		if taken[p.Next] {
			p.Next = madeAgain(g, p)
		}
		taken[p.Next] = true
	}
}

// madeAgain runs the node that makes p's new content once more and returns the second one.
func madeAgain(g *ir.Graph, p *ir.Param) *ir.Value {
	first := p.Next.Def
	if first == nil || ir.IsStateful(first.Op) {
		panic(ir.Bugf("parameter %q shares its new content with another", p.Name))
	}
	n, err := g.NewNode(first.Op, first.In...)
	if err != nil {
		panic(ir.Bugf("new content of %q: %v", p.Name, err))
	}
	n.Phase, n.Origin = first.Phase, first.Origin
	g.Nodes = slices.Insert(g.Nodes, slices.Index(g.Nodes, first)+1, n)
	return n.Out[p.Next.Index]
}
