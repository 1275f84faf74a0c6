package passes

import (
	"cmp"
	"slices"

	"aitk/ir"
	"aitk/ir/op"
	"aitk/passes/memory"
)

// writeResidence writes a memory decision into the program: recomputes become clones of their nodes, swaps become SwapOut, SwapWait and
// SwapIn nodes, and every use is served by the latest residence of its value. Everything stays in the graph, so the verifier, the text
// form and the reference interpreter cover it. needs: scheduled; p built from its graph as it is; it rebuilds the graph's node list.
//
// At the boundary before op t, in this order: swap-outs of values last used by op t-1, waits for swap-outs whose bytes stage t may take, swap-ins,
// recomputes of stage t in op order, op t. A lane is first in, first out, so the copies of one boundary are issued in the order that the
// solver's clock assumed: those out by when their bytes must be free, those in by when they are used.
//
//	%3 = Relu %2                      %3 = Relu %2
//	...                               %4 = SwapOut %3 : pinned        (gap begins)
//	...                               SwapWait %3 %4                  (bytes free)
//	...                               %9 =b SwapIn %4
//	%8 =b ReluGrad %3 %7      ->      %8 =b ReluGrad %9 %7
func writeResidence(p *problem, sol *memory.Solution) {
	w := &residence{problem: p, sol: sol, now: make([]*ir.Value, len(p.Values)), onHost: make([]*ir.Value, len(p.Values)),
		home: make([]bool, len(p.Values)), base: make([]*ir.Value, p.g.NumValues()), views: make([]viewCopy, p.g.NumValues())}
	for k, x := range p.st.All {
		w.now[k] = x.Root
	}
	for _, n := range p.g.Nodes {
		if v := ir.ViewOf(n); v != nil {
			w.base[n.Out[0].ID] = v
		}
	}
	for _, n := range p.ops {
		w.reads = append(w.reads, append([]*ir.Value{}, n.In...))
	}
	w.goHome()
	w.run()
	w.finish()
}

// viewCopy is a view over the residence that its base had when it was last read.
type viewCopy struct{ base, view *ir.Value }

// residence carries writeResidence. A *residence* of a value is one stay of its content on the device: as it was made, brought in or made again.
type residence struct {
	*problem
	sol    *memory.Solution
	reads  [][]*ir.Value // by solver op: its operands in the program as it was
	base   []*ir.Value   // by value ID: what a view looked at in the program as it was; nil for no view
	now    []*ir.Value   // by solver value: its present residence on the device
	onHost []*ir.Value   // by solver value: a copy of its content in the host arena, nil if none
	views  []viewCopy    // by value ID of a view
	home   []bool        // by solver value: its home is the host
	phase  ir.Phase      // of what is written now: that of the op in front of which it stands
}

// goHome moves the parameters whose home is the host into its arena.
func (w *residence) goHome() {
	if w.sol.HostHome == nil {
		return
	}
	for k, x := range w.st.All {
		if w.sol.HostHome[k] {
			w.home[k] = true
			x.Root.Type.Space = ir.Pinned
			w.onHost[k], w.now[k] = x.Root, nil
		}
	}
}

// shadow is the host copy of an unchanged parameter that lives on the device between steps, a parameter of its own.
func (w *residence) shadow(k int32) *ir.Value {
	p := w.st.All[k].Param
	q := w.g.AddParam(p.Name+"$host", p.Type)
	q.Type.Space = ir.Pinned
	q.Role, q.Of, q.Init, q.Reason = ir.Shadow, p.Name, p.Init, "host copy of a parameter that is swapped in"
	return q.Value
}

// byStage lists the swaps of the solution, by the stage in whose beginning they act: copies out, waits for them, copies in.
func (w *residence) byStage() (outs, waits, ins [][]int) {
	n := len(w.ops)
	outs, waits, ins = make([][]int, n+1), make([][]int, n+1), make([][]int, n+1)
	for i, sw := range w.sol.Swaps {
		if sw.Write {
			outs[sw.After+1] = append(outs[sw.After+1], i)
			waits[sw.Free] = append(waits[sw.Free], i)
		}
		ins[sw.Before] = append(ins[sw.Before], i)
	}
	order := func(list []int, stage func(*memory.Swap) int32) {
		slices.SortFunc(list, func(i, j int) int {
			a, b := &w.sol.Swaps[i], &w.sol.Swaps[j]
			return cmp.Or(cmp.Compare(stage(a), stage(b)), cmp.Compare(a.Value, b.Value))
		})
	}
	for t := range n + 1 {
		order(outs[t], func(s *memory.Swap) int32 { return s.Free })
		order(ins[t], func(s *memory.Swap) int32 { return s.Use })
	}
	return outs, waits, ins
}

// run rebuilds the node list, boundary by boundary.
func (w *residence) run() {
	n := len(w.ops)
	outs, waits, ins := w.byStage()
	w.g.Nodes = nil
	left := make([]*ir.Value, len(w.sol.Swaps)) // by swap: what it copied out
	r := 0                                      // next recompute
	for t := range n + 1 {
		if t < n {
			w.phase = w.ops[t].Phase
		}
		for _, i := range outs[t] {
			k := w.leaves(w.sol.Swaps[i])
			left[i] = w.now[k]
			w.onHost[k] = w.add(op.SwapOut{To: ir.Pinned}, w.now[k])[0]
		}
		for _, i := range waits[t] {
			w.add(op.SwapWait{}, left[i], w.onHost[w.leaves(w.sol.Swaps[i])])
		}
		for _, i := range ins[t] {
			k := w.sol.Swaps[i].Value
			if w.onHost[k] == nil {
				w.onHost[k] = w.shadow(k)
			}
			w.now[k] = w.add(op.SwapIn{}, w.onHost[k])[0]
		}
		for ; r < len(w.sol.Recomputes) && int(w.sol.Recomputes[r].Stage) == t; r++ {
			j := w.sol.Recomputes[r].Op
			m := w.again(w.ops[j], w.getAll(w.reads[j]))
			for i, v := range w.ops[j].Out {
				w.now[w.st.Of[v.ID]] = m.Out[i]
			}
		}
		if t < n {
			w.ops[t].In = w.getAll(w.reads[t])
			w.g.Nodes = append(w.g.Nodes, w.ops[t])
		}
	}
}

// leaves is the value that a swap copies out: a parameter's new content where the step made one.
func (w *residence) leaves(sw memory.Swap) int32 {
	if b := w.Values[sw.Value].Becomes; sw.Wraps && b >= 0 {
		return b
	}
	return sw.Value
}

// get is v, a value of the program as it was, as it is to be read now: the present residence of its storage, through views made anew where the residence is a new one.
func (w *residence) get(v *ir.Value) *ir.Value {
	if w.base[v.ID] == nil {
		return w.now[w.st.Of[v.ID]]
	}
	base := w.get(w.base[v.ID])
	c := &w.views[v.ID]
	switch {
	case c.base == base:
	case c.base == nil: // the view itself, where it is first read
		v.Def.In = []*ir.Value{base}
		w.g.Nodes = append(w.g.Nodes, v.Def)
		*c = viewCopy{base, v}
	default:
		*c = viewCopy{base, w.again(v.Def, []*ir.Value{base}).Out[0]}
	}
	return c.view
}

func (w *residence) getAll(vs []*ir.Value) []*ir.Value {
	out := make([]*ir.Value, len(vs))
	for i, v := range vs {
		out[i] = w.get(v)
	}
	return out
}

// again appends a copy of n.
func (w *residence) again(n *ir.Node, in []*ir.Value) *ir.Node {
	m, err := w.g.NewNode(n.Op, in...)
	if err != nil {
		panic(ir.Bugf("recompute of %s: %v", ir.OpName(n.Op), err))
	}
	m.Phase, m.Origin, m.CopyOf = w.phase, n.Origin, n
	w.g.Nodes = append(w.g.Nodes, m)
	return m
}

func (w *residence) add(o ir.Op, in ...*ir.Value) []*ir.Value {
	b := ir.Builder{G: w.g, Phase: w.phase, Origin: ir.Origin{Node: in[0].Name}}
	if in[0].Def != nil {
		b.Origin = in[0].Def.Origin
	}
	return b.Multi(o, in...)
}

// finish points results and new contents at where they lie when the program ends.
func (w *residence) finish() {
	for i, r := range w.g.Results {
		w.g.Results[i].Value = w.get(r.Value)
	}
	for _, p := range w.g.Params {
		if p.Role == ir.Shadow {
			continue
		}
		k := w.st.Of[p.ID]
		switch {
		case p.Next != nil && w.home[k]:
			p.Next = w.onHost[w.Values[k].Becomes]
		case p.Next != nil:
			p.Next = w.get(p.Next)
		case !w.home[k] && w.now[k] != p.Value: // it left and came back
			p.Next = w.now[k]
		}
	}
}
