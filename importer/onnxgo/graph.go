// Package onnxgo is a backend for github.com/owulveryck/onnx-go: programs that decode a model with onnx-go get an ir.Graph, and can run it.
//
//	g := onnxgo.NewGraph()
//	model := onnx.NewModel(g)
//	err := model.UnmarshalBinary(raw)
//	m, err := g.Import(model, importer.Options{})   // m.Graph is ready for passes
//
// onnx-go hands a backend nodes, edges and operations, and keeps the opset version to itself; so it is assumed (Graph.Opset, by default 9, the one that
// onnx-go speaks). What it was given becomes an ONNX model again and goes the importer's way. It must not know passes or devices: Run evaluates op by
// op, slowly, for tests and examples.
//
// What onnx-go loses on the way is lost here too: names and domains of nodes, symbolic dimensions (an input's shape has only the fixed ones),
// subgraphs, element types other than bool, float32, float64, int64 and int32.
//
// Invariants: a Graph keeps what it is given in the order in which it came; nothing here is safe for several goroutines.
package onnxgo

import (
	"fmt"

	"github.com/owulveryck/onnx-go"
	"gonum.org/v1/gonum/graph"
	"gorgonia.org/tensor"
)

// DefaultOpset is assumed where a program says nothing.
const DefaultOpset = 9

// Graph receives a model from onnx-go.
type Graph struct {
	Opset int64 // of the operators; 0: DefaultOpset

	nodes []*Node
	to    map[int64][]edge // operands, by the node that reads them, in the order in which they came
	calls []call
}

type edge struct {
	graph.WeightedEdge
	taken bool // by an operation
}

// call is an operation with the nodes that it makes and reads.
type call struct {
	op      onnx.Operation
	out, in []*Node
}

// Node is a tensor of the model.
type Node struct {
	id    int64
	name  string
	value tensor.Tensor
	made  bool // by an operation
}

// ID is the node's number.
func (n *Node) ID() int64 { return n.id }

// SetName and GetName keep the name of the file.
func (n *Node) SetName(name string) { n.name = name }

// GetName is the name of the file.
func (n *Node) GetName() string { return n.name }

// SetTensor gives the node a content, or as long as it has none a type.
func (n *Node) SetTensor(t tensor.Tensor) error { n.value = t; return nil }

// GetTensor is the content; of an output after Run what was computed.
func (n *Node) GetTensor() tensor.Tensor { return n.value }

// NewGraph returns an empty graph.
func NewGraph() *Graph { return &Graph{to: map[int64][]edge{}} }

// NewNode makes a node that AddNode adds.
func (g *Graph) NewNode() graph.Node { return &Node{id: int64(len(g.nodes))} }

// AddNode adds a node made by NewNode.
func (g *Graph) AddNode(n graph.Node) {
	x := n.(*Node)
	x.id = int64(len(g.nodes))
	g.nodes = append(g.nodes, x)
}

// NewWeightedEdge says that from reads to as its operand number w.
func (g *Graph) NewWeightedEdge(from, to graph.Node, w float64) graph.WeightedEdge {
	return weighted{from, to, w}
}

// SetWeightedEdge adds an edge. A node that reads another twice has two.
func (g *Graph) SetWeightedEdge(e graph.WeightedEdge) {
	g.to[e.From().ID()] = append(g.to[e.From().ID()], edge{WeightedEdge: e})
}

type weighted struct {
	from, to graph.Node
	w        float64
}

func (e weighted) From() graph.Node         { return e.from }
func (e weighted) To() graph.Node           { return e.to }
func (e weighted) Weight() float64          { return e.w }
func (e weighted) ReversedEdge() graph.Edge { return weighted{e.to, e.from, e.w} }

// ApplyOperation says by which operation nodes are made. Their operands are the edges that came since the last one.
func (g *Graph) ApplyOperation(op onnx.Operation, outputs ...graph.Node) error {
	if len(outputs) == 0 {
		return fmt.Errorf("operation %s makes nothing", op.Name)
	}
	c := call{op: op}
	for _, o := range outputs {
		n := o.(*Node)
		n.made = true
		c.out = append(c.out, n)
	}
	edges := g.to[outputs[0].ID()]
	for i := range edges {
		if !edges[i].taken {
			edges[i].taken = true
			c.in = append(c.in, edges[i].To().(*Node))
		}
	}
	if inputless(op.Name) { // onnx-go makes operands up for these
		c.in = nil
	}
	g.calls = append(g.calls, c)
	return nil
}

func inputless(op string) bool {
	switch op {
	case "Constant", "RandomNormal", "RandomUniform":
		return true
	}
	return false
}

// Node finds a node by number; nil if there is none.
func (g *Graph) Node(id int64) graph.Node {
	if id < 0 || id >= int64(len(g.nodes)) {
		return nil
	}
	return g.nodes[id]
}
