package passes

import (
	"math"
	"slices"

	"aitk/ir"
	"aitk/ir/op"
)

// foldLimitBytes bounds each operand and result of what is folded, foldLimitFLOPs the work.
const (
	foldLimitBytes = 16 << 20
	foldLimitFLOPs = 1 << 30
	foldFreeBytes  = 64 << 10 // a literal of this size is never worth a node
)

// smallLiteralBytes is up to where equal elements are written out: a literal costs no instruction.
const smallLiteralBytes = 256

// fold evaluates nodes whose operands are all known: literals, Fill and Iota.
//
//	%1 = Add 2 3            ->   literal 5
//	%2 = Mul %zeros %ones   ->   Fill 0
//
// Results are computed in float64 by the op's own Eval and rounded to their type. A result whose elements are all equal becomes a Fill. A
// literal lives all through the program, so one above 64 KiB is made only where it takes the place of literals at least a quarter its size:
// a mask of [S,S] made from Iota is computed when it is needed instead. What Eval would refuse (an index out of range) stays for the device to report.
func fold(name string) Pass {
	return Pass{
		Name:      name,
		Doc:       "evaluate what does not depend on inputs or parameters",
		Takes:     Scheduled | WithinBudget | Placed,
		Preserves: Values,
		Each:      true,
		Run: func(ctx *Context, g *ir.Graph) error {
			nodes, bytes := foldConsts(g)
			ctx.Count("nodes folded", nodes)
			ctx.Count("bytes of new literals", bytes)
			return nil
		},
	}
}

func foldConsts(g *ir.Graph) (nodes, newBytes int64) {
	f := &folder{g: g, consts: make(map[ir.ID]*ir.Const, len(g.Consts)), next: nextOf(g), kept: g.Kept()}
	for _, c := range g.Consts {
		f.consts[c.ID] = c
	}
	sub := make([]*ir.Value, g.NumValues())
	nodes += f.fillLiterals(sub)
	for _, n := range slices.Clone(g.Nodes) {
		for i, v := range n.In {
			if int(v.ID) < len(sub) && sub[v.ID] != nil {
				n.In[i] = sub[v.ID]
			}
		}
		out, ok := f.eval(n)
		if !ok {
			f.nodes = append(f.nodes, n)
			continue
		}
		nodes++
		for i, t := range out {
			v, bytes := f.literal(n, t)
			sub[n.Out[i].ID] = v
			newBytes += bytes
		}
	}
	g.Nodes = f.nodes
	g.Replace(sub)
	return nodes, newBytes
}

// fillLiterals turns large literals with equal elements into Fills at the start of the program, since a literal's bytes live all through.
func (f *folder) fillLiterals(sub []*ir.Value) (n int64) {
	for _, c := range f.g.Consts {
		if c.Type.Bytes() <= smallLiteralBytes || c.Type.DType == ir.I4 || f.kept[c.ID] || f.next[c.ID] {
			continue
		}
		x, ok := splatOf(c)
		if !ok {
			continue
		}
		m, err := f.g.NewNode(op.Fill{DType: c.Type.DType, Shape: c.Type.Shape, Value: x})
		if err != nil {
			panic(ir.Bugf("fold: %v", err))
		}
		m.Origin = ir.Origin{Node: "literal"}
		f.nodes = append(f.nodes, m)
		sub[c.ID] = m.Out[0]
		n++
	}
	return n
}

type folder struct {
	g      *ir.Graph
	nodes  []*ir.Node
	consts map[ir.ID]*ir.Const
	next   []bool
	kept   []bool
}

// eval computes n's results if all is known and it pays.
func (f *folder) eval(n *ir.Node) ([]ir.Tensor, bool) {
	e, ok := n.Op.(ir.Evaluator)
	if !ok || len(n.In) == 0 || len(n.Out) == 0 || ir.IsStateful(n.Op) || isRandom(n.Op) {
		return nil, false
	}
	splats := true
	var constBytes int64
	for _, v := range n.In {
		c := f.consts[v.ID]
		fill := isFill(v)
		if c == nil && !fill && !isIota(v) {
			return nil, false
		}
		if c != nil {
			constBytes += c.Type.Bytes()
		}
		splats = splats && fill
	}
	for _, v := range n.Out {
		// A result must stay a node's: nobody reads a literal from outside, and it cannot become a parameter's content.
		if f.next[v.ID] || f.kept[v.ID] || v.Type.Space != ir.Device || v.Type.DType == ir.I4 {
			return nil, false
		}
	}
	if splats && pointwise(n.Op) && n.Out[0].Type.Elems() > 0 {
		return f.evalSplat(n, e)
	}
	if !f.small(n) {
		return nil, false
	}
	in := make([]ir.Tensor, len(n.In))
	for i, v := range n.In {
		t, ok := f.tensor(v)
		if !ok {
			return nil, false
		}
		in[i] = t
	}
	if op.CheckData(n.Op, in) != nil {
		return nil, false
	}
	out := make([]ir.Tensor, len(n.Out))
	for i, v := range n.Out {
		out[i] = ir.NewTensor(v.Type)
	}
	e.Eval(in, out)
	for i := range out {
		out[i].Round()
		if b := out[i].Type.Bytes(); b > max(foldFreeBytes, 4*constBytes) {
			if _, ok := allEqual(out[i]); !ok {
				return nil, false
			}
		}
	}
	return out, true
}

// evalSplat evaluates an elementwise op on Fills with one element; the result keeps its type but holds that element alone.
func (f *folder) evalSplat(n *ir.Node, e ir.Evaluator) ([]ir.Tensor, bool) {
	in := make([]ir.Tensor, len(n.In))
	for i, v := range n.In {
		in[i] = ir.Filled(ir.T(v.Type.DType), v.Def.Op.(op.Fill).Value)
	}
	out := []ir.Tensor{ir.NewTensor(ir.T(n.Out[0].Type.DType))}
	e.Eval(in, out)
	out[0].Round()
	x, ok := allEqual(out[0])
	if !ok {
		return nil, false
	}
	t := n.Out[0].Type
	if t.Bytes() <= smallLiteralBytes {
		return []ir.Tensor{ir.Filled(t, x)}, true
	}
	out[0].Type = t // the one element stands for all
	return out, true
}

// small bounds memory and time before anything is allocated.
func (f *folder) small(n *ir.Node) bool {
	types := func(vs []*ir.Value) ([]ir.Type, bool) {
		ts := make([]ir.Type, len(vs))
		for i, v := range vs {
			ts[i] = v.Type
			if v.Type.Bytes() > foldLimitBytes {
				return nil, false
			}
		}
		return ts, true
	}
	in, ok := types(n.In)
	if !ok {
		return false
	}
	out, ok := types(n.Out)
	return ok && ir.WorkOf(n.Op, in, out).FLOPs <= foldLimitFLOPs
}

// tensor is the content of a known value.
func (f *folder) tensor(v *ir.Value) (ir.Tensor, bool) {
	if c := f.consts[v.ID]; c != nil {
		t, err := ir.DecodeTensor(c.Type, c.Data)
		return t, err == nil
	}
	if o, ok := v.Def.Op.(op.Fill); ok {
		return ir.Filled(v.Type, o.Value), true
	}
	e, ok := v.Def.Op.(ir.Evaluator)
	if !ok {
		return ir.Tensor{}, false
	}
	t := ir.NewTensor(v.Type)
	e.Eval(nil, []ir.Tensor{t})
	t.Round()
	return t, true
}

// literal puts a folded tensor into the graph: as a Fill in the place of n where one number says it all, else as a constant.
func (f *folder) literal(n *ir.Node, t ir.Tensor) (*ir.Value, int64) {
	if x, ok := allEqual(t); ok && t.Type.Bytes() > smallLiteralBytes {
		m, err := f.g.NewNode(op.Fill{DType: t.Type.DType, Shape: t.Type.Shape, Value: x})
		if err != nil {
			panic(ir.Bugf("fold: %v", err))
		}
		m.Phase, m.Origin = n.Phase, n.Origin
		f.nodes = append(f.nodes, m)
		return m.Out[0], 0
	}
	v := f.g.AddConst(t.Type, t.Encode())
	f.consts[v.ID] = f.g.Consts[len(f.g.Consts)-1]
	return v, t.Type.Bytes()
}

// allEqual tells the one number that all elements are; NaN, an integer beyond 2^53 and an empty tensor have none.
func allEqual(t ir.Tensor) (float64, bool) {
	if len(t.F) > 0 {
		x := t.F[0]
		for _, y := range t.F {
			if math.Float64bits(y) != math.Float64bits(x) {
				return 0, false
			}
		}
		return x, !math.IsNaN(x)
	}
	if len(t.I) == 0 {
		return 0, false
	}
	for _, y := range t.I {
		if y != t.I[0] {
			return 0, false
		}
	}
	return float64(t.I[0]), t.I[0] <= 1<<53 && t.I[0] >= -1<<53
}

func isFill(v *ir.Value) bool {
	if v.Def == nil {
		return false
	}
	_, ok := v.Def.Op.(op.Fill)
	return ok
}

func isIota(v *ir.Value) bool {
	if v.Def == nil {
		return false
	}
	_, ok := v.Def.Op.(op.Iota)
	return ok
}

func isRandom(o ir.Op) bool {
	e, ok := o.(ir.Effects)
	return ok && e.Stream() != 0
}

// pointwise tells whether each element of the result depends only on the elements of the operands that broadcasting puts in its place.
func pointwise(o ir.Op) bool {
	switch o.(type) {
	case op.Neg, op.Abs, op.Sign, op.Floor, op.Ceil, op.Round, op.Exp, op.Log, op.Sqrt, op.Rsqrt, op.Reciprocal, op.Sin, op.Cos,
		op.Tanh, op.Erf, op.Sigmoid, op.Relu, op.Softplus, op.Gelu, op.Swish, op.LeakyRelu, op.Clip, op.Cast, op.Not, op.IsNaN, op.IsInf,
		op.Add, op.Sub, op.Mul, op.Div, op.Pow, op.Max, op.Min, op.Mod, op.Equal, op.Less, op.LessEqual, op.And, op.Or, op.Xor, op.Where:
		return true
	}
	return false
}
