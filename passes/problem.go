package passes

import (
	"slices"

	"aitk/ir"
	"aitk/passes/cost"
	"aitk/passes/memory"
)

// problem is a program as the memory solver sees it: its nodes without views are the solver's ops, its storages the solver's values, by
// the same index. The graph is kept beside it, because the solution is written into it (residence.go).
type problem struct {
	memory.Problem
	g   *ir.Graph
	st  *Storages
	ops []*ir.Node // by solver op
}

// swapFloorBytes: smaller values are not worth a copy's fixed cost and are never swapped.
const swapFloorBytes = 4096

// newProblem states the memory problem of a scheduled program without constants, all of it on the device. homes tells, by parameter name, which
// parameters lie in the host arena between programs; nil leaves the choice to the solver.
func newProblem(g *ir.Graph, prof *cost.Profile, homes map[string]bool) *problem {
	p := &problem{g: g, st: StoragesOf(g)}
	for _, x := range p.st.All {
		v := memory.Value{Bytes: roundUp(x.Bytes, prof.AlignBytes), Def: -1, Becomes: -1, NoSwap: x.Bytes < swapFloorBytes}
		if x.Kind == ParamStorage {
			v.Persistent = true
			if homes != nil {
				v.HostHome, v.HomeFixed = homes[x.Param.Name], true
			}
		}
		p.Values = append(p.Values, v)
	}
	for _, n := range g.Nodes {
		if ir.ViewOf(n) == nil {
			p.addOp(n, prof)
		}
	}
	for _, r := range g.Results {
		p.Values[p.st.Of[r.Value.ID]].Exit = true
	}
	for _, q := range g.Params {
		if q.Next != nil {
			next := p.st.Of[q.Next.ID]
			p.Values[p.st.Of[q.ID]].Becomes = next
			p.Values[next].Exit = true
		}
	}
	p.limitReruns()
	return p
}

// changedElsewhere marks the parameters that this program only reads and another one of the plan updates: weights in a step whose updates stand in a
// program of their own, and in evaluation.
func (p *problem) changedElsewhere(programs []*ir.Graph) {
	for _, g := range programs {
		for _, q := range g.Params {
			if own := p.g.Param(q.Name); q.Next != nil && own != nil && own.Next == nil {
				p.Values[p.st.Of[own.ID]].Changes = true
			}
		}
	}
}

// addOp appends a node that is no view. Whether it may write over an operand is asked of the node alone (couldTake): the solver knows lives.
func (p *problem) addOp(n *ir.Node, prof *cost.Profile) {
	i := int32(len(p.ops))
	p.ops = append(p.ops, n)
	in, out := types(n.In), types(n.Out)
	o := memory.Op{
		Once:         ir.IsStateful(n.Op),
		Picos:        prof.ExecPicos(n.Op, in, out),
		ScratchBytes: roundUp(prof.ScratchBytes(n.Op, in, out), prof.AlignBytes),
	}
	for _, v := range n.In {
		if k := p.st.Of[v.ID]; !slices.Contains(o.In, k) {
			o.In = append(o.In, k)
		}
	}
	for _, v := range n.Out {
		k := p.st.Of[v.ID]
		p.Values[k].Def = i
		o.Out = append(o.Out, k)
	}
	for _, a := range ir.AliasesOf(n.Op) {
		if h, ok := couldTake(p.st, n, a); ok {
			o.Over = append(o.Over, memory.Over{Out: h.Out, In: h.In})
		}
	}
	p.Ops = append(p.Ops, o)
}

// limitReruns sets LastRerun: an op that reads a parameter may run again only up to the op that makes its new content.
func (p *problem) limitReruns() {
	for i := range p.Ops {
		last := int32(len(p.Ops))
		for _, v := range p.Ops[i].In {
			if b := p.Values[v].Becomes; p.Values[v].Persistent && b >= 0 {
				last = min(last, p.Values[b].Def)
			}
		}
		p.Ops[i].LastRerun = last
	}
}

func types(vs []*ir.Value) []ir.Type {
	out := make([]ir.Type, len(vs))
	for i, v := range vs {
		out[i] = v.Type
	}
	return out
}

func roundUp(n, unit int64) int64 { return (n + unit - 1) / unit * unit }
