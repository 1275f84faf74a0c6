package importer

import (
	"math"

	"aitk/ir"
	"aitk/ir/op"
)

// attention is softmax(scale*q*k' with cap, + bias) * v, of operands [batch, heads, length, size]. Keys and values may have fewer heads; each then serves
// a group of query heads, which is one matrix product a group and needs no copies.
type attention struct {
	q, k, v   *operand
	scale     float64
	softcap   float64  // 0: none
	bias      *operand // added to the scores, broadcasts to [batch, heads, queries, keys]; nil: none
	guard     bool     // a row of the bias may be -inf throughout: its result is 0
	precision ir.DType // of the softmax; Invalid: that of q
}

// attended is what an attention gives, and its stages on the way.
type attended struct{ y, raw, capped, biased, weights *operand }

// heads brings [batch, length, heads*size] into [batch, heads, length, size].
func (c *call) heads(x *operand, heads int64) *operand {
	s := x.typ.Shape
	if len(s) == 4 {
		return x
	}
	if len(s) != 3 || heads < 1 || s[2]%heads != 0 {
		c.invalid("%d heads for %v", heads, x.typ)
	}
	return c.transpose(c.reshape(x, s[0], s[1], heads, s[2]/heads), 0, 2, 1, 3)
}

// joined is the inverse of heads.
func (c *call) joined(x *operand) *operand {
	s := x.typ.Shape
	return c.reshape(c.transpose(x, 0, 2, 1, 3), s[0], s[2], s[1]*s[3])
}

func (c *call) attend(a attention) attended {
	qs, ks, vs := a.q.typ.Shape, a.k.typ.Shape, a.v.typ.Shape
	if len(qs) != 4 || len(ks) != 4 || len(vs) != 4 || ks[1] < 1 || qs[1]%ks[1] != 0 || vs[1] != ks[1] || ks[3] != qs[3] || vs[2] != ks[2] || ks[0] != qs[0] || vs[0] != qs[0] {
		c.invalid("queries %v, keys %v and values %v do not fit", a.q.typ, a.k.typ, a.v.typ)
	}
	batch, heads, queries, size, keys := qs[0], qs[1], qs[2], qs[3], ks[2]
	groups, per := ks[1], qs[1]/ks[1]
	d := a.q.typ.DType
	var out attended
	q := c.reshape(c.scale(a.q, a.scale), batch, groups, per*queries, size)
	out.raw = c.reshape(c.emit(op.MatMul{TransB: true}, q, a.k), batch, heads, queries, keys)
	scores := out.raw
	if a.softcap > 0 {
		scores = c.scale(c.emit(op.Tanh{}, c.scale(scores, 1/a.softcap)), a.softcap)
	}
	out.capped = scores
	var masked *operand
	if a.bias != nil {
		bias := a.bias
		out.biased = c.emit(op.Add{}, scores, bias)
		if a.guard {
			top := c.emit(op.ReduceMax{Axes: []int64{int64(len(bias.typ.Shape) - 1)}, KeepDims: true}, bias)
			masked = c.emit(op.Equal{}, top, scalar(bias.typ.DType, math.Inf(-1)))
			if hidden, ok := splat(masked.known); ok && hidden == 0 {
				masked = nil
			} else {
				// The softmax of such a row is no number, and so would be its gradient: it gets another bias, and the result is cleared.
				bias = c.emit(op.Where{}, masked, scalar(bias.typ.DType, 0), bias)
			}
		}
		scores = c.emit(op.Add{}, scores, bias)
		if masked == nil {
			out.biased = scores
		}
	} else {
		out.biased = scores
	}
	if !out.biased.typ.Shape.Equal(ir.Shape{batch, heads, queries, keys}) {
		c.invalid("bias %v does not broadcast to scores %v", a.bias.typ, out.raw.typ)
	}
	if a.precision != ir.Invalid {
		scores = c.cast(scores, a.precision)
	}
	w := c.emit(op.Softmax{Axis: 3}, scores)
	if masked != nil {
		w = c.emit(op.Where{}, masked, scalar(w.typ.DType, 0), w)
	}
	out.weights = c.cast(w, d)
	y := c.emit(op.MatMul{}, c.reshape(out.weights, batch, groups, per*queries, keys), a.v)
	out.y = c.reshape(y, batch, heads, queries, vs[3])
	return out
}

// lowerAttention is Attention of opset 23 and later, by the definition of the newest release.
func lowerAttention(c *call) []*operand {
	c.args(3, 7)
	q, k, v := c.arg(0), c.arg(1), c.arg(2)
	flat := len(q.typ.Shape) == 3
	qHeads, kvHeads := c.int("q_num_heads", 0), c.int("kv_num_heads", 0)
	q, k, v = c.heads(q, qHeads), c.heads(k, kvHeads), c.heads(v, kvHeads)
	a := attention{q: q, k: k, v: v, softcap: c.float("softcap", 0)}
	if len(q.typ.Shape) != 4 || q.typ.Shape[3] < 1 {
		c.invalid("queries %v", q.typ)
	}
	a.scale = c.float("scale", 1/math.Sqrt(float64(q.typ.Shape[3])))
	if p := int32(c.int("softmax_precision", 0)); p != 0 {
		var err error
		if a.precision, err = wantDType(p); err != nil || !a.precision.IsFloat() {
			c.unsupported("softmax_precision %d", p)
		}
	}
	past := int64(0)
	if c.has(4) != c.has(5) {
		c.invalid("past key and value come together")
	}
	if c.has(4) {
		if len(c.arg(4).typ.Shape) != 4 {
			c.invalid("past key %v", c.arg(4).typ)
		}
		past = c.arg(4).typ.Shape[2]
		a.k, a.v = c.concat([]*operand{c.arg(4), k}, 2), c.concat([]*operand{c.arg(5), v}, 2)
	}
	a.bias = c.attentionBias(&a, past)
	a.guard = a.bias != nil
	out := c.attend(a)
	y := out.y
	if flat {
		y = c.joined(y)
	}
	stage := out.raw
	switch mode := c.int("qk_matmul_output_mode", 0); mode {
	case 0:
	case 1:
		stage = out.capped
	case 2:
		stage = out.biased
	case 3:
		stage = out.weights
	default:
		c.invalid("qk_matmul_output_mode=%d", mode)
	}
	return []*operand{y, a.k, a.v, stage}
}

// attentionBias joins mask, causality, windows and the number of valid keys to what is added to the scores; nil if there is nothing.
func (c *call) attentionBias(a *attention, past int64) *operand {
	d := a.q.typ.DType
	queries, keys := a.q.typ.Shape[2], a.k.typ.Shape[2]
	var bias *operand
	add := func(x *operand) {
		if bias == nil {
			bias = x
		} else {
			bias = c.emit(op.Add{}, bias, x)
		}
	}
	hide := func(allowed *operand) *operand {
		return c.emit(op.Where{}, allowed, scalar(d, 0), scalar(d, math.Inf(-1)))
	}
	if c.has(3) {
		add(c.attentionMask(c.arg(3), keys, d, hide))
	}
	var valid *operand // number of valid keys, [batch,1,1,1]
	offset := scalar(ir.I64, float64(past))
	if c.has(6) {
		valid = c.cast(c.arg(6), ir.I64)
		valid = c.reshape(valid, valid.typ.Elems(), 1, 1, 1)
		if !c.has(4) {
			offset = c.plus(valid, -float64(queries))
		}
	}
	row := c.emit(op.Iota{DType: ir.I64, Shape: ir.Shape{queries, 1}, Axis: 0, Step: 1})
	col := c.emit(op.Iota{DType: ir.I64, Shape: ir.Shape{1, keys}, Axis: 1, Step: 1})
	at := c.emit(op.Add{}, row, offset) // absolute position of each query
	if c.flag("is_causal", false) {
		add(hide(c.emit(op.LessEqual{}, col, at)))
	}
	if left := c.int("left_window_size", -1); left >= 0 {
		add(hide(c.emit(op.LessEqual{}, c.emit(op.Sub{}, at, col), scalar(ir.I64, float64(left)))))
	}
	if right := c.int("right_window_size", -1); right >= 0 {
		add(hide(c.emit(op.LessEqual{}, c.emit(op.Sub{}, col, at), scalar(ir.I64, float64(right)))))
	}
	if valid != nil {
		add(hide(c.emit(op.Less{}, c.reshape(col, 1, 1, 1, keys), valid)))
	}
	return bias
}

// attentionMask makes a mask a bias as long as the keys; what it does not cover is hidden.
func (c *call) attentionMask(m *operand, keys int64, d ir.DType, hide func(*operand) *operand) *operand {
	last := len(m.typ.Shape) - 1
	if last < 0 {
		c.invalid("mask %v", m.typ)
	}
	if m.typ.DType == ir.Bool {
		m = hide(m)
	} else {
		m = c.cast(m, d)
	}
	if have := m.typ.Shape[last]; have < keys && have != 1 {
		before, after := make([]int64, last+1), make([]int64, last+1)
		after[last] = keys - have
		m = c.padConstant(m, before, after, math.Inf(-1))
	}
	return m
}

// rotary turns pairs of features by an angle that grows with the position: x [batch, heads, length, size]; cos and sin broadcast over
// [batch, heads, length, dim/2]. Only the first dim features turn. Pairs are neighbours (interleaved) or halves.
func (c *call) rotary(x, cos, sin *operand, dim int64, interleaved bool) *operand {
	s := x.typ.Shape
	size := s[3]
	if dim < 0 || dim > size || dim%2 != 0 {
		c.invalid("%d of %d features turn", dim, size)
	}
	turn := c.slice(x, 3, 0, dim, 1)
	var a, b *operand
	half := dim / 2
	pairs := ir.Shape{s[0], s[1], s[2], half, 2}
	if interleaved {
		p := c.reshape(turn, pairs...)
		flat := ir.Shape{s[0], s[1], s[2], half}
		a, b = c.reshape(c.slice(p, 4, 0, 1, 1), flat...), c.reshape(c.slice(p, 4, 1, 2, 1), flat...)
	} else {
		a, b = c.slice(turn, 3, 0, half, 1), c.slice(turn, 3, half, dim, 1)
	}
	re := c.emit(op.Sub{}, c.emit(op.Mul{}, a, cos), c.emit(op.Mul{}, b, sin))
	im := c.emit(op.Add{}, c.emit(op.Mul{}, a, sin), c.emit(op.Mul{}, b, cos))
	if !re.typ.Shape.Equal(a.typ.Shape) {
		c.invalid("cosines %v for %v", cos.typ, x.typ)
	}
	var y *operand
	if interleaved {
		one := ir.Shape{s[0], s[1], s[2], half, 1}
		y = c.reshape(c.concat([]*operand{c.reshape(re, one...), c.reshape(im, one...)}, 4), turn.typ.Shape...)
	} else {
		y = c.concat([]*operand{re, im}, 3)
	}
	if dim == size {
		return y
	}
	return c.concat([]*operand{y, c.slice(x, 3, dim, size, 1)}, 3)
}

// lowerRotaryEmbedding reads the caches at given positions, or has them [batch, length, dim/2].
func lowerRotaryEmbedding(c *call) []*operand {
	c.args(3, 4)
	x := c.arg(0)
	flat := len(x.typ.Shape) == 3
	x = c.heads(x, c.int("num_heads", 0))
	if len(x.typ.Shape) != 4 {
		c.invalid("operand %v", x.typ)
	}
	dim := c.int("rotary_embedding_dim", 0)
	if dim == 0 {
		dim = x.typ.Shape[3]
	}
	line := func(cache *operand) *operand {
		if c.has(3) {
			cache = c.emit(op.Gather{}, cache, c.index(3))
		}
		s := cache.typ.Shape
		if len(s) != 3 {
			c.invalid("cache %v", cache.typ)
		}
		if s[2] > dim/2 { // files of the first release have caches for all features
			cache = c.slice(cache, 2, 0, dim/2, 1)
		}
		return c.reshape(cache, s[0], 1, s[1], cache.typ.Shape[2])
	}
	y := c.rotary(x, line(c.arg(1)), line(c.arg(2)), dim, c.flag("interleaved", false))
	if flat {
		y = c.joined(y)
	}
	return one(y)
}
