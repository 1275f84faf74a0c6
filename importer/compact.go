package importer

import (
	"slices"

	"aitk/ir"
	"aitk/ir/op"
)

// compactElems is the size from which on a known operand is looked at for repetition.
const compactElems = 256

// compact shrinks known operands of a broadcasting op along axes where they repeat themselves: exporters expand an attention mask to the
// whole batch, and the op would do that by itself. The result must keep its type, so an axis shrinks only where another operand has its extent.
func (c *call) compact(o ir.Op, in []*operand, outs []ir.Type) []*operand {
	if !broadcasts(o) {
		return in
	}
	for i, x := range in {
		if x.known == nil || x.value != nil || x.buffer != nil || x.typ.Elems() < compactElems {
			continue
		}
		for a, n := range x.typ.Shape {
			if n < 2 || !repeats(x.known, x.typ.Shape, a) {
				continue
			}
			thin := firstAlong(x, a)
			trial := slices.Clone(in)
			trial[i] = thin
			types := make([]ir.Type, len(in))
			for k, y := range trial {
				types[k] = y.typ
			}
			if got, err := o.Infer(types); err == nil && slices.EqualFunc(got, outs, ir.Type.Equal) {
				in, x = trial, thin
			}
		}
	}
	return in
}

// broadcasts tells ops whose operands stretch to a common shape.
func broadcasts(o ir.Op) bool {
	switch o.(type) {
	case op.Add, op.Sub, op.Mul, op.Div, op.Pow, op.Max, op.Min, op.Mod, op.Equal, op.Less, op.LessEqual, op.And, op.Or, op.Xor, op.Where:
		return true
	}
	return false
}

// repeats tells whether a tensor is the same all along an axis.
func repeats(t *ir.Tensor, s ir.Shape, axis int) bool {
	inner := s[axis+1:].Elems()
	block := inner * s[axis]
	for at := int64(0); at < s.Elems(); at += block {
		for k := at + inner; k < at+block; k++ {
			if t.Type.DType.IsFloat() && t.F[k] != t.F[k-inner] || !t.Type.DType.IsFloat() && t.I[k] != t.I[k-inner] {
				return false
			}
		}
	}
	return true
}

// firstAlong keeps the first entry of an axis.
func firstAlong(x *operand, axis int) *operand {
	s := x.typ.Shape.Clone()
	inner := s[axis+1:].Elems()
	block := inner * s[axis]
	total := s.Elems()
	s[axis] = 1
	t := ir.Tensor{Type: ir.Type{DType: x.typ.DType, Shape: s}}
	for at := int64(0); at < total; at += block {
		if x.typ.DType.IsFloat() {
			t.F = append(t.F, x.known.F[at:at+inner]...)
		} else {
			t.I = append(t.I, x.known.I[at:at+inner]...)
		}
	}
	return &operand{typ: t.Type, known: &t}
}
