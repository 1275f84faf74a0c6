package memory

// builder makes training steps op by op, for tests and benchmarks; the backward half mirrors the forward half.
type builder struct {
	p    *Problem
	back []func(grads map[int32]int32) // by forward op
}

func newBuilder() *builder {
	return &builder{p: &Problem{BudgetBytes: -1, Recompute: true}}
}

// op appends an op that reads in and defines one value; where over, it may write over its first operand.
func (b *builder) op(bytes, picos int64, over bool, in ...int32) int32 {
	j := int32(len(b.p.Ops))
	v := int32(len(b.p.Values))
	b.p.Values = append(b.p.Values, Value{Bytes: bytes, Def: j, Becomes: -1})
	o := Op{Picos: picos, Out: []int32{v}, LastRerun: 1 << 30}
	for _, u := range in {
		if !contains(o.In, u) {
			o.In = append(o.In, u)
		}
	}
	if over && b.p.Values[in[0]].Bytes == bytes {
		o.Over = []Over{{Out: v, In: in[0]}}
	}
	b.p.Ops = append(b.p.Ops, o)
	return v
}

func (b *builder) leaf(v Value) int32 {
	v.Def = -1
	b.p.Values = append(b.p.Values, v)
	return int32(len(b.p.Values) - 1)
}

// forward appends an op with one output and remembers how its gradient is taken: one op per operand, reading the output's gradient and, if
// saved, the other things named.
func (b *builder) forward(bytes, picos int64, over bool, saves []int32, in ...int32) int32 {
	y := b.op(bytes, picos, over, in...)
	b.back = append(b.back, func(grads map[int32]int32) {
		dy, ok := grads[y]
		if !ok {
			return
		}
		for _, x := range in {
			if b.p.Values[x].Persistent {
				continue
			}
			reads := append([]int32{dy}, saves...)
			for _, s := range saves {
				if s == -1 {
					reads = append(reads[:0:0], dy, y)
				}
			}
			dx := b.op(b.p.Values[x].Bytes, picos, over, reads...)
			if old, ok := grads[x]; ok {
				dx = b.op(b.p.Values[x].Bytes, b.p.Values[x].Bytes, true, old, dx)
			}
			grads[x] = dx
		}
	})
	return y
}

// backward appends the gradients of loss.
func (b *builder) backward(loss int32) *Problem {
	grads := map[int32]int32{loss: b.op(b.p.Values[loss].Bytes, 1, false, loss)}
	for i := len(b.back) - 1; i >= 0; i-- {
		b.back[i](grads)
	}
	return b.p
}

// transformer is a training step of some blocks with explicit attention; figures are near those of a GPT-2 layer at batch 8.
func transformer(blocks int) *Problem {
	b := newBuilder()
	const h, s = 12288 << 10, 98304 << 10 // bytes of hidden activations, of attention scores
	x := b.op(h, 10_000_000, false)
	for range blocks {
		n := b.forward(h, 12_000_000, false, []int32{x}, x)
		qkv := b.forward(3*h, 193_000_000, false, []int32{n}, n)
		sc := b.forward(s, 90_000_000, false, []int32{qkv}, qkv)
		sm := b.forward(s, 160_000_000, true, []int32{-1}, sc)
		av := b.forward(h, 90_000_000, false, []int32{sm, qkv}, sm, qkv)
		pr := b.forward(h, 65_000_000, false, []int32{av}, av)
		r := b.forward(h, 28_000_000, true, nil, pr, x)
		n2 := b.forward(h, 12_000_000, false, []int32{r}, r)
		f1 := b.forward(4*h, 257_000_000, false, []int32{n2}, n2)
		g := b.forward(4*h, 76_000_000, false, []int32{f1}, f1)
		f2 := b.forward(h, 257_000_000, false, []int32{g}, g)
		x = b.forward(h, 28_000_000, true, nil, f2, r)
	}
	return b.backward(b.forward(1, 1_000_000, false, []int32{x}, x))
}

// chain is a uniform chain of n forward ops, each gradient reading its operand and the gradient.
func chain(n int) *Problem {
	b := newBuilder()
	x := b.op(1, 1, false)
	for range n - 1 {
		x = b.forward(1, 1, false, []int32{x}, x)
	}
	return b.backward(x)
}

// training is transformer with resident weights, Adam moments and updates in the backward half; fused leaves the attention scores out.
func training(blocks int, fused bool) *Problem {
	b := newBuilder()
	const h, s, w = 12288 << 10, 98304 << 10, 2304 << 10
	input := b.leaf(Value{Bytes: 64 << 10, Becomes: -1})
	x := b.op(h, 10_000_000, false, input)
	matmul := func(bytes, picos, weight int64, x int32) int32 {
		p := b.leaf(Value{Bytes: weight, Becomes: -1, Persistent: true})
		m := b.leaf(Value{Bytes: weight, Becomes: -1, Persistent: true})
		v := b.leaf(Value{Bytes: weight, Becomes: -1, Persistent: true})
		y := b.op(bytes, picos, false, x, p)
		b.back = append(b.back, func(grads map[int32]int32) {
			dy := grads[y]
			dw := b.op(weight, picos, false, dy, x)
			dx := b.op(b.p.Values[x].Bytes, picos, false, dy, p)
			if old, ok := grads[x]; ok {
				dx = b.op(b.p.Values[x].Bytes, 28_000_000, true, old, dx)
			}
			grads[x] = dx
			b.update(weight/20, dw, p, m, v)
		})
		return y
	}
	for range blocks {
		n := b.forward(h, 12_000_000, false, []int32{x}, x)
		qkv := matmul(3*h, 193_000_000, 3*w/4, n)
		var av int32
		if fused {
			av = b.forward(h, 200_000_000, false, []int32{qkv}, qkv)
		} else {
			sc := b.forward(s, 90_000_000, false, []int32{qkv}, qkv)
			sm := b.forward(s, 160_000_000, true, []int32{-1}, sc)
			av = b.forward(h, 90_000_000, false, []int32{sm, qkv}, sm, qkv)
		}
		pr := matmul(h, 65_000_000, w/4, av)
		r := b.forward(h, 28_000_000, true, nil, pr, x)
		n2 := b.forward(h, 12_000_000, false, []int32{r}, r)
		f1 := matmul(4*h, 257_000_000, w, n2)
		g := b.forward(4*h, 76_000_000, false, []int32{f1}, f1)
		f2 := matmul(h, 257_000_000, w, g)
		x = b.forward(h, 28_000_000, true, nil, f2, r)
	}
	return b.backward(b.forward(4, 1_000_000, false, []int32{x}, x))
}

// update appends the op that writes new contents over persistent values, reading gradient g.
func (b *builder) update(picos int64, g int32, state ...int32) {
	j := int32(len(b.p.Ops))
	o := Op{Picos: picos, In: append([]int32{g}, state...), Once: true, LastRerun: 1 << 30}
	for _, p := range state {
		v := int32(len(b.p.Values))
		b.p.Values = append(b.p.Values, Value{Bytes: b.p.Values[p].Bytes, Def: j, Becomes: -1})
		b.p.Values[p].Becomes = v
		o.Out = append(o.Out, v)
		o.Over = append(o.Over, Over{Out: v, In: p})
	}
	b.p.Ops = append(b.p.Ops, o)
}
