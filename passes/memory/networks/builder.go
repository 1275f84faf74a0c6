package networks

import "aitk/passes/memory"

// builder writes a step op by op. Each layer of the forward half leaves a function on the tape that writes its gradient; backward calls them from the last.
type builder struct {
	p    *memory.Problem
	o    Options
	tape []func()
	grad map[int32]int32 // by value: its gradient so far
	free map[int32]bool  // values whose gradient nobody needs

	weights []weight // of the group that is being updated next
}

// weight is a gradient that waits for the update of its group.
type weight struct {
	grad, value int32
	params      int64
}

func newBuilder(o Options) *builder {
	return &builder{p: &memory.Problem{BudgetBytes: -1, Recompute: true}, o: o, grad: map[int32]int32{}, free: map[int32]bool{}}
}

// work is what an op does besides reading its operands and writing its outputs.
type work struct{ flops, moreBytes int64 }

// op appends an op with outputs of some bytes each.
func (b *builder) op(w work, in []int32, outBytes ...int64) []int32 {
	j := int32(len(b.p.Ops))
	o := memory.Op{LastRerun: 1 << 30}
	bytes := w.moreBytes
	for _, v := range in {
		bytes += b.p.Values[v].Bytes
		known := false
		for _, u := range o.In {
			known = known || u == v
		}
		if !known {
			o.In = append(o.In, v)
		}
	}
	for _, n := range outBytes {
		bytes += n
		o.Out = append(o.Out, int32(len(b.p.Values)))
		b.p.Values = append(b.p.Values, memory.Value{Bytes: n, Def: j, Becomes: -1})
	}
	o.Picos = 3e6 + max(w.flops/150, bytes*10/13)
	b.p.Ops = append(b.p.Ops, o)
	return o.Out
}

func (b *builder) one(w work, in []int32, outBytes int64) int32 { return b.op(w, in, outBytes)[0] }

// input appends the op that brings data, of which nobody needs the gradient.
func (b *builder) input(bytes int64) int32 {
	v := b.one(work{}, nil, bytes)
	b.free[v] = true
	return v
}

func (b *builder) bytes(v int32) int64 { return b.p.Values[v].Bytes }

func (b *builder) persistent(bytes int64) int32 {
	b.p.Values = append(b.p.Values, memory.Value{Bytes: bytes, Def: -1, Persistent: true, Becomes: -1})
	return int32(len(b.p.Values) - 1)
}

// give adds a gradient to that of x.
func (b *builder) give(x, dx int32) {
	if b.free[x] {
		return
	}
	if old, ok := b.grad[x]; ok {
		dx = b.one(work{}, []int32{dx, old}, b.bytes(x))
	}
	b.grad[x] = dx
}

// layer appends an op with one output whose gradient is one op per operand, which reads the output's gradient and what is saved.
func (b *builder) layer(w work, in []int32, outBytes int64, saves func(y int32) []int32) int32 {
	y := b.one(w, in, outBytes)
	b.tape = append(b.tape, func() {
		for _, x := range in {
			if !b.free[x] {
				b.give(x, b.one(w, append([]int32{b.grad[y]}, saves(y)...), b.bytes(x)))
			}
		}
	})
	return y
}

// norm is a normalisation or another function whose gradient reads the operand.
func (b *builder) norm(x int32) int32 {
	return b.layer(work{}, []int32{x}, b.bytes(x), func(int32) []int32 { return []int32{x} })
}

// relu is a function whose gradient reads the output.
func (b *builder) relu(x int32) int32 {
	return b.layer(work{}, []int32{x}, b.bytes(x), func(y int32) []int32 { return []int32{y} })
}

// linear is a function whose gradient reads neither (rotations, means).
func (b *builder) linear(x int32, outBytes int64) int32 {
	return b.layer(work{}, []int32{x}, outBytes, func(int32) []int32 { return nil })
}

// times is a product of two values, element by element; gate may be the smaller one.
func (b *builder) times(x, gate int32) int32 {
	y := b.one(work{}, []int32{x, gate}, b.bytes(x))
	b.tape = append(b.tape, func() {
		dy := b.grad[y]
		d := b.op(work{}, []int32{dy, x, gate}, b.bytes(x), b.bytes(gate))
		b.give(x, d[0])
		b.give(gate, d[1])
	})
	return y
}

// add is a sum; its operands get the gradient as it is.
func (b *builder) add(x, y int32) int32 {
	z := b.one(work{}, []int32{x, y}, b.bytes(x))
	b.tape = append(b.tape, func() {
		b.give(x, b.grad[z])
		b.give(y, b.grad[z])
	})
	return z
}

// concat puts values one behind the other.
func (b *builder) concat(in ...int32) int32 {
	sizes := make([]int64, len(in))
	var sum int64
	for i, v := range in {
		sizes[i] = b.bytes(v)
		sum += sizes[i]
	}
	y := b.one(work{}, in, sum)
	b.tape = append(b.tape, func() {
		for i, d := range b.op(work{}, []int32{b.grad[y]}, sizes...) {
			b.give(in[i], d)
		}
	})
	return y
}

// split is the opposite of concat.
func (b *builder) split(x int32, sizes ...int64) []int32 {
	out := b.op(work{}, []int32{x}, sizes...)
	b.tape = append(b.tape, func() {
		grads := make([]int32, len(out))
		for i, v := range out {
			grads[i] = b.grad[v]
		}
		b.give(x, b.one(work{}, grads, b.bytes(x)))
	})
	return out
}

// dropout keeps a mask of a byte per element.
func (b *builder) dropout(x int32) int32 {
	out := b.op(work{}, []int32{x}, b.bytes(x), b.bytes(x)/2)
	b.tape = append(b.tape, func() {
		b.give(x, b.one(work{}, []int32{b.grad[out[0]], out[1]}, b.bytes(x)))
	})
	return out[0]
}

// product is a matrix product or convolution with a weight of its own.
func (b *builder) product(x int32, outBytes, flops, params int64) int32 {
	w := int32(-1)
	in, weightBytes := []int32{x}, int64(0)
	if b.o.State != Excluded {
		weightBytes = 2 * params
		w = b.persistent(weightBytes)
		in = append(in, w)
	}
	y := b.one(work{flops: flops}, in, outBytes)
	b.tape = append(b.tape, func() {
		dy := b.grad[y]
		if !b.free[x] {
			in := []int32{dy}
			if w >= 0 {
				in = append(in, w)
			}
			b.give(x, b.one(work{flops: flops}, in, b.bytes(x)))
		}
		if b.o.State != Frozen {
			b.weights = append(b.weights, weight{b.one(work{flops: flops}, []int32{dy, x}, weightBytes), w, params})
		}
	})
	return y
}

// group says that the weights of the layers from here to the next group are updated together.
func (b *builder) group() {
	b.tape = append(b.tape, func() {
		if len(b.weights) == 0 {
			return
		}
		var in, state []int32
		var params int64
		for _, w := range b.weights {
			in = append(in, w.grad)
			params += w.params
			if w.value >= 0 {
				state = append(state, w.value, b.persistent(4*w.params), b.persistent(4*w.params), b.persistent(4*w.params))
			}
		}
		b.weights = b.weights[:0]
		j := int32(len(b.p.Ops))
		o := memory.Op{In: append(in, state...), Once: true, LastRerun: 1 << 30, Picos: 3e6 + 26*params*10/13}
		for _, v := range state {
			k := int32(len(b.p.Values))
			b.p.Values = append(b.p.Values, memory.Value{Bytes: b.bytes(v), Def: j, Becomes: -1})
			b.p.Values[v].Becomes = k
			o.Out = append(o.Out, k)
			o.Over = append(o.Over, memory.Over{Out: k, In: v})
		}
		b.p.Ops = append(b.p.Ops, o)
	})
}

// backward appends the loss of y and all gradients.
func (b *builder) backward(y int32) *memory.Problem {
	loss := b.one(work{}, []int32{y}, 4)
	b.give(y, b.one(work{}, []int32{loss}, b.bytes(y)))
	for i := len(b.tape) - 1; i >= 0; i-- {
		b.tape[i]()
	}
	return b.p
}
