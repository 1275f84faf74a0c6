package passes

import (
	"slices"

	"aitk/ir"
	"aitk/ir/op"
)

// simplifyShape removes movements that move nothing and turns those that keep the row-major order into Reshape, which is free.
func (r *rewriter) simplifyShape(n *ir.Node) *ir.Value {
	out := n.Out[0].Type
	switch n.Op.(type) {
	case op.Reshape, op.Transpose, op.Expand, op.Slice:
		if x, ok := r.splat(n.In[0]); ok && fillable(out) {
			return r.fill(n, x)
		}
		if n.In[0].Type.Equal(out) && !isSlice(n.Op) && !isTranspose(n.Op) {
			return n.In[0]
		}
	}
	switch o := n.Op.(type) {
	case op.Reshape:
		if x := operandOf[op.Reshape](n.In[0]); x != nil {
			return r.make(n, op.Reshape{Shape: o.Shape}, x)
		}
	case op.Transpose:
		return r.simplifyTranspose(n, o)
	case op.Expand:
		x := n.In[0]
		if x.Type.Elems() == out.Elems() {
			return r.make(n, op.Reshape{Shape: o.Shape}, x)
		}
		if y := operandOf[op.Expand](x); y != nil {
			return r.make(n, op.Expand{Shape: o.Shape}, y)
		}
	case op.Concat:
		return r.simplifyConcat(n, o)
	case op.Slice:
		for a, d := range n.In[0].Type.Shape {
			if o.Starts[a] != 0 || o.Ends[a] != d || o.Steps[a] != 1 {
				return nil
			}
		}
		return n.In[0]
	case op.Unslice:
		if !n.In[0].Type.Equal(out) {
			return nil
		}
		for a := range out.Shape {
			if o.Starts[a] != 0 || o.Steps[a] != 1 {
				return nil
			}
		}
		return n.In[0]
	case op.Pad:
		if n.In[0].Type.Equal(out) {
			return n.In[0]
		}
	case op.ReduceSum, op.ReduceMean, op.ReduceMax, op.ReduceMin, op.ReduceProd:
		if n.In[0].Type.Elems() == out.Elems() && out.Elems() > 0 { // over axes of extent 1
			return r.make(n, op.Reshape{Shape: out.Shape}, n.In[0])
		}
	}
	return nil
}

func isSlice(o ir.Op) bool     { _, ok := o.(op.Slice); return ok }
func isTranspose(o ir.Op) bool { _, ok := o.(op.Transpose); return ok }

func fillable(t ir.Type) bool { return t.DType != ir.I4 && t.DType != ir.Invalid }

func (r *rewriter) simplifyTranspose(n *ir.Node, o op.Transpose) *ir.Value {
	x := n.In[0]
	moving := make([]int64, 0, len(o.Perm)) // the axes that have more than one element, in their new order
	for _, p := range o.Perm {
		if x.Type.Shape[p] != 1 {
			moving = append(moving, p)
		}
	}
	if slices.IsSorted(moving) {
		if x.Type.Equal(n.Out[0].Type) {
			return x
		}
		return r.make(n, op.Reshape{Shape: n.Out[0].Type.Shape}, x)
	}
	if x.Def == nil {
		return nil
	}
	inner, ok := x.Def.Op.(op.Transpose)
	if !ok {
		return nil
	}
	perm := make([]int64, len(o.Perm))
	for i, p := range o.Perm {
		perm[i] = inner.Perm[p]
	}
	return r.make(n, op.Transpose{Perm: perm}, x.Def.In[0])
}

func (r *rewriter) simplifyConcat(n *ir.Node, o op.Concat) *ir.Value {
	var parts []*ir.Value
	for _, v := range n.In {
		if v.Type.Shape[o.Axis] != 0 {
			parts = append(parts, v)
		}
	}
	switch {
	case len(parts) == 1:
		return parts[0]
	case len(parts) == 0:
		return n.In[0]
	case len(parts) < len(n.In):
		return r.make(n, o, parts...)
	}
	return nil
}

// withoutExpand lets an op that broadcasts read what was expanded for it.
func (r *rewriter) withoutExpand(n *ir.Node) *ir.Value {
	switch n.Op.(type) {
	case op.Add, op.Sub, op.Mul, op.Div, op.Pow, op.Max, op.Min, op.Mod, op.Equal, op.Less, op.LessEqual, op.And, op.Or, op.Xor, op.Where:
	default:
		return nil
	}
	in := slices.Clone(n.In)
	changed := false
	for i, v := range in {
		x := operandOf[op.Expand](v)
		if x == nil {
			continue
		}
		in[i] = x
		if broadcastsTo(in, n.Out[0].Type.Shape) {
			changed = true
		} else {
			in[i] = v
		}
	}
	if !changed {
		return nil
	}
	return r.make(n, n.Op, in...)
}

func broadcastsTo(in []*ir.Value, want ir.Shape) bool {
	s := ir.Shape{}
	for _, v := range in {
		var err error
		if s, err = ir.Broadcast(s, v.Type.Shape); err != nil {
			return false
		}
	}
	return s.Equal(want)
}

// simplifyMatMul reads a transposed operand as it is stored where only the last two axes changed places.
func (r *rewriter) simplifyMatMul(n *ir.Node) *ir.Value {
	o, ok := n.Op.(op.MatMul)
	if !ok {
		return nil
	}
	if x := swapsLastTwo(n.In[0]); x != nil {
		return r.make(n, op.MatMul{TransA: !o.TransA, TransB: o.TransB}, x, n.In[1])
	}
	if x := swapsLastTwo(n.In[1]); x != nil {
		return r.make(n, op.MatMul{TransA: o.TransA, TransB: !o.TransB}, n.In[0], x)
	}
	return nil
}

// swapsLastTwo is the operand of a Transpose that swaps the last two axes and nothing else, or nil.
func swapsLastTwo(v *ir.Value) *ir.Value {
	x := operandOf[op.Transpose](v)
	if x == nil {
		return nil
	}
	perm := v.Def.Op.(op.Transpose).Perm
	r := len(perm)
	if r < 2 || perm[r-1] != int64(r-2) || perm[r-2] != int64(r-1) {
		return nil
	}
	for i := range r - 2 {
		if perm[i] != int64(i) {
			return nil
		}
	}
	return x
}
