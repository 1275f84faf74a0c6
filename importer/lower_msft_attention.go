package importer

import (
	"math"

	"aitk/ir"
	"aitk/ir/op"
)

// msftBias gathers what is added to the scores of an attention.
type msftBias struct {
	*call
	sum           *operand
	d             ir.DType
	queries, keys int64
}

func (b *msftBias) add(x *operand) {
	if b.sum == nil {
		b.sum = x
	} else {
		b.sum = b.emit(op.Add{}, b.sum, x)
	}
}

// hide adds a number where allowed is false.
func (b *msftBias) hide(allowed *operand, by float64) {
	b.add(b.emit(op.Where{}, allowed, scalar(b.d, 0), scalar(b.d, by)))
}

func (b *msftBias) row(offset int64) *operand {
	return b.emit(op.Iota{DType: ir.I64, Shape: ir.Shape{b.queries, 1}, Start: float64(offset), Step: 1})
}

func (b *msftBias) col() *operand {
	return b.emit(op.Iota{DType: ir.I64, Shape: ir.Shape{1, b.keys}, Axis: 1, Step: 1})
}

// padding reads a mask of keys: the number of valid ones of each sequence [batch], one flag a key [batch,keys], a query and key [batch,queries,keys] or
// [batch,1,queries,keys].
func (b *msftBias) padding(m *operand, batch int64, by float64) {
	s := m.typ.Shape
	switch {
	case len(s) == 1 && s[0] == batch:
		b.hide(b.emit(op.Less{}, b.reshape(b.col(), 1, 1, 1, b.keys), b.reshape(b.cast(m, ir.I64), batch, 1, 1, 1)), by)
	case len(s) == 2 && s[0] == batch && s[1] == b.keys:
		b.hide(b.reshape(b.cast(m, ir.Bool), batch, 1, 1, b.keys), by)
	case len(s) == 3 && s[0] == batch && s[2] == b.keys:
		b.hide(b.reshape(b.cast(m, ir.Bool), batch, 1, s[1], b.keys), by)
	case len(s) == 4 && s[3] == b.keys && s[2] == b.queries:
		b.hide(b.cast(m, ir.Bool), by)
	default:
		b.unsupported("mask %v for %d sequences of %d keys", m.typ, batch, b.keys)
	}
}

func (b *msftBias) causal(past int64) {
	b.hide(b.emit(op.LessEqual{}, b.col(), b.row(past)), math.Inf(-1))
}

func (c *call) msftScale(size int64) float64 {
	if x := c.float("scale", 0); x != 0 {
		return x
	}
	return 1 / math.Sqrt(float64(size))
}

// lowerMsftAttention projects its operand to queries, keys and values itself.
func lowerMsftAttention(c *call) []*operand {
	c.args(2, 7)
	x, w := c.arg(0), c.arg(1)
	heads := c.int("num_heads", 0)
	if c.flag("do_rotary", false) || c.flag("past_present_share_buffer", false) || c.has(6) {
		c.unsupported("rotary embeddings and shared caches of Attention")
	}
	c.ignore("rotary_embedding_dim")
	if len(x.typ.Shape) != 3 || len(w.typ.Shape) != 2 || heads < 1 {
		c.invalid("%d heads, operand %v, weights %v", heads, x.typ, w.typ)
	}
	sizes, ok := c.ints("qkv_hidden_sizes")
	if !ok {
		n := w.typ.Shape[1] / 3
		sizes = []int64{n, n, n}
	}
	if len(sizes) != 3 {
		c.invalid("qkv_hidden_sizes %v", sizes)
	}
	y := c.emit(op.MatMul{}, x, c.reshape(w, append([]int64{1}, w.typ.Shape...)...))
	if c.has(2) {
		y = c.emit(op.Add{}, y, c.arg(2))
	}
	parts := c.split(y, 2, sizes)
	a := attention{q: c.heads(parts[0], heads), k: c.heads(parts[1], heads), v: c.heads(parts[2], heads)}
	a.scale = c.msftScale(a.q.typ.Shape[3])
	past := int64(0)
	if c.has(4) {
		p := c.arg(4)
		if len(p.typ.Shape) != 5 || p.typ.Shape[0] != 2 {
			c.invalid("past %v", p.typ)
		}
		past = p.typ.Shape[3]
		a.k, a.v = c.concat([]*operand{c.part(p, 0), a.k}, 2), c.concat([]*operand{c.part(p, 1), a.v}, 2)
	}
	by := c.float("mask_filter_value", -10000)
	b := &msftBias{call: c, d: x.typ.DType, queries: x.typ.Shape[1], keys: a.k.typ.Shape[2]}
	if c.has(3) {
		b.padding(c.arg(3), x.typ.Shape[0], by)
	}
	if c.has(5) {
		b.add(c.arg(5))
	}
	if c.flag("unidirectional", false) {
		b.causal(past)
	}
	a.bias = b.sum
	out := c.joined(c.attend(a).y)
	if len(c.n.Output) < 2 || c.left[c.n.Output[1]] == 0 {
		return one(out)
	}
	lead := func(x *operand) *operand { return c.reshape(x, append([]int64{1}, x.typ.Shape...)...) }
	return []*operand{out, c.concat([]*operand{lead(a.k), lead(a.v)}, 0)}
}

// lowerMultiHeadAttention has queries, keys and values already projected, in one of several layouts.
func lowerMultiHeadAttention(c *call) []*operand {
	c.args(1, 8)
	heads := c.int("num_heads", 0)
	q := c.arg(0)
	var k, v *operand
	switch s := q.typ.Shape; {
	case len(s) == 5 && !c.has(1): // [batch, length, heads, 3, size]
		all := c.transpose(q, 3, 0, 2, 1, 4)
		q, k, v = c.part(all, 0), c.part(all, 1), c.part(all, 2)
	case len(s) != 3 || heads < 1:
		c.invalid("%d heads, queries %v", heads, q.typ)
	case len(c.arg(1).typ.Shape) == 5: // [batch, length, heads, 2, size]
		all := c.transpose(c.arg(1), 3, 0, 2, 1, 4)
		k, v = c.part(all, 0), c.part(all, 1)
	default:
		k, v = c.arg(1), c.arg(2)
	}
	if c.has(3) {
		q, k, v = c.projectionBias(q, k, v)
	}
	a := attention{q: c.heads(q, heads), k: c.heads(k, heads), v: c.heads(v, heads)}
	past := int64(0)
	if c.has(6) {
		past = c.arg(6).typ.Shape[min(2, len(c.arg(6).typ.Shape)-1)]
		a.k, a.v = c.concat([]*operand{c.arg(6), a.k}, 2), c.concat([]*operand{c.arg(7), a.v}, 2)
	}
	a.scale = c.msftScale(a.q.typ.Shape[3])
	b := &msftBias{call: c, d: a.q.typ.DType, queries: a.q.typ.Shape[2], keys: a.k.typ.Shape[2]}
	by := c.float("mask_filter_value", -10000)
	if c.has(4) {
		b.padding(c.arg(4), a.q.typ.Shape[0], by)
	}
	if c.has(5) {
		b.add(c.arg(5))
	}
	if c.flag("unidirectional", false) {
		b.causal(past)
	}
	a.bias = b.sum
	out := c.attend(a)
	return []*operand{c.joined(out.y), a.k, a.v, out.raw}
}

// projectionBias adds the biases of the projections, which lie one behind the other.
func (c *call) projectionBias(q, k, v *operand) (*operand, *operand, *operand) {
	bias := c.arg(3)
	list := []*operand{q, k, v}
	at := int64(0)
	for i, x := range list {
		s := x.typ.Shape
		n := s[len(s)-1]
		if len(s) == 4 { // [batch, heads, length, size]
			n *= s[1]
		}
		part := c.slice(bias, 0, at, at+n, 1)
		at += n
		if len(s) == 4 {
			part = c.reshape(part, s[1], 1, s[3])
		}
		list[i] = c.emit(op.Add{}, x, part)
	}
	if at != bias.typ.Elems() {
		c.invalid("bias %v", bias.typ)
	}
	return list[0], list[1], list[2]
}

// lowerGroupQueryAttention is causal, with fewer heads of keys than of queries. Of caches, those are understood that are full: past and new keys one behind
// the other, as many as total_sequence_length says.
func lowerGroupQueryAttention(c *call) []*operand {
	c.args(1, 17)
	heads, kv := c.int("num_heads", 0), c.int("kv_num_heads", 0)
	for k := 11; k < len(c.in); k++ {
		if c.has(k) {
			c.unsupported("operand %d of GroupQueryAttention", k)
		}
	}
	c.ignore("k_norm_epsilon", "q_norm_epsilon", "qk_norm_epsilon", "kv_cache_bit_width", "sliding_window_cache")
	if c.flag("smooth_softmax", false) || c.int("qk_output", 0) != 0 || c.string("k_quant_type", "NONE") != "NONE" || c.string("v_quant_type", "NONE") != "NONE" {
		c.unsupported("smooth softmax, scores as a result, and quantized caches of GroupQueryAttention")
	}
	x := c.arg(0)
	s := x.typ.Shape
	if len(s) != 3 || heads < 1 || kv < 1 {
		c.invalid("%d and %d heads, queries %v", heads, kv, x.typ)
	}
	q, k, v := x, c.optional(1), c.optional(2)
	if k == nil {
		size := s[2] / (heads + 2*kv)
		parts := c.split(x, 2, []int64{heads * size, kv * size, kv * size})
		q, k, v = parts[0], parts[1], parts[2]
	}
	a := attention{q: c.heads(q, heads), k: c.heads(k, kv), v: c.heads(v, kv), softcap: c.float("softcap", 0)}
	a.scale = c.msftScale(a.q.typ.Shape[3])
	past := int64(0)
	if c.has(3) {
		if len(c.arg(3).typ.Shape) != 4 {
			c.invalid("past key %v", c.arg(3).typ)
		}
		past = c.arg(3).typ.Shape[2]
	}
	queries := a.q.typ.Shape[2]
	if past > 0 {
		if total := c.constInt(6, "total_sequence_length"); total != past+queries {
			c.unsupported("a cache of %d for %d of %d keys: only full caches are supported", past, total-queries, total)
		}
	}
	if c.flag("do_rotary", false) {
		c.groupRotary(&a, past)
	} else {
		c.ignore("rotary_interleaved")
	}
	if past > 0 {
		a.k, a.v = c.concat([]*operand{c.arg(3), a.k}, 2), c.concat([]*operand{c.arg(4), a.v}, 2)
	}
	b := &msftBias{call: c, d: a.q.typ.DType, queries: queries, keys: a.k.typ.Shape[2]}
	if c.flag("causal", true) {
		b.causal(past)
	}
	if w := c.int("local_window_size", -1); w > 0 {
		b.hide(b.emit(op.Less{}, b.emit(op.Sub{}, b.row(past), b.col()), scalar(ir.I64, float64(w))), math.Inf(-1))
	}
	if c.has(10) {
		b.add(c.arg(10))
	}
	// Keys behind the end of a sequence, which seqlens_k counts less one. A row of padding sees the first key at least.
	ends := c.reshape(c.cast(c.arg(5), ir.I64), s[0], 1, 1, 1)
	b.hide(b.emit(op.LessEqual{}, b.reshape(b.col(), 1, 1, 1, b.keys), ends), math.Inf(-1))
	a.bias, a.guard = b.sum, false
	out := c.attend(a)
	return []*operand{c.joined(out.y), a.k, a.v}
}

// groupRotary turns queries and keys by their positions.
func (c *call) groupRotary(a *attention, past int64) {
	inter := c.flag("rotary_interleaved", false)
	cos, sin := c.arg(7), c.arg(8)
	if len(cos.typ.Shape) != 2 {
		c.invalid("cache %v", cos.typ)
	}
	half := cos.typ.Shape[1]
	line := func(cache *operand) *operand {
		if c.has(9) {
			cache = c.emit(op.Gather{}, cache, c.index(9)) // [batch, length, half]
			return c.reshape(cache, cache.typ.Shape[0], 1, cache.typ.Shape[1], half)
		}
		n := a.q.typ.Shape[2]
		if cache.typ.Shape[0] < past+n {
			c.invalid("a cache of %d positions for %d", cache.typ.Shape[0], past+n)
		}
		return c.reshape(c.slice(cache, 0, past, past+n, 1), 1, 1, n, half)
	}
	cs, sn := line(cos), line(sin)
	a.q, a.k = c.rotary(a.q, cs, sn, 2*half, inter), c.rotary(a.k, cs, sn, 2*half, inter)
}

// lowerMsftRotary has the positions before the caches, and one number where they only begin there.
func lowerMsftRotary(c *call) []*operand {
	c.args(4, 4)
	c.ignore("scale")
	if c.flag("is_packed_batching", false) {
		c.unsupported("packed batches")
	}
	x, cos, sin := c.arg(0), c.arg(2), c.arg(3)
	heads, dim := c.int("num_heads", 0), c.int("rotary_embedding_dim", 0)
	flat := len(x.typ.Shape) == 3
	if len(cos.typ.Shape) != 2 || !flat && len(x.typ.Shape) != 4 {
		c.invalid("operand %v, cache %v", x.typ, cos.typ)
	}
	half := cos.typ.Shape[1]
	if flat && heads == 0 {
		heads = x.typ.Shape[2] / max(1, 2*half)
	}
	x = c.heads(x, heads)
	if dim == 0 {
		dim = 2 * half
	}
	n := x.typ.Shape[2]
	positions := c.index(1)
	if positions.typ.Elems() == 1 {
		at := c.emit(op.Iota{DType: positions.typ.DType, Shape: ir.Shape{1, n}, Axis: 1, Step: 1})
		positions = c.emit(op.Add{}, at, c.reshape(positions, 1, 1))
	}
	line := func(cache *operand) *operand {
		y := c.emit(op.Gather{}, cache, positions)
		return c.reshape(y, y.typ.Shape[0], 1, y.typ.Shape[1], half)
	}
	y := c.rotary(x, line(cos), line(sin), dim, c.flag("interleaved", false))
	if flat {
		y = c.joined(y)
	}
	return one(y)
}
