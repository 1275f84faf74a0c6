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
			ctx.Count("copies", partCopies(g, false))
			return nil
		},
	}
}

// partCopies does the work and counts the copies. Below "schedule" it is called once more where recomputes were written into a program: the
// memory pass takes a copy for a value like others and may hold it for two readers, or make it long before its reader. There a copy made again
// is a recompute of the first one. Codes then live as long as the copy did before; they are smaller.
func partCopies(g *ir.Graph, scheduled bool) int64 {
	p := &parting{g: g, scheduled: scheduled, family: make([]bool, g.NumValues()), first: map[*ir.Node]*ir.Node{}, present: map[string]*ir.Value{}}
	kept := g.Kept()
	nodes := g.Nodes
	for _, n := range nodes {
		if _, ok := n.Op.(op.Dequantize); ok || moves(n.Op) && p.family[n.In[0].ID] {
			p.family[n.Out[0].ID] = !kept[n.Out[0].ID]
		}
	}
	g.Nodes = nil
	for _, n := range nodes {
		if len(n.Out) == 1 && p.family[n.Out[0].ID] {
			continue // made where it is read
		}
		if _, ok := n.Op.(op.SwapIn); ok {
			if name := p.owner(n.In[0]); name != "" {
				p.present[name] = n.Out[0]
			}
		}
		again := map[ir.ID]*ir.Value{}
		for i, v := range n.In {
			if int(v.ID) < len(p.family) && p.family[v.ID] {
				n.In[i] = p.copy(n, v, again)
			}
		}
		g.Nodes = append(g.Nodes, n)
	}
	return p.copies
}

// parting carries partCopies.
type parting struct {
	g         *ir.Graph
	scheduled bool
	family    []bool                // by value ID: a copy, or a copy moved about
	first     map[*ir.Node]*ir.Node // by the node as it was at first: what stands for it now, where its copies are recomputes
	present   map[string]*ir.Value  // by parameter: where it was swapped in last
	copies    int64
}

// owner is the name of the parameter whose content v is, "" for other values.
func (p *parting) owner(v *ir.Value) string {
	for _, q := range p.g.Params {
		if q.Value == content(v) {
			if q.Role == ir.Shadow {
				return q.Of
			}
			return q.Name
		}
	}
	return ""
}

// copy appends what makes v anew for node n.
func (p *parting) copy(n *ir.Node, v *ir.Value, again map[ir.ID]*ir.Value) *ir.Value {
	if w := again[v.ID]; w != nil {
		return w
	}
	in := append([]*ir.Value{}, v.Def.In...)
	if int(in[0].ID) < len(p.family) && p.family[in[0].ID] {
		in[0] = p.copy(n, in[0], again)
	} else {
		p.copies++
		for i, q := range in { // the residence that its codes have now, not the one at the place where the copy stood
			if now := p.present[p.owner(q)]; now != nil {
				in[i] = now
			}
		}
	}
	m, err := p.g.NewNode(v.Def.Op, in...)
	if err != nil {
		panic(ir.Bugf("dequantize: %v", err))
	}
	m.Phase, m.Origin = n.Phase, v.Def.Origin
	m.Out[0].Name = v.Name
	if p.scheduled {
		root := v.Def
		if root.CopyOf != nil {
			root = root.CopyOf
		}
		if m.CopyOf = p.first[root]; m.CopyOf == nil {
			p.first[root] = m
		}
	}
	p.g.Nodes = append(p.g.Nodes, m)
	again[v.ID] = m.Out[0]
	return m.Out[0]
}
