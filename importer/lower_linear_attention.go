package importer

import (
	"math"

	"aitk/ir"
	"aitk/ir/op"
)

// lowerLinearAttention keeps a matrix of state for each head of keys and unrolls over time:
//
//	S = exp(decay) . S;  v = beta . (v - k S);  S = S + k' v;  y = scale * q S
//
// where decay and the correction by what the state already holds are there as update_rule says.
func lowerLinearAttention(c *call) []*operand {
	c.args(3, 6)
	c.ignore("chunk_size") // a hint
	q, k, v := c.arg(0), c.arg(1), c.arg(2)
	qHeads, kvHeads := c.int("q_num_heads", 0), c.int("kv_num_heads", 0)
	rule := c.string("update_rule", "gated_delta")
	gated, delta := rule == "gated" || rule == "gated_delta", rule == "delta" || rule == "gated_delta"
	if kvHeads < 1 || qHeads < 1 || qHeads%kvHeads != 0 || len(q.typ.Shape) != 3 || gated != c.has(4) || delta != c.has(5) {
		c.invalid("%d and %d heads, update_rule=%q, queries %v", qHeads, kvHeads, rule, q.typ)
	}
	d := q.typ.DType
	q4, k4, v4 := c.cast(c.heads(q, qHeads), ir.F32), c.cast(c.heads(k, kvHeads), ir.F32), c.cast(c.heads(v, kvHeads), ir.F32)
	b, steps := q4.typ.Shape[0], q4.typ.Shape[2]
	dk, dv := q4.typ.Shape[3], v4.typ.Shape[3]
	c.unrollLimit(steps, "steps of a sequence")
	scale := c.float("scale", 0)
	if scale == 0 {
		scale = 1 / math.Sqrt(float64(dk))
	}
	var decay, beta *operand
	if gated {
		x := c.arg(4)
		heads := int64(1)
		if len(x.typ.Shape) == 3 {
			heads = kvHeads
		}
		decay = c.emit(op.Exp{}, c.cast(c.heads(x, heads), ir.F32)) // [b, heads, t, 1 or dk]
	}
	if delta {
		x := c.arg(5)
		if len(x.typ.Shape) != 3 {
			c.invalid("beta %v", x.typ)
		}
		beta = c.cast(c.heads(x, x.typ.Shape[2]), ir.F32) // [b, heads or 1, t, 1]
	}
	stateType := d
	state := c.fill(ir.T(ir.F32, b, kvHeads, dk, dv), 0)
	if c.has(3) {
		stateType = c.arg(3).typ.DType
		state = c.cast(c.arg(3), ir.F32)
	}
	var outs []*operand
	per := qHeads / kvHeads
	for t := range steps {
		c.unrollLimit(0, "")
		at := func(x *operand) *operand { return c.slice(x, 2, t, t+1, 1) } // [b, heads, 1, size]
		kt, vt := at(k4), at(v4)
		if gated {
			state = c.emit(op.Mul{}, state, c.transpose(at(decay), 0, 1, 3, 2))
		}
		if delta {
			vt = c.emit(op.Mul{}, at(beta), c.emit(op.Sub{}, vt, c.emit(op.MatMul{}, kt, state)))
		}
		state = c.emit(op.Add{}, state, c.emit(op.MatMul{TransA: true}, kt, vt))
		qt := c.reshape(c.scale(at(q4), scale), b, kvHeads, per, dk)
		outs = append(outs, c.reshape(c.emit(op.MatMul{}, qt, state), b, 1, qHeads*dv))
	}
	y := c.fill(ir.T(ir.F32, b, 0, qHeads*dv), 0)
	if outs != nil {
		y = c.concat(outs, 1)
	}
	return []*operand{c.cast(y, d), c.cast(state, stateType)}
}

// lowerCausalConvWithState is a convolution of each channel with what came before it; the last inputs are the state for the next call.
func lowerCausalConvWithState(c *call) []*operand {
	c.args(2, 4)
	x, w := c.arg(0), c.arg(1)
	s, ws := x.typ.Shape, w.typ.Shape
	if len(s) != 3 || len(ws) != 3 || ws[0] != s[1] || ws[1] != 1 || ws[2] < 1 {
		c.invalid("kernel %v for %v", w.typ, x.typ)
	}
	k := ws[2]
	past := c.fill(ir.T(x.typ.DType, s[0], s[1], k-1), 0)
	if c.has(3) {
		past = c.arg(3)
	}
	all := c.concat([]*operand{past, x}, 2)
	y := c.emit(op.Conv{Strides: []int64{1}, Dilations: []int64{1}, Pads: []int64{0, 0}, Group: s[1]}, all, w)
	y = c.channelBias(y, 2)
	switch f := c.string("activation", "none"); f {
	case "none":
	case "silu", "swish":
		y = c.emit(op.Mul{}, y, c.emit(op.Sigmoid{}, y))
	default:
		c.invalid("activation=%q", f)
	}
	n := all.typ.Shape[2]
	return []*operand{y, c.slice(all, 2, n-(k-1), n, 1)}
}

// lowerFlexAttention lets bodies change the scores before and the weights behind the softmax.
func lowerFlexAttention(c *call) []*operand {
	c.args(3, 3)
	q, k, v := c.arg(0), c.arg(1), c.arg(2)
	qs, ks, vs := q.typ.Shape, k.typ.Shape, v.typ.Shape
	if len(qs) != 4 || len(ks) != 4 || len(vs) != 4 || ks[1] < 1 || qs[1]%ks[1] != 0 || vs[1] != ks[1] || qs[3] < 1 {
		c.invalid("queries %v, keys %v, values %v", q.typ, k.typ, v.typ)
	}
	d := q.typ.DType
	precision := computeType(d)
	if p := int32(c.int("softmax_precision", 0)); p != 0 {
		var err error
		if precision, err = wantDType(p); err != nil {
			c.unsupported("%w", err)
		}
	}
	per := qs[1] / ks[1]
	scale := c.float("scale", 1/math.Sqrt(float64(qs[3])))
	flat := c.reshape(c.cast(q, precision), qs[0], ks[1], per*qs[2], qs[3])
	scores := c.scale(c.emit(op.MatMul{TransB: true}, flat, c.cast(k, precision)), scale)
	scores = c.reshape(scores, qs[0], qs[1], qs[2], ks[2])
	change := func(name string, x *operand) *operand {
		for _, a := range c.n.Attribute {
			if a.GetName() == name {
				if outs := c.body(c.graph(name), []*operand{x}); outs != nil {
					return outs[0]
				}
				return nil
			}
		}
		return x
	}
	if scores = change("score_mod", scores); scores == nil {
		return c.failed()
	}
	weights := change("prob_mod", c.emit(op.Softmax{Axis: 3}, scores))
	if weights == nil {
		return c.failed()
	}
	y := c.emit(op.MatMul{}, c.reshape(c.cast(weights, d), qs[0], ks[1], per*qs[2], ks[2]), v)
	return one(c.reshape(y, qs[0], qs[1], qs[2], vs[3]))
}
