package passes

import (
	"encoding/binary"
	"math"

	"aitk/ir"
	"aitk/ir/op"
)

// canonicalize brings nodes into one form by local rules, each of which has a direction and none of which makes the graph larger: no rule
// adds a node that computes without taking another's place.
//
//	%2 = Transpose{perm=[1,0]} %1
//	%3 = MatMul %0 %2                   ->   %3 = MatMul{transB=true} %0 %1
//	%4 = Reshape{shape=[6]} %3
//	%5 = Reshape{shape=[2,3]} %4        ->   %5 = Reshape{shape=[2,3]} %3
//	%6 = Mul %5 1                       ->   %5
//
// Operands are canonical before their node is looked at, and what a rule makes is looked at again, so one walk suffices and a second one
// finds nothing. The operands of a rewritten node stay where they are; dce removes those without readers.
//
// Rules never touch stateful ops or the new content of a parameter, and a result is never replaced by a leaf.
func canonicalize(name string) Pass {
	return Pass{
		Name:      name,
		Doc:       "remove what changes nothing and fold transposes, casts and broadcasts into their readers",
		Gives:     Canonical,
		Takes:     Scheduled | WithinBudget | Placed,
		Preserves: Values,
		Each:      true,
		Run: func(ctx *Context, g *ir.Graph) error {
			r := newRewriter(g)
			r.run()
			ctx.Count("rewrites", r.rewrites)
			return nil
		},
	}
}

// rewriter carries a walk over the nodes of a graph.
type rewriter struct {
	g        *ir.Graph
	nodes    []*ir.Node          // what has been walked over and made
	consts   map[ir.ID]*ir.Const // by value
	splats   map[ir.ID]splat
	rewrites int64
}

type splat struct {
	x  float64
	ok bool
}

func newRewriter(g *ir.Graph) *rewriter {
	r := &rewriter{g: g, consts: make(map[ir.ID]*ir.Const, len(g.Consts)), splats: map[ir.ID]splat{}}
	for _, c := range g.Consts {
		r.consts[c.ID] = c
	}
	return r
}

func (r *rewriter) run() {
	g := r.g
	sub := make([]*ir.Value, g.NumValues())
	next, kept := nextOf(g), g.Kept()
	for _, n := range g.Nodes {
		for i, v := range n.In {
			if w := sub[v.ID]; w != nil {
				n.In[i] = w
			}
		}
		if len(n.Out) != 1 || ir.IsStateful(n.Op) || next[n.Out[0].ID] {
			r.nodes = append(r.nodes, n)
			continue
		}
		old := n.Out[0]
		v := r.settle(n)
		if v == old {
			continue
		}
		if kept[old.ID] && v.Def == nil {
			r.nodes = append(r.nodes, n)
			continue
		}
		if v.Name == "" && v.Def != nil {
			v.Name = old.Name
		}
		sub[old.ID] = v
		r.rewrites++
	}
	g.Nodes = r.nodes
	// Operands were replaced during the walk; what is left are results and new contents.
	for i := range g.Results {
		if w := sub[g.Results[i].Value.ID]; w != nil {
			g.Results[i].Value = w
		}
	}
}

// settle applies rules to a node that stands nowhere yet until none fits, and returns the value to use in its place. Only what stays is
// appended to the nodes.
func (r *rewriter) settle(n *ir.Node) *ir.Value {
	if v := r.simplify(n); v != nil {
		if !v.Type.Equal(n.Out[0].Type) {
			panic(ir.Bugf("canonicalize changed %v to %v at %s", n.Out[0].Type, v.Type, ir.OpName(n.Op)))
		}
		return v
	}
	r.nodes = append(r.nodes, n)
	return n.Out[0]
}

// make builds a node in the place of n and settles it.
func (r *rewriter) make(n *ir.Node, o ir.Op, in ...*ir.Value) *ir.Value {
	m, err := r.g.NewNode(o, in...)
	if err != nil {
		panic(ir.Bugf("canonicalize built %s: %v", ir.OpName(o), err))
	}
	m.Phase, m.Origin, m.CopyOf = n.Phase, n.Origin, n.CopyOf
	return r.settle(m)
}

// fill is the canonical form of n's result where all its elements are x.
func (r *rewriter) fill(n *ir.Node, x float64) *ir.Value {
	t := n.Out[0].Type
	if t.Bytes() <= smallLiteralBytes {
		v := r.g.AddConst(t, ir.Filled(t, x).Encode())
		r.consts[v.ID] = r.g.Consts[len(r.g.Consts)-1]
		return v
	}
	return r.make(n, op.Fill{DType: t.DType, Shape: t.Shape, Value: x})
}

// simplify applies the first rule that fits, or returns nil.
func (r *rewriter) simplify(n *ir.Node) *ir.Value {
	if v := r.withoutExpand(n); v != nil {
		return v
	}
	if v := r.simplifyArithmetic(n); v != nil {
		return v
	}
	if v := r.simplifyShape(n); v != nil {
		return v
	}
	return r.simplifyMatMul(n)
}

// splat tells whether all elements of v are known to be one number.
func (r *rewriter) splat(v *ir.Value) (float64, bool) {
	if v.Def != nil {
		if f, ok := v.Def.Op.(op.Fill); ok {
			return f.Value, true
		}
		return 0, false
	}
	c := r.consts[v.ID]
	if c == nil {
		return 0, false
	}
	s, known := r.splats[v.ID]
	if !known {
		s.x, s.ok = splatOf(c)
		r.splats[v.ID] = s
	}
	return s.x, s.ok
}

func (r *rewriter) isSplat(v *ir.Value, want float64) bool {
	x, ok := r.splat(v)
	return ok && x == want
}

// splatOf compares bytes, so that NaNs and zeros of either sign are told apart; integers that float64 cannot hold are no splat.
func splatOf(c *ir.Const) (float64, bool) {
	size := int(c.Type.DType.Bits() / 8)
	if size == 0 || len(c.Data) < size {
		return 0, false
	}
	first := c.Data[:size]
	for at := size; at < len(c.Data); at += size {
		if string(c.Data[at:at+size]) != string(first) {
			return 0, false
		}
	}
	t, err := ir.DecodeTensor(ir.T(c.Type.DType), first)
	if err != nil {
		return 0, false
	}
	if t.F != nil {
		return t.F[0], !math.IsNaN(t.F[0])
	}
	if c.Type.DType == ir.I64 {
		if x := int64(binary.LittleEndian.Uint64(first)); x > 1<<53 || x < -1<<53 {
			return 0, false
		}
	}
	return float64(t.I[0]), true
}
