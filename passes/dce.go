package passes

import (
	"strings"

	"aitk/ir"
)

// dce removes nodes that no result and no new content of a parameter needs, then constants and reserved inputs that nothing reads.
//
//	%2 = Exp %0              (gone)
//	%3 = Relu %0
//	result "y" = %3
//
// Nodes without outputs (SwapWait) stay: they are there for their effect. Parameters and the model's own inputs stay, since they are the
// graph's face to the outside.
func dce(name string) Pass {
	return Pass{
		Name:      name,
		Doc:       "remove what no result needs",
		Preserves: Bits,
		Each:      true,
		Run: func(ctx *Context, g *ir.Graph) error {
			nodes, leaves := removeDead(g)
			ctx.Count("nodes removed", nodes)
			ctx.Count("constants and inputs removed", leaves)
			return nil
		},
	}
}

// removeDead does the work of dce and counts removed nodes and leaves.
func removeDead(g *ir.Graph) (nodes, leaves int64) {
	live := g.Kept()
	keep := make([]bool, len(g.Nodes))
	for i := len(g.Nodes) - 1; i >= 0; i-- {
		n := g.Nodes[i]
		keep[i] = len(n.Out) == 0
		for _, v := range n.Out {
			keep[i] = keep[i] || live[v.ID]
		}
		if keep[i] {
			for _, v := range n.In {
				live[v.ID] = true
			}
		}
	}
	kept := g.Nodes[:0:0]
	for i, n := range g.Nodes {
		if keep[i] {
			kept = append(kept, n)
		}
	}
	nodes = int64(len(g.Nodes) - len(kept))
	g.Nodes = kept

	consts := g.Consts[:0:0]
	for _, c := range g.Consts {
		if live[c.ID] {
			consts = append(consts, c)
		}
	}
	inputs := g.Inputs[:0:0]
	for _, v := range g.Inputs {
		if live[v.ID] || !strings.HasPrefix(v.Name, "$") {
			inputs = append(inputs, v)
		}
	}
	leaves = int64(len(g.Consts) - len(consts) + len(g.Inputs) - len(inputs))
	g.Consts, g.Inputs = consts, inputs
	return nodes, leaves
}
