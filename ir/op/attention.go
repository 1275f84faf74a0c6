package op

import (
	"fmt"
	"math"

	"aitk/ir"
)

// Attention is softmax(Scale * q·kᵀ + mask) · v for each head, without the matrix of scores ever being whole in memory.
//
//	q [batch, heads, queries, size], k [batch, groups, keys, size], v [batch, groups, keys, width], mask (optional, any floats, broadcasts to
//	[batch, heads, queries, keys]) -> y [batch, heads, queries, width], lse f32 (f64 for f64) [batch, heads, queries]
//
// heads is a multiple of groups; head h reads group h/(heads/groups). lse is the logarithm of the sum of the exponentials of a row of scores, from
// which the gradient makes the softmax again; it passes no gradient on itself. Scores, exponentials and sums are computed in float32 or wider
// whatever the dtype, keys in index order. A row whose scores are all -inf gives NaN as Softmax does, or with Guard zeros.
type Attention struct {
	Scale float64
	Guard bool
}

// AttentionGrad is the gradient of Attention to q, k and v; the scores are computed again, tile by tile.
//
//	q, k, v, y, lse, dy like y, mask (optional) -> dq like q, dk like k, dv like v
type AttentionGrad struct {
	firstOrder
	Scale float64
	Guard bool
}

// AttentionMaskGrad is the gradient of Attention to its mask, before the sum over stretched queries and keys.
//
//	q, k, v, y, lse, dy like y, mask -> [the mask's batch or 1, its heads or 1, queries, keys] of the mask's dtype
//
// It is as large as the scores where the mask has a batch and heads of its own.
type AttentionMaskGrad struct {
	firstOrder
	Scale float64
	Guard bool
}

// AttentionDims are the extents of an attention.
type AttentionDims struct{ Batch, Heads, Groups, Queries, Keys, Size, Width int64 }

// attentionDims checks operands called q, k, v.
func attentionDims(in []ir.Type, scale float64) (d AttentionDims, err error) {
	if err := wantFloats(in, 0, 1, 2); err != nil {
		return d, err
	}
	q, k, v := in[0].Shape, in[1].Shape, in[2].Shape
	if len(q) != 4 || len(k) != 4 || len(v) != 4 {
		return d, fmt.Errorf("q, k and v must have rank 4, got shapes %v, %v and %v", q, k, v)
	}
	d = AttentionDims{Batch: q[0], Heads: q[1], Groups: k[1], Queries: q[2], Keys: k[2], Size: q[3], Width: v[3]}
	switch {
	case k[0] != q[0] || k[3] != q[3] || v[0] != q[0] || v[1] != k[1] || v[2] != k[2]:
		return d, fmt.Errorf("q %v, k %v and v %v do not fit each other", q, k, v)
	case d.Groups == 0 && d.Heads != 0 || d.Groups != 0 && d.Heads%d.Groups != 0:
		return d, fmt.Errorf("%d heads are no multiple of %d groups", d.Heads, d.Groups)
	case math.IsNaN(scale) || math.IsInf(scale, 0):
		return d, fmt.Errorf("scale %v is no number", scale)
	}
	return d, ir.Shape{d.Batch, d.Heads, d.Queries, d.Keys}.Check()
}

// wantMask checks the operand at i, which broadcasts to the scores.
func (d AttentionDims) wantMask(in []ir.Type, i int) error {
	if err := wantFloat(in, i); err != nil {
		return err
	}
	scores := ir.Shape{d.Batch, d.Heads, d.Queries, d.Keys}
	s, err := ir.Broadcast(in[i].Shape, scores)
	if err != nil || !s.Equal(scores) {
		return fmt.Errorf("mask %v does not broadcast to scores %v", in[i].Shape, scores)
	}
	return nil
}

func (d AttentionDims) y(t ir.DType) ir.Type { return ir.T(t, d.Batch, d.Heads, d.Queries, d.Width) }

func (d AttentionDims) lse(t ir.DType) ir.Type {
	if t != ir.F64 {
		t = ir.F32
	}
	return ir.T(t, d.Batch, d.Heads, d.Queries)
}

// Infer gives the types of y and lse.
func (o Attention) Infer(in []ir.Type) ([]ir.Type, error) {
	names := []string{"q", "k", "v", "mask"}
	if len(in) == 3 {
		names = names[:3]
	}
	if err := wantOperands(in, names...); err != nil {
		return nil, err
	}
	d, err := attentionDims(in, o.Scale)
	if err == nil && len(in) == 4 {
		err = d.wantMask(in, 3)
	}
	if err != nil {
		return nil, err
	}
	return []ir.Type{d.y(in[0].DType), d.lse(in[0].DType)}, d.y(in[0].DType).Shape.Check()
}

// inferAttentionGrad checks q, k, v, y, lse, dy and a mask.
func inferAttentionGrad(in []ir.Type, scale float64, mask bool) (AttentionDims, error) {
	names := []string{"q", "k", "v", "y", "lse", "dy", "mask"}
	if len(in) == 6 && !mask {
		names = names[:6]
	}
	if err := wantOperands(in, names...); err != nil {
		return AttentionDims{}, err
	}
	d, err := attentionDims(in, scale)
	if err != nil {
		return d, err
	}
	for i, want := range []ir.Type{3: d.y(in[0].DType), 4: d.lse(in[0].DType), 5: d.y(in[0].DType)} {
		if i >= 3 && !in[i].Equal(want) {
			return d, fmt.Errorf("%s must be %v, got %v", names[i], want, in[i])
		}
	}
	if len(in) == 7 {
		return d, d.wantMask(in, 6)
	}
	return d, nil
}

// Infer gives the types of q, k and v.
func (o AttentionGrad) Infer(in []ir.Type) ([]ir.Type, error) {
	if _, err := inferAttentionGrad(in, o.Scale, false); err != nil {
		return nil, err
	}
	return []ir.Type{in[0], in[1], in[2]}, nil
}

// Infer gives the type of the mask with all its queries and keys.
func (o AttentionMaskGrad) Infer(in []ir.Type) ([]ir.Type, error) {
	d, err := inferAttentionGrad(in, o.Scale, true)
	if err != nil {
		return nil, err
	}
	s := d.MaskShape(in[6].Shape)
	return []ir.Type{{DType: in[6].DType, Shape: ir.Shape{s[0], s[1], d.Queries, d.Keys}}}, nil
}

// MaskShape is a mask's shape with all four axes.
func (d AttentionDims) MaskShape(mask ir.Shape) ir.Shape {
	s := ir.Shape{1, 1, 1, 1}
	copy(s[4-len(mask):], mask)
	return s
}

// AttentionDimsOf are the extents of an attention or its gradient with operands that Infer accepts.
func AttentionDimsOf(in []ir.Type) AttentionDims {
	d, err := attentionDims(in, 1)
	if err != nil {
		panic(ir.Bugf("attention: %v", err))
	}
	return d
}

// MaskAt gives the offset of the mask's row for a batch, head and query, and the step between its keys: 0 where one element serves all.
func (d AttentionDims) MaskAt(mask ir.Shape) (at func(b, h, i int64) int64, step int64) {
	s := d.MaskShape(mask)
	steps := [4]int64{s[1] * s[2] * s[3], s[2] * s[3], s[3], 1}
	for a := range steps {
		if s[a] == 1 {
			steps[a] = 0
		}
	}
	return func(b, h, i int64) int64 { return b*steps[0] + h*steps[1] + i*steps[2] }, steps[3]
}

// Grad is AttentionGrad, and AttentionMaskGrad summed to the mask's shape.
func (o Attention) Grad(b *ir.Builder, n *ir.Node, dOut []*ir.Value) []*ir.Value {
	grads := none(len(n.In))
	if dOut[0] == nil {
		return grads
	}
	in := []*ir.Value{n.In[0], n.In[1], n.In[2], n.Out[0], n.Out[1], dOut[0]}
	in = append(in, n.In[3:]...)
	copy(grads, b.Multi(AttentionGrad{Scale: o.Scale, Guard: o.Guard}, in...))
	if len(n.In) == 4 {
		grads[3] = sumTo(b, b.Add(AttentionMaskGrad{Scale: o.Scale, Guard: o.Guard}, in...), n.In[3].Type.Shape)
	}
	return grads
}

// Cost counts both products and five operations for each score.
func (Attention) Cost(in, out []ir.Type) ir.Work {
	w := moved(in, out)
	d := AttentionDimsOf(in)
	w.FLOPs = d.Batch * d.Heads * d.Queries * d.Keys * (2*(d.Size+d.Width) + 5)
	return w
}

// Cost counts seven products: the scores and their gradient are computed twice, for queries and for keys.
func (AttentionGrad) Cost(in, out []ir.Type) ir.Work {
	w := moved(in, out)
	d := AttentionDimsOf(in)
	w.FLOPs = d.Batch * d.Heads * d.Queries * d.Keys * (2*(4*d.Size+3*d.Width) + 10)
	return w
}

// Cost counts two products.
func (AttentionMaskGrad) Cost(in, out []ir.Type) ir.Work {
	w := moved(in, out)
	d := AttentionDimsOf(in)
	w.FLOPs = d.Batch * d.Heads * d.Queries * d.Keys * (2*(d.Size+d.Width) + 6)
	return w
}
