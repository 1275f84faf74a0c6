package op

import (
	"math"

	"aitk/ir"
)

// attentionCase is a sample of Attention and of its gradients.
type attentionCase struct {
	d     AttentionDims
	t     ir.DType
	scale float64
	guard bool
	mask  ir.Shape // nil: none
	hide  bool     // the mask hides keys, and the whole first query
}

func attentionCases() []attentionCase {
	return []attentionCase{
		{d: AttentionDims{2, 3, 3, 4, 5, 6, 6}, t: ir.F32, scale: 0.5},
		{d: AttentionDims{1, 4, 2, 3, 7, 4, 2}, t: ir.F32, scale: 0.7},
		{d: AttentionDims{2, 4, 1, 3, 3, 2, 3}, t: ir.F64, scale: -1, mask: ir.Shape{3, 3}},
		{d: AttentionDims{2, 2, 2, 3, 4, 2, 2}, t: ir.F32, scale: 1, mask: ir.Shape{2, 1, 3, 4}},
		{d: AttentionDims{2, 2, 1, 3, 4, 2, 2}, t: ir.F32, scale: 1, mask: ir.Shape{1, 2, 1, 4}},
		{d: AttentionDims{1, 2, 2, 3, 4, 2, 2}, t: ir.F32, scale: 1, mask: ir.Shape{2, 3, 1}},
		{d: AttentionDims{1, 2, 2, 3, 4, 2, 2}, t: ir.F32, scale: 1, mask: ir.Shape{3, 4}, hide: true, guard: true},
		{d: AttentionDims{1, 2, 2, 3, 4, 2, 2}, t: ir.F32, scale: 1, mask: ir.Shape{3, 4}, hide: true},
		{d: AttentionDims{1, 1, 1, 70, 90, 5, 9}, t: ir.F32, scale: 0.25, mask: ir.Shape{70, 90}},
		{d: AttentionDims{1, 1, 1, 3, 37, 520, 600}, t: ir.F32, scale: 0.05},
		{d: AttentionDims{1, 2, 1, 3, 4, 8, 8}, t: ir.BF16, scale: 0.3, mask: ir.Shape{3, 4}},
		{d: AttentionDims{1, 2, 1, 3, 4, 8, 8}, t: ir.F16, scale: 0.3},
		{d: AttentionDims{0, 2, 1, 3, 4, 2, 2}, t: ir.F32, scale: 1},
		{d: AttentionDims{1, 1, 1, 2, 0, 2, 2}, t: ir.F32, scale: 1, guard: true},
	}
}

// operands are q, k, v and the mask.
func (c attentionCase) operands(i int) []ir.Tensor {
	d := c.d
	in := []ir.Tensor{
		sampleFloats(uint64(40*i+1), c.t, d.Batch, d.Heads, d.Queries, d.Size),
		sampleFloats(uint64(40*i+2), c.t, d.Batch, d.Groups, d.Keys, d.Size),
		sampleFloats(uint64(40*i+3), c.t, d.Batch, d.Groups, d.Keys, d.Width),
	}
	if c.mask == nil {
		return in
	}
	m := sampleFloats(uint64(40*i+4), c.t, c.mask...)
	if c.hide {
		for k := range m.F {
			if k < int(d.Keys) || k%3 == 0 {
				m.F[k] = math.Inf(-1)
			}
		}
	}
	return append(in, m)
}

// grads are the operands of the gradients.
func (c attentionCase) grads(i int) []ir.Tensor {
	in := c.operands(i)
	types := make([]ir.Type, len(in))
	for k, t := range in {
		types[k] = t.Type
	}
	o := Attention{Scale: c.scale, Guard: c.guard}
	made, err := o.Infer(types)
	if err != nil {
		panic(ir.Bugf("attention sample: %v", err))
	}
	out := []ir.Tensor{ir.NewTensor(made[0]), ir.NewTensor(made[1])}
	o.Eval(in, out)
	out[0].Round()
	out[1].Round()
	all := append(append([]ir.Tensor{}, in[:3]...), out[0], out[1], sampleFloats(uint64(40*i+5), c.t, made[0].Shape...))
	return append(all, in[3:]...)
}

// Samples take groups, masks of every form, hidden rows, more rows than a tile, and no work at all.
func (Attention) Samples() []ir.Sample {
	var list []ir.Sample
	for i, c := range attentionCases() {
		s := good(Attention{Scale: c.scale, Guard: c.guard}, c.operands(i)...)
		if c.hide || c.d.Queries > 32 || c.d.Size > 256 { // infinite operands, or many finite differences
			s = kinked(s.Op, s.In...)
		}
		list = append(list, s)
	}
	q, k := ir.T(ir.F32, 1, 2, 3, 4), ir.T(ir.F32, 1, 1, 5, 4)
	return append(list,
		bad(Attention{Scale: 1}, "takes 4 operands", q, k),
		bad(Attention{Scale: 1}, "must have rank 4", ir.T(ir.F32, 2, 3, 4), k, k),
		bad(Attention{Scale: 1}, "do not fit", q, k, ir.T(ir.F32, 1, 1, 6, 4)),
		bad(Attention{Scale: 1}, "do not fit", q, ir.T(ir.F32, 1, 1, 5, 3), k),
		bad(Attention{Scale: 1}, "no multiple", q, ir.T(ir.F32, 1, 3, 5, 4), ir.T(ir.F32, 1, 3, 5, 4)),
		bad(Attention{Scale: math.Inf(1)}, "is no number", q, k, k),
		bad(Attention{Scale: 1}, "does not broadcast", q, k, k, ir.T(ir.F32, 4, 5)),
		bad(Attention{Scale: 1}, "want floats", q, k, k, ir.T(ir.Bool, 3, 5)),
		bad(Attention{Scale: 1}, "want one element type", q, ir.T(ir.F16, 1, 1, 5, 4), k),
		bad(Attention{Scale: 1}, "too large", ir.T(ir.F32, 1, 1, 1<<40, 1), ir.T(ir.F32, 1, 1, 1<<40, 1), ir.T(ir.F32, 1, 1, 1<<40, 1)),
	)
}

// Samples are those of Attention.
func (AttentionGrad) Samples() []ir.Sample {
	var list []ir.Sample
	for i, c := range attentionCases() {
		list = append(list, good(AttentionGrad{Scale: c.scale, Guard: c.guard}, c.grads(i)...))
	}
	q, l := ir.T(ir.F32, 1, 2, 3, 4), ir.T(ir.F32, 1, 2, 3)
	return append(list,
		bad(AttentionGrad{Scale: 1}, "takes 7 operands", q, q, q, q, l),
		bad(AttentionGrad{Scale: 1}, "lse must be", q, q, q, q, ir.T(ir.F32, 1, 2, 4), q),
		bad(AttentionGrad{Scale: 1}, "dy must be", q, q, q, q, l, ir.T(ir.F32, 1, 2, 3, 5)),
		bad(AttentionGrad{Scale: 1}, "does not broadcast", q, q, q, q, l, q, ir.T(ir.F32, 7)),
	)
}

// Samples are those of Attention that have a mask.
func (AttentionMaskGrad) Samples() []ir.Sample {
	var list []ir.Sample
	for i, c := range attentionCases() {
		if c.mask != nil {
			list = append(list, good(AttentionMaskGrad{Scale: c.scale, Guard: c.guard}, c.grads(i)...))
		}
	}
	q, l := ir.T(ir.F32, 1, 2, 3, 4), ir.T(ir.F32, 1, 2, 3)
	return append(list,
		bad(AttentionMaskGrad{Scale: 1}, "takes 7 operands", q, q, q, q, l, q),
		bad(AttentionMaskGrad{Scale: 1}, "does not broadcast", q, q, q, q, l, q, ir.T(ir.F32, 7)),
	)
}
