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

// transformer is a training step of some blocks with explicit attention; figures are scaled from a GPT-2 layer (bytes in KiB, times in ns).
func transformer(blocks int) *Problem {
	b := newBuilder()
	const h, s = 12288, 98304 // hidden activations, attention scores
	x := b.op(h, 10000, false)
	for range blocks {
		n := b.forward(h, 12000, false, []int32{x}, x)
		qkv := b.forward(3*h, 193000, false, []int32{n}, n)
		sc := b.forward(s, 90000, false, []int32{qkv}, qkv)
		sm := b.forward(s, 160000, true, []int32{-1}, sc)
		av := b.forward(h, 90000, false, []int32{sm, qkv}, sm, qkv)
		pr := b.forward(h, 65000, false, []int32{av}, av)
		r := b.forward(h, 28000, true, nil, pr, x)
		n2 := b.forward(h, 12000, false, []int32{r}, r)
		f1 := b.forward(4*h, 257000, false, []int32{n2}, n2)
		g := b.forward(4*h, 76000, false, []int32{f1}, f1)
		f2 := b.forward(h, 257000, false, []int32{g}, g)
		x = b.forward(h, 28000, true, nil, f2, r)
	}
	return b.backward(b.forward(1, 1000, false, []int32{x}, x))
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
