package ir

// Clone copies a graph so that neither can change the other; ops and literal bytes, which never change, are shared. IDs stay.
func (g *Graph) Clone() *Graph {
	c := &Graph{Name: g.Name, numValues: g.numValues, numNodes: g.numNodes}
	values := make([]*Value, g.numValues)
	copyValue := func(v *Value) *Value {
		w := *v
		w.Type.Shape = v.Type.Shape.Clone()
		values[v.ID] = &w
		return &w
	}
	for _, v := range g.Inputs {
		c.Inputs = append(c.Inputs, copyValue(v))
	}
	for _, p := range g.Params {
		q := *p
		q.Value = copyValue(p.Value)
		c.Params = append(c.Params, &q)
	}
	for _, k := range g.Consts {
		c.Consts = append(c.Consts, &Const{Value: copyValue(k.Value), Data: k.Data})
	}
	nodes := make([]*Node, g.numNodes)
	for _, n := range g.Nodes {
		m := *n
		m.In = make([]*Value, len(n.In))
		for i, v := range n.In {
			m.In[i] = values[v.ID]
		}
		m.Out = make([]*Value, len(n.Out))
		for i, v := range n.Out {
			m.Out[i] = copyValue(v)
			m.Out[i].Def = &m
		}
		if n.CopyOf != nil {
			m.CopyOf = nodes[n.CopyOf.ID]
		}
		nodes[n.ID] = &m
		c.Nodes = append(c.Nodes, &m)
	}
	for _, r := range g.Results {
		c.Results = append(c.Results, Result{r.Name, values[r.Value.ID]})
	}
	for _, p := range c.Params {
		if p.Next != nil {
			p.Next = values[p.Next.ID]
		}
	}
	return c
}
