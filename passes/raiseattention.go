package passes

import (
	"math"

	"aitk/ir"
	"aitk/ir/op"
)

// attentionMatch is an attention in pieces. Walking back from the product with the values it finds
//
//	MatMul(P, v)             P: casts, reshapes of the rows, NaN replaced by 0 (guard), down to
//	Softmax(S)               along the last axis; S: casts, reshapes of the rows, masks added or selected, scales, down to
//	MatMul(q, k)             q and k: scales, casts, transposes, reshapes of the leading axes, heads repeated by Expand
type attentionMatch struct {
	scores         ir.Shape // of the softmax's operand
	scale          float64
	guard          bool
	hidden         *ir.Value   // what says which rows have no key, where the importer guards them so
	masks          []*ir.Value // added to the scores
	chosen         []choice    // scores replaced by a number where a condition holds
	qk             *ir.Node
	batch, heads   int64
	queries, keys  int64
	inside         map[*ir.Node]bool // nodes whose results nobody else may read
	softmax, value *ir.Node
}

// choice is Where(when, x, number) or the other way round.
type choice struct {
	when   *ir.Value
	number *ir.Value
	keep   bool // the scores stay where the condition holds
}

// leastMask is how negative a selected number must be to stand for no attention at all, so that adding it is the same.
const leastMask = -1e30

func (x *raiser) matchAttention(n *ir.Node) {
	if n.Op.(op.MatMul).TransA {
		return
	}
	m := &attentionMatch{scale: 1, value: n, inside: map[*ir.Node]bool{}}
	soft, why := x.weightsOf(n.In[0], m)
	if soft == nil && why == "" {
		return
	}
	if why == "" {
		m.softmax = soft
		var like bool
		if like, why = x.scoresOf(soft.In[0], m); !like {
			return
		}
	}
	if why == "" {
		why = x.extents(m)
	}
	var parts *attentionParts
	if why == "" {
		parts, why = x.parts(m)
	}
	if why == "" {
		why = x.alone(m)
	}
	if why != "" {
		x.stays(n, why)
		return
	}
	x.put("attentions", n, func() *ir.Value { return x.buildAttention(m, parts) })
}

// weightsOf walks from the weights of the values back to the softmax. Both results empty: it is none.
func (x *raiser) weightsOf(v *ir.Value, m *attentionMatch) (soft *ir.Node, why string) {
	for range 8 {
		n := v.Def
		if n == nil {
			return nil, ""
		}
		m.inside[n] = true
		switch o := n.Op.(type) {
		case op.Softmax:
			if o.Axis != int64(len(v.Type.Shape))-1 {
				return nil, ""
			}
			return n, ""
		case op.Cast:
			if !n.In[0].Type.DType.IsFloat() {
				return nil, ""
			}
			v = n.In[0]
		case op.Reshape:
			if !sameLast(n.In[0].Type.Shape, v.Type.Shape) {
				return nil, ""
			}
			v = n.In[0]
		case op.Where:
			if !x.isSplat(n.In[1], 0) || n.In[0].Def == nil {
				return nil, ""
			}
			if _, nan := n.In[0].Def.Op.(op.IsNaN); nan && n.In[0].Def.In[0] == n.In[2] {
				m.inside[n.In[0].Def] = true
			} else {
				m.hidden = n.In[0]
			}
			m.guard = true
			v = n.In[2]
		case op.Dropout:
			if s, _ := x.weightsOf(n.In[0], m); s != nil {
				return s, "dropout is applied to its weights"
			}
			return nil, ""
		default:
			return nil, ""
		}
	}
	return nil, ""
}

func sameLast(a, b ir.Shape) bool {
	return len(a) > 0 && len(b) > 0 && a[len(a)-1] == b[len(b)-1]
}

// scoresOf walks from the softmax's operand back to the product of queries and keys. like is false where there is none.
func (x *raiser) scoresOf(v *ir.Value, m *attentionMatch) (like bool, why string) {
	m.scores = v.Type.Shape
	for range 16 {
		n := v.Def
		if n == nil {
			return false, ""
		}
		whole := v.Type.Shape.Equal(m.scores)
		m.inside[n] = true
		if of, c, ok := x.byNumber(v); ok {
			v = of
			m.scale *= c
			continue
		}
		switch o := n.Op.(type) {
		case op.MatMul:
			if o.TransA {
				return true, "its queries are transposed"
			}
			m.qk = n
			return true, why
		case op.Cast:
			if !n.In[0].Type.DType.IsFloat() {
				return false, ""
			}
			v = n.In[0]
		case op.Reshape:
			if !sameLast(n.In[0].Type.Shape, v.Type.Shape) {
				return false, ""
			}
			v = n.In[0]
		case op.Add:
			k := 0
			if !x.fromProduct(n.In[0], v.Type.Shape.Elems()) {
				k = 1
			}
			if n.In[k].Type.Shape.Elems() != v.Type.Shape.Elems() {
				return false, ""
			}
			if m.scale != 1 {
				why = "a scale is applied after the mask"
			} else if !whole {
				why = "the mask is added under another shape"
			}
			m.masks = append(m.masks, n.In[1-k])
			v = n.In[k]
		case op.Where:
			k := 1
			c, ok := x.splat(n.In[2])
			if !ok {
				k = 2
				if c, ok = x.splat(n.In[1]); !ok {
					return false, ""
				}
			}
			switch {
			case n.In[k].Type.Shape.Elems() != v.Type.Shape.Elems():
				return false, ""
			case c > leastMask:
				why = "the number in the place of hidden scores is not negative enough to hide them"
			case !whole:
				why = "the mask is chosen under another shape"
			case m.scale != 1:
				why = "a scale is applied after the mask"
			}
			m.chosen = append(m.chosen, choice{n.In[0], n.In[3-k], k == 1})
			v = n.In[k]
		case op.Tanh:
			why = "its scores are capped"
			v = n.In[0]
		default:
			return false, ""
		}
	}
	return false, ""
}

// fromProduct tells whether v, of so many elements, comes from a product of matrices through nothing but what scoresOf follows.
func (x *raiser) fromProduct(v *ir.Value, elems int64) bool {
	for range 16 {
		if v.Def == nil || v.Type.Shape.Elems() != elems {
			return false
		}
		switch v.Def.Op.(type) {
		case op.MatMul:
			return true
		case op.Cast, op.Reshape, op.Mul, op.Div, op.Add, op.Where, op.Tanh:
			k := 0
			for i, in := range v.Def.In {
				if in.Type.DType.IsFloat() && in.Type.Shape.Elems() == elems && in.Def != nil {
					k = i
					break
				}
			}
			v = v.Def.In[k]
		default:
			return false
		}
	}
	return false
}

// extents gives the scores four axes.
func (x *raiser) extents(m *attentionMatch) (why string) {
	s := m.scores
	r := len(s)
	if r < 2 {
		return "its scores are no matrix"
	}
	m.batch, m.heads, m.queries, m.keys = 1, 1, s[r-2], s[r-1]
	switch {
	case r == 3:
		m.batch = s[0]
	case r > 3:
		m.batch, m.heads = s[:r-3].Elems(), s[r-3]
	}
	for _, mask := range m.masks {
		if len(mask.Type.Shape) > 2 && r > 4 {
			return "its mask has more than four axes"
		}
	}
	for _, c := range m.chosen {
		if len(c.when.Type.Shape) > 2 && r > 4 {
			return "its mask has more than four axes"
		}
	}
	if m.scores.Elems() == 0 {
		return "it has no elements"
	}
	return ""
}

// attentionParts are the operands, before they get four axes.
type attentionParts struct {
	q, k, v    *ir.Value
	kTurned    bool // the value is [.., size, keys]
	vTurned    bool
	groups     int64
	size, wide int64
}

// parts finds queries, keys and values behind what brings them into the form for products.
func (x *raiser) parts(m *attentionMatch) (*attentionParts, string) {
	p := &attentionParts{}
	q, k, v := m.qk.In[0], m.qk.In[1], m.value.In[1]
	weights := m.value.In[0]
	if !lead(q).Equal(lead(k)) || !lead(weights).Equal(lead(v)) {
		return nil, "its operands broadcast"
	}
	rows := func(w *ir.Value) int64 { return w.Type.Shape[len(w.Type.Shape)-2] }
	per := rows(q) / m.queries
	if rows(q)%m.queries != 0 || rows(weights) != rows(q) || m.heads%per != 0 || lead(q).Elems()*per != m.batch*m.heads || lead(v).Elems() != lead(q).Elems() {
		return nil, "queries and heads are mixed"
	}
	p.groups = m.heads / per
	p.size = q.Type.Shape[len(q.Type.Shape)-1]
	p.wide = m.value.Out[0].Type.Shape[len(m.value.Out[0].Type.Shape)-1]
	p.q = x.rowsBehind(q, m)
	kTurned, vTurned := !m.qk.Op.(op.MatMul).TransB, m.value.Op.(op.MatMul).TransB
	p.k, p.kTurned = x.stackBehind(k, kTurned, m, true)
	p.v, p.vTurned = x.stackBehind(v, vTurned, m, false)
	if per > 1 {
		return p, ""
	}
	kRepeat, kOf := repeated(p.k)
	vRepeat, vOf := repeated(p.v)
	if kRepeat == vRepeat && kRepeat > 1 && m.heads%kRepeat == 0 {
		p.k, p.v, p.groups = kOf, vOf, m.heads/kRepeat
	}
	return p, ""
}

func lead(v *ir.Value) ir.Shape { return v.Type.Shape[:len(v.Type.Shape)-2] }

// rowsBehind strips scales, casts to wider floats and reshapes that keep rows from v.
func (x *raiser) rowsBehind(v *ir.Value, m *attentionMatch) *ir.Value {
	for range 8 {
		if of, c, ok := x.byNumber(v); ok {
			v = of
			m.scale *= c
			continue
		}
		if v.Def == nil {
			return v
		}
		if _, ok := v.Def.Op.(op.Reshape); ok && sameLast(v.Def.In[0].Type.Shape, v.Type.Shape) {
			v = v.Def.In[0]
			continue
		}
		w := unwidened(v)
		if w == v {
			return v
		}
		v = w
	}
	return v
}

// stackBehind strips scales, casts to wider floats, transposes of the last two axes and reshapes of the axes before them from a stack of matrices.
func (x *raiser) stackBehind(v *ir.Value, turned bool, m *attentionMatch, scaled bool) (*ir.Value, bool) {
	for range 12 {
		if of, c, ok := x.byNumber(v); ok && scaled {
			v = of
			m.scale *= c
			continue
		}
		if v.Def == nil {
			return v, turned
		}
		switch o := v.Def.Op.(type) {
		case op.Reshape:
			in := v.Def.In[0].Type.Shape
			out := v.Type.Shape
			if len(in) < 2 || len(out) < 2 || !in[len(in)-2:].Equal(out[len(out)-2:]) {
				return v, turned
			}
		case op.Transpose:
			if !swapsLast(o.Perm) {
				return v, turned
			}
			turned = !turned
		default:
			w := unwidened(v)
			if w == v {
				return v, turned
			}
			v = w
			continue
		}
		v = v.Def.In[0]
	}
	return v, turned
}

// swapsLast tells whether a permutation swaps the last two axes and nothing else.
func swapsLast(perm []int64) bool {
	r := len(perm)
	for i, p := range perm {
		want := int64(i)
		switch i {
		case r - 2:
			want = int64(r - 1)
		case r - 1:
			want = int64(r - 2)
		}
		if p != want {
			return false
		}
	}
	return r >= 2
}

// repeated recognises matrices that stand for several heads each: an Expand of the third axis from the end.
func repeated(v *ir.Value) (times int64, of *ir.Value) {
	if v.Def == nil {
		return 1, v
	}
	e, ok := v.Def.Op.(op.Expand)
	if !ok {
		return 1, v
	}
	in, out := v.Def.In[0].Type.Shape, e.Shape
	r := len(out)
	if len(in) != r || r < 4 || in[r-3] != 1 {
		return 1, v
	}
	for a := range in {
		if a != r-3 && in[a] != out[a] {
			return 1, v
		}
	}
	return out[r-3], v.Def.In[0]
}

// alone checks that nobody else reads what disappears: else the scores would be computed twice and kept all the same.
func (x *raiser) alone(m *attentionMatch) (why string) {
	for n := range m.inside {
		for _, v := range n.Out {
			if x.kept[v.ID] {
				return "its scores or weights are an output of the graph"
			}
			for _, u := range x.users[v.ID] {
				if u != m.value && !m.inside[u] {
					return "its scores or weights are read elsewhere"
				}
			}
		}
	}
	if m.hidden != nil && !x.guarded(m) {
		return "its weights are cleared by a condition of its own"
	}
	return ""
}

// guarded recognises rows without a key as the importer guards them: hidden = (max of the mask's row == -inf), the mask is Where(hidden, 0, mask).
func (x *raiser) guarded(m *attentionMatch) bool {
	e := m.hidden.Def
	if e == nil || len(m.masks) != 1 || m.masks[0].Def == nil {
		return false
	}
	if _, ok := e.Op.(op.Equal); !ok || !x.isSplat(e.In[1], math.Inf(-1)) || e.In[0].Def == nil {
		return false
	}
	top := e.In[0].Def
	o, ok := top.Op.(op.ReduceMax)
	w := m.masks[0].Def
	_, chooses := w.Op.(op.Where)
	if !ok || !chooses || w.In[0] != m.hidden || !x.isSplat(w.In[1], 0) || w.In[2] != top.In[0] || len(o.Axes) != 1 || o.Axes[0] != int64(len(top.In[0].Type.Shape))-1 {
		return false
	}
	m.masks[0] = top.In[0]
	return true
}

// buildAttention writes the op.
func (x *raiser) buildAttention(m *attentionMatch, p *attentionParts) *ir.Value {
	d := p.q.Type.DType
	for _, v := range []*ir.Value{p.k, p.v} {
		if v.Type.DType.Bits() > d.Bits() || v.Type.DType.Bits() == d.Bits() && v.Type.DType != d {
			d = v.Type.DType
			if d.Bits() == p.q.Type.DType.Bits() {
				d = ir.F32 // f16 beside bf16
			}
		}
	}
	stack := func(v *ir.Value, turned bool, last int64) *ir.Value {
		if turned {
			perm := make([]int64, len(v.Type.Shape))
			for i := range perm {
				perm[i] = int64(i)
			}
			r := len(perm)
			perm[r-2], perm[r-1] = perm[r-1], perm[r-2]
			v = x.b.Add(op.Transpose{Perm: perm}, v)
		}
		return x.cast(x.shape(v, m.batch, p.groups, m.keys, last), d)
	}
	in := []*ir.Value{
		x.cast(x.shape(p.q, m.batch, m.heads, m.queries, p.size), d),
		stack(p.k, p.kTurned, p.size),
		stack(p.v, p.vTurned, p.wide),
	}
	if mask := x.buildMask(m); mask != nil {
		in = append(in, mask)
	}
	out := m.value.Out[0].Type
	y := x.b.Multi(op.Attention{Scale: m.scale, Guard: m.guard}, in...)[0]
	return x.cast(x.shape(y, out.Shape...), out.DType)
}

// buildMask adds up masks; nil if there is none.
func (x *raiser) buildMask(m *attentionMatch) *ir.Value {
	var sum *ir.Value
	add := func(v *ir.Value) {
		if s := v.Type.Shape; len(m.scores) == 3 && len(s) == 3 { // a head of its own between batch and queries
			v = x.shape(v, s[0], 1, s[1], s[2])
		}
		switch {
		case sum == nil:
			sum = v
		case sum.Type.DType == v.Type.DType:
			sum = x.b.Add(op.Add{}, sum, v)
		default:
			sum = x.b.Add(op.Add{}, x.cast(sum, ir.F32), x.cast(v, ir.F32))
		}
	}
	for _, v := range m.masks {
		add(v)
	}
	for _, c := range m.chosen {
		zero := x.b.Scalar(c.number.Type.DType, 0)
		number := c.number
		if len(number.Type.Shape) > 0 {
			value, _ := x.splat(number)
			number = x.b.Scalar(number.Type.DType, value)
		}
		if c.keep {
			add(x.b.Add(op.Where{}, c.when, zero, number))
		} else {
			add(x.b.Add(op.Where{}, c.when, number, zero))
		}
	}
	return sum
}
