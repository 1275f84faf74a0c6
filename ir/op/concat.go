package op

import (
	"errors"
	"fmt"

	"aitk/ir"
)

// Concat joins any number of operands, at least one, along Axis. They have one element type, any, and agree in all other extents.
type Concat struct {
	mover
	Axis int64
}

func (o Concat) Infer(in []ir.Type) ([]ir.Type, error) {
	if len(in) == 0 {
		return nil, errors.New("takes at least 1 operand, got 0")
	}
	if err := anyOperands(in); err != nil {
		return nil, err
	}
	first := in[0].Shape
	if err := wantAxis(o.Axis, len(first)); err != nil {
		return nil, err
	}
	s := first.Clone()
	for i, t := range in[1:] {
		if err := wantSame(in, 0, i+1); err != nil {
			return nil, err
		}
		ok := len(t.Shape) == len(first)
		for a := 0; ok && a < len(first); a++ {
			ok = int64(a) == o.Axis || t.Shape[a] == first[a]
		}
		if !ok {
			return nil, fmt.Errorf("shapes %v and %v of operands 0 and %d do not join along axis %d", first, t.Shape, i+1, o.Axis)
		}
		s[o.Axis] += t.Shape[o.Axis]
		if err := s.Check(); err != nil {
			return nil, err
		}
	}
	return one(in[0].DType, s), nil
}

func (o Concat) Eval(in, out []ir.Tensor) {
	_, total, inner := around(out[0].Type.Shape, o.Axis)
	begin := int64(0)
	for _, x := range in {
		outer, n, _ := around(x.Type.Shape, o.Axis)
		for i := range outer * n * inner {
			block, rest := i/(n*inner), i%(n*inner)
			moveOne(out[0], (block*total+begin)*inner+rest, x, i)
		}
		begin += n
	}
}

func (o Concat) Grad(b *ir.Builder, n *ir.Node, dOut []*ir.Value) []*ir.Value {
	if !differentiable(n) {
		return none(len(n.In))
	}
	grads := make([]*ir.Value, len(n.In))
	begin := int64(0)
	for i, x := range n.In {
		s := x.Type.Shape
		cut := Slice{Starts: make([]int64, len(s)), Ends: s.Clone(), Steps: make([]int64, len(s))}
		for a := range s {
			cut.Steps[a] = 1
		}
		cut.Starts[o.Axis], cut.Ends[o.Axis] = begin, begin+s[o.Axis]
		begin = cut.Ends[o.Axis]
		grads[i] = b.Add(cut, dOut[0])
	}
	return grads
}

func (Concat) Samples() []ir.Sample {
	var list []ir.Sample
	for _, d := range []ir.DType{ir.F32, ir.F64, ir.F16, ir.BF16, ir.I64, ir.I32, ir.U8, ir.Bool} {
		list = append(list,
			good(Concat{}, ramp(d, 0, -2, 2, 3)),
			good(Concat{}, ramp(d, 0, -2, 2, 3), ramp(d, 1, -2, 2, 1), ramp(d, 2, -2, 2, 0), ramp(d, 3, -2, 2, 2)),
			good(Concat{Axis: 1}, ramp(d, 0, -2, 2, 2, 3), ramp(d, 1, -2, 2, 2, 1)),
			good(Concat{Axis: 1}, ramp(d, 0, -2, 2, 2, 3, 2), ramp(d, 1, -2, 2, 2, 1, 2), ramp(d, 2, -2, 2, 2, 2, 2)))
	}
	f := ir.T(ir.F32, 2)
	return append(list,
		bad(Concat{}, "takes at least 1 operand"),
		bad(Concat{}, "operand 1 is i4", f, ir.T(ir.I4, 2)),
		bad(Concat{Axis: 1}, "axis 1 is outside rank 1", f, f),
		bad(Concat{}, "axis 0 is outside rank 0", ir.T(ir.F32)),
		bad(Concat{}, "want one element type", f, ir.T(ir.I64, 2)),
		bad(Concat{}, "shapes [2] and [2,2] of operands 0 and 1 do not join along axis 0", f, ir.T(ir.F32, 2, 2)),
		bad(Concat{Axis: 1}, "do not join", ir.T(ir.F32, 2, 2), ir.T(ir.F32, 3, 2)),
		bad(Concat{}, "negative or too large", ir.T(ir.F32, 1<<58), ir.T(ir.F32, 1<<58), ir.T(ir.F32, 1<<58)))
}
