package passes

import (
	"slices"

	"aitk/ir"
	"aitk/passes/cost"
	"aitk/passes/memory"
)

// step is a program as the memory solver sees it: its ops without views, over its storages. Solver values are storages, by the same index.
type step struct {
	memory.Problem
	g   *ir.Graph
	st  *Storages
	ops []*ir.Node // by solver op
}

// swapFloorBytes: smaller values are not worth a copy's fixed cost and never swapped.
const swapFloorBytes = 4096

// newStep states the memory problem of a scheduled program without constants, all of it on the device. homes tells, by parameter name, which
// parameters lie in the host arena between programs; nil leaves the choice to the solver.
func newStep(g *ir.Graph, prof *cost.Profile, homes map[string]bool) *step {
	s := &step{g: g, st: StoragesOf(g)}
	for _, x := range s.st.All {
		v := memory.Value{Bytes: roundUp(x.Bytes, prof.AlignBytes), Def: -1, Becomes: -1, NoSwap: x.Bytes < swapFloorBytes}
		if x.Kind == ParamStorage {
			v.Persistent = true
			if homes != nil {
				v.HostHome, v.HomeFixed = homes[x.Param.Name], true
			}
		}
		s.Values = append(s.Values, v)
	}
	for _, n := range g.Nodes {
		if ir.ViewOf(n) == nil {
			s.addOp(n, prof)
		}
	}
	for _, r := range g.Results {
		s.Values[s.st.Of[r.Value.ID]].Exit = true
	}
	for _, p := range g.Params {
		if p.Next != nil {
			next := s.st.Of[p.Next.ID]
			s.Values[s.st.Of[p.ID]].Becomes = next
			s.Values[next].Exit = true
		}
	}
	s.limitReruns()
	return s
}

func (s *step) addOp(n *ir.Node, prof *cost.Profile) {
	i := int32(len(s.ops))
	s.ops = append(s.ops, n)
	in, out := types(n.In), types(n.Out)
	o := memory.Op{
		Once:         ir.IsStateful(n.Op),
		Picos:        prof.ExecPicos(n.Op, in, out),
		ScratchBytes: roundUp(ir.WorkOf(n.Op, in, out).ScratchBytes, prof.AlignBytes),
	}
	for _, v := range n.In {
		if k := s.st.Of[v.ID]; !slices.Contains(o.In, k) {
			o.In = append(o.In, k)
		}
	}
	for _, v := range n.Out {
		k := s.st.Of[v.ID]
		s.Values[k].Def = i
		o.Out = append(o.Out, k)
	}
	for _, a := range ir.AliasesOf(n.Op) {
		if h, ok := couldTake(s.st, n, a); ok {
			o.Over = append(o.Over, memory.Over{Out: h.Out, In: h.In})
		}
	}
	s.Ops = append(s.Ops, o)
}

// limitReruns sets LastRerun: an op that reads a parameter may run again only up to the op that makes its new content.
func (s *step) limitReruns() {
	for i := range s.Ops {
		last := int32(len(s.Ops))
		for _, v := range s.Ops[i].In {
			if b := s.Values[v].Becomes; s.Values[v].Persistent && b >= 0 {
				last = min(last, s.Values[b].Def)
			}
		}
		s.Ops[i].LastRerun = last
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
