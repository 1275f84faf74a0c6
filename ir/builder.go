package ir

import (
	"encoding/binary"
	"math"
)

// Builder appends nodes to a graph with a common phase and origin. Its methods panic with *Bug where an op refuses its operands:
// passes and gradients build only what must be well typed. The importer, whose operands come from a file, uses Try.
type Builder struct {
	G      *Graph
	Phase  Phase
	Origin Origin
}

// Try appends a node, or returns what Infer found wrong.
func (b *Builder) Try(op Op, in ...*Value) ([]*Value, error) {
	n, err := b.G.NewNode(op, in...)
	if err != nil {
		return nil, err
	}
	n.Phase, n.Origin = b.Phase, b.Origin
	b.G.Nodes = append(b.G.Nodes, n)
	return n.Out, nil
}

// Multi appends a node and returns all its outputs.
func (b *Builder) Multi(op Op, in ...*Value) []*Value {
	out, err := b.Try(op, in...)
	if err != nil {
		panic(Bugf("%s: %v", OpName(op), err))
	}
	return out
}

// Add appends a node with one output and returns it.
func (b *Builder) Add(op Op, in ...*Value) *Value {
	out := b.Multi(op, in...)
	if len(out) != 1 {
		panic(Bugf("%s has %d outputs", OpName(op), len(out)))
	}
	return out[0]
}

// Ints is a rank-1 i64 literal.
func (b *Builder) Ints(xs ...int64) *Value {
	raw := make([]byte, 8*len(xs))
	for i, x := range xs {
		binary.LittleEndian.PutUint64(raw[8*i:], uint64(x))
	}
	return b.G.AddConst(T(I64, int64(len(xs))), raw)
}

// Scalar is a literal of rank 0.
func (b *Builder) Scalar(d DType, x float64) *Value {
	t := NewTensor(T(d))
	if d.IsFloat() {
		t.F[0] = x
	} else {
		t.I[0] = int64(math.Round(x))
	}
	return b.G.AddConst(t.Type, t.Encode())
}
