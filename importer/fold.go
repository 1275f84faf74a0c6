package importer

import (
	"math"

	"aitk/ir"
	"aitk/ir/op"
)

// Constant evaluation. Content is known of constants, of shapes, and of everything computed from known content alone; parameters are
// never known, since training changes them. Each op is evaluated by its own Eval and rounded to the element type at once, so a
// folded f32 expression has the value that a device would compute, and not a better one.
const (
	foldBytes    = 16 << 20 // larger results stay ops
	literalBytes = 64 << 10 // larger tensors of the file stay there until they are loaded
	fillElems    = 1024     // from here on a tensor of equal elements is a Fill instead of a literal
	foldWork     = 64 << 20 // FLOPs of one op; more is left to run time
	foldTotal    = 16 << 30 // FLOPs in all: a bound on the time that a hostile file can take
	foldLive     = 1 << 30  // bytes of known content held at a time, at 8 an element; beyond, ops stay ops
	foldLiterals = 1 << 30  // bytes of literals in a graph; beyond, the file is refused
	indexElems   = 2 << 20  // entries of an index table that a lowering makes
)

// folder holds what evaluation has spent and the literals that the graph has by now.
type folder struct {
	spent    int64
	folded   int
	consts   map[string]*ir.Value // by type and content
	literals int64                // bytes of them
	live     int64                // bytes of known content behind names
	holders  map[*ir.Tensor]int   // names that stand for a content
}

// hold and release count the names behind which content is kept.
func (f *folder) hold(x *operand) {
	if x.known == nil {
		return
	}
	if f.holders[x.known]++; f.holders[x.known] == 1 {
		f.live += 8 * x.typ.Elems()
	}
}

func (f *folder) release(x *operand) {
	if x == nil || x.known == nil {
		return
	}
	if f.holders[x.known]--; f.holders[x.known] == 0 {
		f.live -= 8 * x.typ.Elems()
		delete(f.holders, x.known)
	}
}

// room tells whether content of type t may be held.
func (f *folder) room(t ir.Type) bool {
	return t.Bytes() <= foldBytes && 8*t.Elems() <= foldLive-f.live
}

// emit applies a core op with one output.
func (c *call) emit(o ir.Op, in ...*operand) *operand { return c.emitAll(o, in...)[0] }

// emitAll evaluates the op where all operands are known, else adds a node.
func (c *call) emitAll(o ir.Op, in ...*operand) []*operand {
	types := make([]ir.Type, len(in))
	known := !ir.IsStateful(o)
	for i, x := range in {
		if x == nil {
			c.invalid("operand is missing")
		}
		if x.isSeq {
			c.invalid("operand is a sequence of tensors")
		}
		types[i] = x.typ
		known = known && x.known != nil
	}
	outs, err := o.Infer(types)
	if err != nil {
		c.invalid("%w", err)
	}
	if e, ok := o.(ir.Evaluator); ok && known && c.affordable(o, types, outs) {
		return c.eval(e, in, outs)
	}
	values := make([]*ir.Value, len(in))
	for i, x := range c.compact(o, in, outs) {
		values[i] = c.valueOf(x)
	}
	made, err := c.b.Try(o, values...)
	if err != nil {
		c.invalid("%w", err)
	}
	c.opcount++
	out := make([]*operand, len(made))
	for i, v := range made {
		out[i] = &operand{typ: v.Type, value: v}
	}
	return out
}

// affordable tells whether an op may be evaluated now.
func (c *call) affordable(o ir.Op, in, out []ir.Type) bool {
	if e, ok := o.(ir.Effects); ok && e.Stream() != 0 {
		return false
	}
	for _, t := range out {
		if !c.folder.room(t) {
			return false
		}
	}
	w := ir.WorkOf(o, in, out).FLOPs
	if w > foldWork || c.folder.spent > foldTotal-w {
		return false
	}
	c.folder.spent += w
	return true
}

func (c *call) eval(e ir.Evaluator, in []*operand, types []ir.Type) []*operand {
	args := make([]ir.Tensor, len(in))
	for i, x := range in {
		args[i] = *x.known
		args[i].Type = x.typ
	}
	if err := op.CheckData(e, args); err != nil {
		c.invalid("%w", err)
	}
	outs := make([]ir.Tensor, len(types))
	for i, t := range types {
		outs[i] = ir.NewTensor(t)
	}
	e.Eval(args, outs)
	ops := make([]*operand, len(outs))
	for i := range outs {
		outs[i].Round()
		ops[i] = &operand{typ: types[i], known: &outs[i]}
	}
	c.folder.folded++
	return ops
}

// valueOf makes a known operand a value of the graph: a literal, shared with all of the same content, a Fill, or a buffer that stays in the file.
// It panics with a refusal where the graph would hold too many of them.
func (l *lowering) valueOf(x *operand) *ir.Value {
	if x.value != nil {
		return x.value
	}
	switch s, uniform := splat(x.known); {
	case x.known == nil || x.buffer != nil && !uniform:
		v := l.parameter(&view{param: x.buffer, shape: x.typ.Shape})
		x.value = v.value
	case uniform && x.typ.Elems() >= fillElems:
		x.value = l.b.Add(op.Fill{DType: x.typ.DType, Shape: x.typ.Shape.Clone(), Value: s}) // not shared: making it is cheaper than keeping it
	default:
		raw := x.known.Encode()
		key := x.typ.String() + "\x00" + string(raw)
		if l.folder.consts[key] == nil {
			if l.folder.literals += int64(len(raw)); l.folder.literals > foldLiterals {
				panic(refusal{l.src.fail(ir.Unsupported, "the constants that the graph computes with take more than %d bytes", int64(foldLiterals))})
			}
			l.folder.consts[key] = l.b.G.AddConst(x.typ, raw)
		}
		x.value = l.folder.consts[key]
	}
	return x.value
}

// splat is the common value of all elements, where it survives as a float64.
func splat(t *ir.Tensor) (v float64, ok bool) {
	if t == nil {
		return 0, false
	}
	if t.Type.DType.IsFloat() {
		for _, x := range t.F {
			if x != t.F[0] || math.Signbit(x) != math.Signbit(t.F[0]) { // NaN differs from itself
				return 0, false
			}
		}
		return first(t.F), len(t.F) > 0
	}
	for _, x := range t.I {
		if x != t.I[0] || x > 1<<53 || x < -1<<53 || x < 0 && t.Type.DType == ir.U64 {
			return 0, false
		}
	}
	return float64(first(t.I)), len(t.I) > 0
}

func first[T any](s []T) (v T) {
	if len(s) > 0 {
		v = s[0]
	}
	return v
}

// scalar is a known tensor of rank 0.
func scalar(d ir.DType, x float64) *operand { return filled(ir.T(d), x) }

// filled is a known tensor of equal elements.
func filled(t ir.Type, x float64) *operand {
	k := ir.Filled(t, x)
	return &operand{typ: t, known: &k}
}

// fill is filled for any size.
func (c *call) fill(t ir.Type, x float64) *operand {
	if c.folder.room(t) {
		return filled(t, x)
	}
	return c.emit(op.Fill{DType: t.DType, Shape: t.Shape, Value: x})
}

// ints is a known tensor of integers.
func ints(xs []int64, shape ...int64) *operand {
	if shape == nil {
		shape = []int64{int64(len(xs))}
	}
	t := ir.T(ir.I64, shape...)
	return &operand{typ: t, known: &ir.Tensor{Type: t, I: xs}}
}
