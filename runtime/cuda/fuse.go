//go:build cuda && linux

package cuda

import (
	"slices"

	"aitk/ir"
	"aitk/ir/op"
	"aitk/ir/plan"
	"aitk/runtime"
)

// Fuse implements runtime.Fuser: a MatMul with any of a Dequantize of its second operand before it, and an Add and an activation after it. The kernels round
// wherever the ops do (epilogue.h), and take sums in the order and with the instructions of the MatMul alone.
func (d *Device) Fuse(chain []runtime.Link) (runtime.Kernel, error) {
	f := &fusion{dev: d, links: chain}
	if !f.match() || !f.apart() {
		return nil, nil
	}
	return f.build()
}

// fusion is a chain that is looked at.
type fusion struct {
	dev        *Device
	links      []runtime.Link
	decode     *runtime.Link // nil: b is floats
	product    *runtime.Link
	add        *runtime.Link
	addend     int // which operand of add is the other one
	activation ir.Op
}

// match tells whether the chain is of the form.
func (f *fusion) match() bool {
	rest := f.links
	take := func() *runtime.Link {
		l := &rest[0]
		rest = rest[1:]
		return l
	}
	var made *plan.Ref // what the link before gives
	if _, ok := rest[0].Exec.Op.(op.Dequantize); ok {
		f.decode = take()
		made = &f.decode.Exec.Out[0]
	}
	if len(rest) == 0 {
		return false
	}
	if _, ok := rest[0].Exec.Op.(op.MatMul); !ok || rest[0].Exec.Lane != plan.Compute || made != nil && rest[0].Exec.In[1].Buffer != made.Buffer {
		return false
	}
	f.product = take()
	made = &f.product.Exec.Out[0]
	if len(rest) > 0 {
		if _, ok := rest[0].Exec.Op.(op.Add); ok {
			f.add = take()
			if f.add.Exec.In[0].Buffer == made.Buffer {
				f.addend = 1
			}
			if !f.add.Exec.Out[0].Type.Equal(made.Type) {
				return false
			}
		}
	}
	if len(rest) > 0 {
		if n, _, _ := activationOf(rest[0].Exec.Op); n >= 0 {
			f.activation = take().Exec.Op
		}
	}
	return len(rest) == 0 && made.Type.DType.IsFloat()
}

// out is what the chain writes.
func (f *fusion) out() runtime.Slice { return f.links[len(f.links)-1].Out[0] }

// reads are the operands that come from outside.
func (f *fusion) reads() []runtime.Slice {
	var in []runtime.Slice
	if f.decode != nil {
		in = append(append(in, f.product.In[0]), f.decode.In...)
	} else {
		in = append(in, f.product.In...)
	}
	if f.add != nil {
		in = append(in, f.add.In[f.addend])
	}
	return in
}

// apart tells whether the result lies over nothing that other threads still read. It may lie exactly over the addend: an element of that is read by who writes there.
func (f *fusion) apart() bool {
	in := f.reads()
	if f.add != nil && f.add.In[f.addend] == f.out() {
		in = in[:len(in)-1]
	}
	return !slices.ContainsFunc(in, f.out().Overlaps)
}

// build makes the kernel; nil where the parts do not fit one.
func (f *fusion) build() (runtime.Kernel, error) {
	x := f.product.Exec
	b := &builder{dev: f.dev, x: x, in: slices.Clone(f.product.In), out: []runtime.Slice{f.out()}, k: &kernel{dev: f.dev, x: x, at: f.dev.place}}
	for _, l := range f.links {
		b.k.fused = append(b.k.fused, l.Exec)
	}
	o, t := x.Op.(op.MatMul), b.outType(0)
	module, tail, ok := floatVariant("matmul", t.DType)
	if !ok {
		return nil, nil
	}
	g, err := newProduct(o, b.inType(0).Shape, b.inType(1).Shape, t.Shape)
	if err != nil {
		return nil, err
	}
	e := epilogue{fused: true, add: -1}
	if ok = f.addArgs(&e, t, g); !ok {
		return nil, nil
	}
	n, lo, hi := -1, 0.0, 0.0
	if f.activation != nil {
		n, lo, hi = activationOf(f.activation)
	}
	e.args = append(e.args, int32(n), number(t.DType, lo), number(t.DType, hi))
	if f.decode != nil {
		b.in[1] = f.decode.In[0]
		if ok = f.codes(&e, b.tensorCores(o, g), o, g.m); !ok {
			return nil, nil
		}
	}
	if _, err := b.matmul(o, g, module, tail, e); err != nil {
		return nil, err
	}
	b.k.note(f.reads(), b.out, runtime.Slice{})
	return b.k, nil
}

// addArgs are the tensor that is added and its steps along batch, row and column. It is as long as the result, as a row, or one element.
func (f *fusion) addArgs(e *epilogue, t ir.Type, g *product) bool {
	if f.add == nil {
		e.args = []any{uint64(0), int64(0), int64(0), int64(0)}
		return true
	}
	s, at := f.add.Exec.In[f.addend].Type.Shape, f.add.In[f.addend]
	switch {
	case slices.Equal(s, t.Shape):
		e.add = 0
		e.args = []any{at, g.m * g.n, g.n, int64(1)}
	case s.Elems() == 1:
		e.args = []any{at, int64(0), int64(0), int64(0)}
	case s.Elems() == g.n && s[len(s)-1] == g.n:
		e.args = []any{at, int64(0), int64(0), int64(1)}
	default:
		return false
	}
	return true
}

// decodeRows is the most rows of a result whose kernel decodes weights in a way that takes as long as a tile's products.
const decodeRows = 256

// codes adds what the codes of the second operand mean. It has two axes; eight neighbours that a tensor-core kernel turns into halves at once have one scale, or eight
// that follow one another.
func (f *fusion) codes(e *epilogue, mma bool, o op.MatMul, rows int64) bool {
	d := f.decode.Exec.Op.(op.Dequantize)
	q, scale := f.decode.Exec.In[0].Type.Shape, f.decode.Exec.In[1].Type
	if len(q) != 2 || max(q[0], q[1]) >= 1<<31 || mma && o.TransA {
		return false
	}
	rb, rs, cb, cs := int64(1), int64(0), int64(1), int64(0)
	switch {
	case len(scale.Shape) == 0:
	case d.Block == 0 && d.Axis == 0:
		rs = 1
	case d.Block == 0:
		cs = 1
	case d.Axis == 0:
		rb, rs, cs = d.Block, q[1], 1
	default:
		rs, cb, cs = scale.Shape[1], d.Block, 1
	}
	if mma && cs != 0 && cb != 1 && cb%mmaPiece != 0 || max(rb, rs, cb) >= 1<<31 {
		return false
	}
	// Every tile of rows decodes the matrix again. Codes that a few instructions decode hide behind the products; with others only few rows make up for it.
	quick := mma && (cs == 0 || cb != 1) && len(f.decode.In) != 3 && (d.Format == "int8" || d.Format == "nf4")
	if !quick && rows > decodeRows {
		return false
	}
	code, ok := codeArgs(d, f.decode.In, scale.DType)
	e.coded = true
	e.args = append(append(e.args, uint32(rb), uint32(rs), uint32(cb), uint32(cs)), code...)
	return ok
}
