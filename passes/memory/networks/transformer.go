package networks

import "aitk/passes/memory"

// TransformerConfig is a GPT-2: blocks of attention and an MLP of four times the width, with dropout. The embedding and the head are left out.
type TransformerConfig struct {
	Blocks, Batch, Tokens, Width, Heads int64
}

// Transformer makes the step of a GPT-2.
func Transformer(c TransformerConfig, o Options) *memory.Problem {
	b := newBuilder(o)
	rows := c.Batch * c.Tokens
	hidden := 2 * rows * c.Width
	mlp := 2 * rows * 4 * c.Width * c.Width
	x := b.input(hidden)
	b.free[x] = false // an embedding: its gradient is the end of the step
	for range c.Blocks {
		b.group()
		qkv := b.product(b.norm(x), 3*hidden, 2*rows*3*c.Width*c.Width, 3*c.Width*c.Width)
		a := attention{rows: rows, keys: c.Tokens, width: c.Width, heads: c.Heads, dropout: true}
		y := b.product(b.attention(a, qkv), hidden, 2*rows*c.Width*c.Width, c.Width*c.Width)
		r := b.add(b.dropout(y), x)
		up := b.product(b.norm(r), 4*hidden, mlp, 4*c.Width*c.Width)
		down := b.product(b.norm(up), hidden, mlp, 4*c.Width*c.Width)
		x = b.add(b.dropout(down), r)
	}
	return b.backward(b.norm(x))
}

// attention is the shape of one: rows queries (over the batch), each against keys, and whether scores pass a dropout.
type attention struct {
	rows, keys, width, heads int64
	dropout                  bool
}

// attention of operands that hold queries, keys and values together.
func (b *builder) attention(a attention, in ...int32) int32 {
	product := 2 * a.rows * a.keys * a.width // FLOPs of one of the two products
	out := 2 * a.rows * a.width
	if !b.o.Explicit {
		y := b.one(work{flops: 2 * product}, in, out)
		b.tape = append(b.tape, func() {
			sizes := make([]int64, len(in))
			for i, v := range in {
				sizes[i] = b.bytes(v)
			}
			reads := append([]int32{b.grad[y]}, in...)
			for i, d := range b.op(work{flops: 5 * product}, append(reads, y), sizes...) {
				b.give(in[i], d)
			}
		})
		return y
	}
	scores := 2 * a.rows * a.keys * a.heads
	s := b.one(work{flops: product}, in, scores)
	soft := b.one(work{}, []int32{s}, scores)
	used, mask := soft, int32(-1)
	if a.dropout {
		d := b.op(work{}, []int32{soft}, scores, scores/2)
		used, mask = d[0], d[1]
	}
	y := b.one(work{flops: product}, append([]int32{used}, in...), out)
	b.tape = append(b.tape, func() {
		dy := b.grad[y]
		sizes := make([]int64, len(in))
		for i, v := range in {
			sizes[i] = b.bytes(v)
		}
		dp := b.one(work{flops: product}, append([]int32{dy}, in...), scores)
		dv := b.one(work{flops: product}, []int32{dy, used}, out)
		if mask >= 0 {
			dp = b.one(work{}, []int32{dp, mask}, scores)
		}
		ds := b.one(work{}, []int32{dp, soft}, scores)
		// Two products, each reads the gradient of the scores.
		for i, d := range b.op(work{flops: 2 * product, moreBytes: scores}, append(append([]int32{ds}, in...), dv), sizes...) {
			b.give(in[i], d)
		}
	})
	return y
}

// LlamaConfig is a LLaMA: rotary attention and a gated MLP.
type LlamaConfig struct {
	Blocks, Batch, Tokens, Width, Inner, Heads int64
}

// Llama makes the step of a LLaMA.
func Llama(c LlamaConfig, o Options) *memory.Problem {
	b := newBuilder(o)
	x := b.input(2 * c.Batch * c.Tokens * c.Width)
	b.free[x] = false
	for range c.Blocks {
		b.group()
		r := b.llamaAttention(c, x)
		x = b.add(b.gated(b.norm(r), c.Batch*c.Tokens, c.Width, c.Inner, 1), r)
	}
	return b.backward(b.norm(x))
}

func (b *builder) llamaAttention(c LlamaConfig, x int32) int32 {
	rows := c.Batch * c.Tokens
	hidden, square := 2*rows*c.Width, c.Width*c.Width
	n := b.norm(x)
	q := b.linear(b.product(n, hidden, 2*rows*square, square), hidden)
	k := b.linear(b.product(n, hidden, 2*rows*square, square), hidden)
	v := b.product(n, hidden, 2*rows*square, square)
	a := b.attention(attention{rows: rows, keys: c.Tokens, width: c.Width, heads: c.Heads}, q, k, v)
	return b.add(b.product(a, hidden, 2*rows*square, square), x)
}

// gated is an MLP with a gate, of rows that each of some experts' weights may work on.
func (b *builder) gated(x int32, rows, width, inner, experts int64) int32 {
	flops, params := 2*rows*width*inner, width*inner*experts
	gate := b.norm(b.product(x, 2*rows*inner, flops, params))
	up := b.product(x, 2*rows*inner, flops, params)
	return b.product(b.times(up, gate), 2*rows*width, flops, params)
}

// MixtureConfig is a LLaMA whose MLPs are experts, of which each token takes a few.
type MixtureConfig struct {
	LlamaConfig
	Experts, PerToken int64
}

// MixtureOfExperts makes the step of one. Routes are must-save: another choice would change the shapes.
func MixtureOfExperts(c MixtureConfig, o Options) *memory.Problem {
	b := newBuilder(o)
	rows := c.Batch * c.Tokens
	hidden := 2 * rows * c.Width
	x := b.input(hidden)
	b.free[x] = false
	for range c.Blocks {
		b.group()
		r := b.llamaAttention(c.LlamaConfig, x)
		n := b.norm(r)
		gates := b.norm(b.product(n, 2*rows*c.Experts, 2*rows*c.Width*c.Experts, c.Width*c.Experts))
		routes := b.one(work{}, []int32{gates}, 8*rows*c.PerToken)
		b.p.Ops[len(b.p.Ops)-1].Once = true
		b.free[routes] = true
		sent := b.layer(work{}, []int32{n, routes}, hidden*c.PerToken, func(int32) []int32 { return []int32{routes} })
		y := b.gated(sent, rows*c.PerToken, c.Width, c.Inner, c.Experts)
		x = b.add(b.combine(y, gates, routes, hidden), r)
	}
	return b.backward(b.norm(x))
}

// combine sums what the experts made of each token, weighted by gates.
func (b *builder) combine(y, gates, routes int32, outBytes int64) int32 {
	z := b.one(work{}, []int32{y, gates, routes}, outBytes)
	b.tape = append(b.tape, func() {
		d := b.op(work{}, []int32{b.grad[z], y, gates, routes}, b.bytes(y), b.bytes(gates))
		b.give(y, d[0])
		b.give(gates, d[1])
	})
	return z
}
