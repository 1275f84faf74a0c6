package op

import (
	"math"

	"aitk/ir"
)

// unfused is an attention as products of whole matrices, in f32 or wider: the definition, and the way to run where no kernel serves the op. Keys
// and values of a group are used by all its heads at once, as so many rows more.
type unfused struct {
	AttentionDims
	b       *ir.Builder
	t       ir.DType
	q, k, v *ir.Value
}

func newUnfused(b *ir.Builder, in []*ir.Value) *unfused {
	u := &unfused{AttentionDims: AttentionDimsOf([]ir.Type{in[0].Type, in[1].Type, in[2].Type}), b: b}
	u.q, u.k, u.v = wide(b, in[0]), wide(b, in[1]), wide(b, in[2])
	u.t = u.q.Type.DType
	return u
}

// rows puts the heads of a group below one another; heads is the inverse.
func (u *unfused) rows(v *ir.Value) *ir.Value {
	s := v.Type.Shape
	return shaped(u.b, v, ir.Shape{u.Batch, u.Groups, u.Heads / max(u.Groups, 1) * u.Queries, s[len(s)-1]})
}

func (u *unfused) heads(v *ir.Value) *ir.Value {
	s := v.Type.Shape
	return shaped(u.b, v, ir.Shape{u.Batch, u.Heads, u.Queries, s[len(s)-1]})
}

// scores are scaled and masked; mask may be nil.
func (u *unfused) scores(scale float64, mask *ir.Value) *ir.Value {
	s := u.b.Add(Mul{}, u.heads(u.b.Add(MatMul{TransB: true}, u.rows(u.q), u.k)), u.b.Scalar(u.t, scale))
	if mask == nil {
		return s
	}
	return u.b.Add(Add{}, s, narrow(u.b, mask, u.t))
}

// clear replaces elements where the rows say so.
func (u *unfused) clear(rows, v *ir.Value, by float64) *ir.Value {
	if rows == nil {
		return v
	}
	return u.b.Add(Where{}, rows, u.b.Scalar(u.t, by), v)
}

// Decompose is the definition.
func (o Attention) Decompose(b *ir.Builder, in []*ir.Value) []*ir.Value {
	u := newUnfused(b, in)
	var mask *ir.Value
	if len(in) == 4 {
		mask = in[3]
	}
	s := u.scores(o.Scale, mask)
	y, lse := u.y(in[0].Type.DType), u.lse(in[0].Type.DType)
	if u.Keys == 0 {
		none := math.NaN()
		if o.Guard {
			none = math.Inf(-1)
		}
		return []*ir.Value{narrow(b, u.heads(b.Add(MatMul{}, u.rows(s), u.v)), y.DType), b.Add(Fill{DType: lse.DType, Shape: lse.Shape, Value: none})}
	}
	top := b.Add(ReduceMax{Axes: []int64{3}, KeepDims: true}, s)
	var hidden *ir.Value
	if o.Guard {
		hidden = b.Add(Equal{}, top, b.Scalar(u.t, math.Inf(-1)))
		s, top = u.clear(hidden, s, 0), u.clear(hidden, top, 0)
	}
	sum := b.Add(ReduceSum{Axes: []int64{3}, KeepDims: true}, b.Add(Exp{}, b.Add(Sub{}, s, top)))
	log := b.Add(Add{}, top, b.Add(Log{}, sum))
	p := u.clear(hidden, b.Add(Exp{}, b.Add(Sub{}, s, log)), 0)
	log = u.clear(hidden, log, math.Inf(-1))
	return []*ir.Value{
		narrow(b, u.heads(b.Add(MatMul{}, u.rows(p), u.v)), y.DType),
		narrow(b, shaped(b, log, lse.Shape), lse.DType),
	}
}

// backward gives the weights and the gradient of the scores, from the operands of a gradient.
func (u *unfused) backward(scale float64, guard bool, in []*ir.Value) (p, ds, dy *ir.Value) {
	b := u.b
	var mask, hidden *ir.Value
	if len(in) == 7 {
		mask = in[6]
	}
	log := narrow(b, shaped(b, in[4], ir.Shape{u.Batch, u.Heads, u.Queries, 1}), u.t)
	if guard {
		hidden = b.Add(Equal{}, log, b.Scalar(u.t, math.Inf(-1)))
		log = u.clear(hidden, log, 0)
	}
	p = u.clear(hidden, b.Add(Exp{}, b.Add(Sub{}, u.scores(scale, mask), log)), 0)
	y := wide(b, in[3])
	dy = wide(b, in[5])
	dot := b.Add(ReduceSum{Axes: []int64{3}, KeepDims: true}, b.Add(Mul{}, y, dy))
	dp := u.heads(b.Add(MatMul{TransB: true}, u.rows(dy), u.v))
	return p, b.Add(Mul{}, p, b.Add(Sub{}, dp, dot)), dy
}

// Decompose is the gradient of the definition.
func (o AttentionGrad) Decompose(b *ir.Builder, in []*ir.Value) []*ir.Value {
	u := newUnfused(b, in)
	p, ds, dy := u.backward(o.Scale, o.Guard, in)
	rows := u.rows(b.Add(Mul{}, ds, b.Scalar(u.t, o.Scale)))
	d := in[0].Type.DType
	return []*ir.Value{
		narrow(b, u.heads(b.Add(MatMul{}, rows, u.k)), d),
		narrow(b, b.Add(MatMul{TransA: true}, rows, u.rows(u.q)), d),
		narrow(b, b.Add(MatMul{TransA: true}, u.rows(p), u.rows(dy)), d),
	}
}

// Decompose is the gradient of the definition.
func (o AttentionMaskGrad) Decompose(b *ir.Builder, in []*ir.Value) []*ir.Value {
	u := newUnfused(b, in)
	_, ds, _ := u.backward(o.Scale, o.Guard, in)
	s := u.MaskShape(in[6].Type.Shape)
	var axes []int64
	for a, n := range []int64{u.Batch, u.Heads} {
		if s[a] == 1 && n != 1 {
			axes = append(axes, int64(a))
		}
	}
	if len(axes) > 0 {
		ds = b.Add(ReduceSum{Axes: axes, KeepDims: true}, ds)
	}
	return []*ir.Value{narrow(b, ds, in[6].Type.DType)}
}
