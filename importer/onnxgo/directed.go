package onnxgo

import (
	"gonum.org/v1/gonum/graph"
	"gonum.org/v1/gonum/graph/iterator"
)

// The rest of gonum's interface for directed graphs: who reads whom.

// Nodes lists all nodes in the order in which they came.
func (g *Graph) Nodes() graph.Nodes {
	list := make([]graph.Node, len(g.nodes))
	for i, n := range g.nodes {
		list[i] = n
	}
	return iterator.NewOrderedNodes(list)
}

// From lists the operands of a node.
func (g *Graph) From(id int64) graph.Nodes {
	var list []graph.Node
	for _, e := range g.to[id] {
		list = append(list, e.To())
	}
	return iterator.NewOrderedNodes(list)
}

// To lists the readers of a node.
func (g *Graph) To(id int64) graph.Nodes {
	var list []graph.Node
	for _, n := range g.nodes {
		if g.HasEdgeFromTo(n.id, id) {
			list = append(list, n)
		}
	}
	return iterator.NewOrderedNodes(list)
}

// HasEdgeFromTo tells whether u reads v.
func (g *Graph) HasEdgeFromTo(u, v int64) bool { return g.Edge(u, v) != nil }

// HasEdgeBetween tells whether one of the two reads the other.
func (g *Graph) HasEdgeBetween(u, v int64) bool {
	return g.HasEdgeFromTo(u, v) || g.HasEdgeFromTo(v, u)
}

// Edge is the first edge from u to v; nil if there is none.
func (g *Graph) Edge(u, v int64) graph.Edge {
	for _, e := range g.to[u] {
		if e.To().ID() == v {
			return e.WeightedEdge
		}
	}
	return nil
}

// WeightedEdge is the first edge from u to v; nil if there is none.
func (g *Graph) WeightedEdge(u, v int64) graph.WeightedEdge {
	for _, e := range g.to[u] {
		if e.To().ID() == v {
			return e.WeightedEdge
		}
	}
	return nil
}

// Weight is the number of the operand; ok is false without an edge.
func (g *Graph) Weight(u, v int64) (w float64, ok bool) {
	if e := g.WeightedEdge(u, v); e != nil {
		return e.Weight(), true
	}
	return 0, u == v
}
