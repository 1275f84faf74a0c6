package passes

import (
	"aitk/ir"
)

// schedule orders the nodes of each program for a low peak. It starts from the order as it stands (the exporter's, then the backward half
// in reverse, then updates behind their gradients) and tries two moves, see schedsink.go and schedhoist.go:
//
//   - sink: a node whose operands stay alive anyway moves down to its first reader. Generators (Fill, Iota) and views always do.
//   - hoist: a node that frees more bytes than it needs moves up to where its last operand is ready.
//
// Of the orders so made the one with the lowest peak wins; on a tie the least byte-time, then the one nearer to the start. So the result is
// never worse than what came in. Everything is decided by positions and bytes: the same graph gives the same order.
//
// Besides operands an order respects the places of parameters: whoever reads an old content stands before the node that makes the new one,
// wherever that was so before.
func schedule() Pass {
	return Pass{
		Name:      "schedule",
		Doc:       "order the nodes for a low peak",
		Gives:     Scheduled,
		Takes:     WithinBudget | Placed,
		Preserves: Bits,
		Required:  true,
		Each:      true,
		Run: func(ctx *Context, g *ir.Graph) error {
			before := Live(g, nil, nil)
			order, l := bestOrder(g, before)
			ctx.Count("peak bytes before", before.PeakBytes)
			ctx.Count("peak bytes after", l.PeakBytes)
			ctx.Stats[len(ctx.Stats)-1].PeakBytes = l.PeakBytes
			g.Nodes = order
			return nil
		},
	}
}

// bestOrder tries the candidates and returns the best with its liveness.
func bestOrder(g *ir.Graph, start *Liveness) ([]*ir.Node, *Liveness) {
	s := start.Storages
	best, bestLive := g.Nodes, start
	consider := func(order []*ir.Node) {
		if l := Live(g, s, order); l.better(bestLive) {
			best, bestLive = order, l
		}
	}
	sunk := sink(g, s, g.Nodes)
	consider(sunk)
	consider(hoist(g, s, g.Nodes))
	consider(hoist(g, s, sunk))
	return best, bestLive
}

// better compares peaks, then byte-time.
func (l *Liveness) better(than *Liveness) bool {
	if l.PeakBytes != than.PeakBytes {
		return l.PeakBytes < than.PeakBytes
	}
	return l.byteTime() < than.byteTime()
}

// byteTime is the sum of live bytes over all positions that take time; a terabyte over a million nodes still fits.
func (l *Liveness) byteTime() (sum int64) {
	for t, n := range l.Order {
		if ir.ViewOf(n) == nil {
			sum += l.LiveBytes[t]
		}
	}
	return sum
}

// precede lists, by node ID, the nodes that must stand before it without being its operands: readers of a parameter's old content before
// the node that makes the new one.
func precede(g *ir.Graph, s *Storages, order []*ir.Node) [][]*ir.Node {
	before := make([][]*ir.Node, g.NumNodes())
	maker := make([]*ir.Node, len(s.All)) // by parameter storage: the node that makes its new content
	for i := range s.All {
		if p := s.All[i].Param; p != nil && p.Next != nil && p.Next.Def != nil && s.Of[p.Next.ID] != int32(i) {
			maker[i] = s.All[s.Of[p.Next.ID]].Root.Def
		}
	}
	done := make([]bool, g.NumNodes())
	for _, n := range order {
		done[n.ID] = true
		for i, v := range n.In {
			at := s.Of[v.ID]
			if m := maker[at]; m != nil && m != n && !done[m.ID] && !readBefore(s, n, i) {
				before[m.ID] = append(before[m.ID], n)
			}
		}
	}
	return before
}

// lazyNodes marks, by node ID, the nodes that are placed by their first reader alone: they make something from nothing, or move nothing. The
// new content of a parameter is never one of them, since it takes the parameter's place.
func lazyNodes(g *ir.Graph) []bool {
	next := nextOf(g)
	lazy := make([]bool, g.NumNodes())
	for _, n := range g.Nodes {
		lazy[n.ID] = len(n.Out) == 1 && !next[n.Out[0].ID] && (len(n.In) == 0 || ir.ViewOf(n) != nil)
	}
	return lazy
}
