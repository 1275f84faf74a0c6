package passes

import (
	"aitk/ir"
	"aitk/ir/op"
)

// dequantize gives each reader of a quantized weight a float copy of its own, made right before it.
//
//	%5 = Dequantize %1 %2                     %3 = Dequantize %1 %2
//	%6 = MatMul{transB=true} %0 %5            %6 = MatMul{transB=true} %0 %3
//	...                                 ->    ...
//	%9 =b MatMul %8 %5                        %7 =b Dequantize %1 %2
//	                                          %9 =b MatMul %8 %7
//
// So the copy lives for one op, in forward and again in backward, in every plan: also in the unlimited one, which recomputes nothing. Left to
// the memory pass, a copy would be a value like others, kept where the budget allows, and quantizing could raise the peak.
//
// What only moves a copy about (views, transposes, slices, casts) is made again with it.
//
// Why a pass and not a property of the op: cse may merge equal nodes as long as it runs, which is what makes one copy serve the two uses that
// gradients often have of a weight; after late-cse nothing merges any more, and only then the copies are parted.
func dequantize() Pass {
	return Pass{
		Name:      "dequantize",
		Doc:       "make a quantized weight's floats right before each op that reads them",
		Takes:     Scheduled | WithinBudget | Placed,
		Preserves: Bits,
		Each:      true,
		Run: func(ctx *Context, g *ir.Graph) error {
			ctx.Count("copies", partCopies(g))
			return nil
		},
	}
}

// partCopies does the work and counts the copies.
func partCopies(g *ir.Graph) (copies int64) {
	family := make([]bool, g.NumValues()) // by value ID: a copy, or a copy moved about
	kept := g.Kept()
	nodes := g.Nodes
	for _, n := range nodes {
		if _, ok := n.Op.(op.Dequantize); ok || moves(n.Op) && family[n.In[0].ID] {
			family[n.Out[0].ID] = true
		}
	}
	g.Nodes = nil
	for _, n := range nodes {
		if len(n.Out) == 1 && family[n.Out[0].ID] && !kept[n.Out[0].ID] {
			continue // made where it is read
		}
		again := map[ir.ID]*ir.Value{}
		for i, v := range n.In {
			if int(v.ID) < len(family) && family[v.ID] {
				n.In[i] = copyFor(g, n, v, family, again, &copies)
			}
		}
		g.Nodes = append(g.Nodes, n)
	}
	return copies
}

// copyFor appends what makes v anew for node n.
func copyFor(g *ir.Graph, n *ir.Node, v *ir.Value, family []bool, again map[ir.ID]*ir.Value, copies *int64) *ir.Value {
	if w := again[v.ID]; w != nil {
		return w
	}
	in := append([]*ir.Value{}, v.Def.In...)
	if _, ok := v.Def.Op.(op.Dequantize); ok {
		*copies++
	} else {
		in[0] = copyFor(g, n, in[0], family, again, copies)
	}
	m, err := g.NewNode(v.Def.Op, in...)
	if err != nil {
		panic(ir.Bugf("dequantize: %v", err))
	}
	m.Phase, m.Origin = n.Phase, v.Def.Origin
	m.Out[0].Name = v.Name
	g.Nodes = append(g.Nodes, m)
	again[v.ID] = m.Out[0]
	return m.Out[0]
}
