package passes

import (
	"fmt"
	"math"

	"aitk/ir"
	"aitk/ir/op"
)

// raise puts one op in the place of what exporters take apart: attention, root-mean-square and layer normalisation, Gelu, Swish.
//
//	%5 = Mul %q 0.125
//	%6 = MatMul{transB=true} %5 %k             f32[2,8,4096,4096]
//	%7 = Softmax{axis=3} %6
//	%8 = MatMul %7 %v                   ->     %8, %9 = Attention{scale=0.125} %q %k %v
//
// The pieces that nothing else reads are left to dce. Results change by rounding only: what was rounded to 16 bits between the pieces no
// longer is, scales are multiplied before they are applied, and a mask of -1e30 or less is added where it was selected.
//
// Why before autodiff: the gradient of the pieces keeps the matrix of scores twice, a gigabyte for each layer of an image model.
//
// What looks like an attention and is none of these forms stays as it is, and a note says why.
func raise() Pass {
	return Pass{
		Name:      "raise",
		Doc:       "put one op in the place of what exporters take apart: attention, norms, Gelu, Swish",
		Takes:     Canonical | Scheduled | WithinBudget | Placed,
		Preserves: Values,
		Each:      true,
		Run: func(ctx *Context, g *ir.Graph) error {
			x := newRaiser(g)
			x.run()
			for _, c := range x.counts {
				ctx.Count(c.What, c.N)
			}
			for _, s := range x.near {
				ctx.Note(s)
			}
			return nil
		},
	}
}

// raiser carries a walk over the nodes of a graph. Matches are looked for among the nodes as they were; a match is written at its last node.
type raiser struct {
	*rewriter
	b      *ir.Builder
	users  [][]*ir.Node
	kept   []bool
	final  map[*ir.Node]func() *ir.Value // by the last node of a match: what takes its place
	counts []Count
	near   []string // what looks like an attention and why it is none
}

func newRaiser(g *ir.Graph) *raiser {
	return &raiser{rewriter: newRewriter(g), b: &ir.Builder{G: g}, users: g.Users(), kept: g.Kept(), final: map[*ir.Node]func() *ir.Value{}}
}

func (x *raiser) run() {
	g := x.g
	nodes := g.Nodes
	next := nextOf(g)
	for _, n := range nodes {
		if len(n.Out) == 1 && !next[n.Out[0].ID] {
			x.match(n)
		}
	}
	if len(x.final) == 0 {
		return
	}
	g.Nodes = make([]*ir.Node, 0, len(nodes))
	sub := make([]*ir.Value, g.NumValues())
	for _, n := range nodes {
		for i, v := range n.In {
			n.In[i] = now(sub, v)
		}
		make := x.final[n]
		if make == nil {
			g.Nodes = append(g.Nodes, n)
			continue
		}
		x.b.Phase, x.b.Origin = n.Phase, n.Origin
		first := len(g.Nodes)
		v := make()
		for _, made := range g.Nodes[first:] {
			for i, in := range made.In {
				made.In[i] = now(sub, in)
			}
		}
		if v.Name == "" {
			v.Name = n.Out[0].Name
		}
		sub[n.Out[0].ID] = v
	}
	g.Replace(sub)
}

// now is the value that has taken another's place by now.
func now(sub []*ir.Value, v *ir.Value) *ir.Value {
	if int(v.ID) < len(sub) && sub[v.ID] != nil {
		return sub[v.ID]
	}
	return v
}

func (x *raiser) match(n *ir.Node) {
	switch n.Op.(type) {
	case op.MatMul:
		x.matchAttention(n)
	case op.Mul, op.Div:
		if !x.matchNorm(n) && !x.matchGelu(n) {
			x.matchSwish(n)
		}
	}
}

// put notes that make's value takes the place of n's.
func (x *raiser) put(what string, n *ir.Node, make func() *ir.Value) {
	if x.final[n] != nil {
		return
	}
	x.final[n] = make
	for i := range x.counts {
		if x.counts[i].What == what {
			x.counts[i].N++
			return
		}
	}
	x.counts = append(x.counts, Count{what, 1})
}

// only is the one node that reads v once; nil if there are others or v is kept.
func (x *raiser) only(v *ir.Value) *ir.Node {
	if x.kept[v.ID] || len(x.users[v.ID]) != 1 {
		return nil
	}
	return x.users[v.ID][0]
}

// byNumber splits a product or quotient of v and a number that is known.
func (x *raiser) byNumber(v *ir.Value) (of *ir.Value, number float64, ok bool) {
	if v.Def == nil {
		return nil, 0, false
	}
	switch v.Def.Op.(type) {
	case op.Mul:
		for i, f := range v.Def.In {
			if c, ok := x.splat(f); ok && v.Def.In[1-i].Type.Shape.Equal(v.Type.Shape) {
				return v.Def.In[1-i], c, true
			}
		}
	case op.Div:
		if c, ok := x.splat(v.Def.In[1]); ok && c != 0 && v.Def.In[0].Type.Shape.Equal(v.Type.Shape) {
			return v.Def.In[0], 1 / c, true
		}
	}
	return nil, 0, false
}

// about compares a number of the formula with one that the file has in some type.
func about(d ir.DType, got, want float64) bool {
	tolerance := 1e-6
	if d == ir.F16 || d == ir.BF16 {
		tolerance = 5e-3
	}
	return math.Abs(got-want) <= tolerance*math.Abs(want)
}

// shape is v under another shape, if it needs one.
func (x *raiser) shape(v *ir.Value, s ...int64) *ir.Value {
	if v.Type.Shape.Equal(s) {
		return v
	}
	return x.b.Add(op.Reshape{Shape: s}, v)
}

// cast is v as d, if it is not.
func (x *raiser) cast(v *ir.Value, d ir.DType) *ir.Value {
	if v.Type.DType == d {
		return v
	}
	return x.b.Add(op.Cast{To: d}, v)
}

// unwidened is what v was before it was cast to a wider float, or v.
func unwidened(v *ir.Value) *ir.Value {
	if v.Def == nil {
		return v
	}
	if _, ok := v.Def.Op.(op.Cast); ok && v.Def.In[0].Type.DType.IsFloat() && v.Type.DType.IsFloat() && v.Def.In[0].Type.DType.Bits() < v.Type.DType.Bits() {
		return v.Def.In[0]
	}
	return v
}

// stays notes that something looks like an attention.
func (x *raiser) stays(n *ir.Node, why string) {
	name := n.Origin.String()
	if name == "" {
		name = fmt.Sprintf("%%%d", n.Out[0].ID)
	}
	x.near = append(x.near, fmt.Sprintf("%s looks like an attention and stays as it is: %s", name, why))
}
