package op

import (
	"fmt"
	"slices"

	"aitk/ir"
)

// Gather (data, indices) takes the entries of data along Axis that indices name: the result has the shape of data with that axis replaced by the
// axes of indices. Indices are i64 or i32, negative ones count from the end; one out of range is an error of the data. Any element type.
type Gather struct {
	picker
	Axis int64
}

// ScatterAdd (indices, dy) is the adjoint of Gather: zeros with extent Size at Axis, to which the entries of dy are added in row-major
// order of indices. Floats accumulate in float64 and are rounded once; integers wrap.
type ScatterAdd struct{ Axis, Size int64 }

func (o Gather) Infer(in []ir.Type) ([]ir.Type, error) {
	if err := operands(in, 2); err != nil {
		return nil, err
	}
	if err := wantIndex(in, 1); err != nil {
		return nil, err
	}
	data := in[0].Shape
	if err := wantAxis(o.Axis, len(data)); err != nil {
		return nil, err
	}
	s := slices.Concat(data[:o.Axis], in[1].Shape, data[o.Axis+1:])
	if err := s.Check(); err != nil {
		return nil, err
	}
	return one(in[0].DType, s), nil
}

func (o ScatterAdd) Infer(in []ir.Type) ([]ir.Type, error) {
	if err := operands(in, 2); err != nil {
		return nil, err
	}
	if err := wantIndex(in, 0); err != nil {
		return nil, err
	}
	if err := wantNumber(in, 1); err != nil {
		return nil, err
	}
	idx, dy := in[0].Shape, in[1].Shape
	if o.Axis < 0 || o.Axis > int64(len(dy)-len(idx)) {
		return nil, fmt.Errorf("axis %d is outside the operands %v and %v", o.Axis, idx, dy)
	}
	rest := dy[o.Axis:]
	if !rest[:len(idx)].Equal(idx) {
		return nil, fmt.Errorf("operand 1 has %v at axis %d where the indices have %v", rest[:len(idx)], o.Axis, idx)
	}
	s := slices.Concat(dy[:o.Axis], ir.Shape{o.Size}, rest[len(idx):])
	if err := s.Check(); err != nil {
		return nil, err
	}
	return one(in[1].DType, s), nil
}

func (o Gather) checkData(in []ir.Tensor) error {
	return checkIndices(in[1].I, in[0].Type.Shape[o.Axis], o.Axis)
}

func (o Gather) Eval(in, out []ir.Tensor) {
	data, idx := in[0], in[1]
	_, n, inner := around(data.Type.Shape, o.Axis)
	count := int64(len(idx.I))
	move(out[0], data, func(i int64) int64 {
		block, k, rest := i/(count*inner), i/inner%count, i%inner
		return (block*n+entry(idx.I[k], n))*inner + rest
	})
}

func (o Gather) Grad(b *ir.Builder, n *ir.Node, dOut []*ir.Value) []*ir.Value {
	if !differentiable(n) {
		return none(2)
	}
	size := n.In[0].Type.Shape[o.Axis]
	return []*ir.Value{b.Add(ScatterAdd{Axis: o.Axis, Size: size}, n.In[1], dOut[0]), nil}
}

func (Gather) Samples() []ir.Sample {
	list := badOperands(Gather{}, ir.T(ir.F32, 2), ir.T(ir.I64, 2))
	for _, d := range []ir.DType{ir.F32, ir.F64, ir.F16, ir.BF16, ir.I64, ir.I32, ir.U8, ir.Bool} {
		list = append(list,
			good(Gather{}, ramp(d, 0, -2, 2, 4), sampleInts(ir.I64, ir.Shape{}, 2)),
			good(Gather{}, ramp(d, 0, -2, 2, 4, 3), sampleInts(ir.I64, ir.Shape{2, 3}, 0, 3, -1, 3, -4, 1)),
			good(Gather{Axis: 1}, ramp(d, 0, -2, 2, 2, 4, 3), sampleInts(ir.I32, ir.Shape{5}, 0, 3, -1, 3, -4)),
			good(Gather{Axis: 1}, ramp(d, 0, -2, 2, 2, 4), sampleInts(ir.I64, ir.Shape{0})),
			good(Gather{}, ramp(d, 0, -2, 2, 4, 0), sampleInts(ir.I64, ir.Shape{2}, 0, 3)))
	}
	return append(list,
		bad(Gather{}, "operand 1 is f32, want indices of i64 or i32", ir.T(ir.F32, 2), ir.T(ir.F32, 2)),
		bad(Gather{Axis: 1}, "axis 1 is outside rank 1", ir.T(ir.F32, 2), ir.T(ir.I64, 2)),
		bad(Gather{Axis: -1}, "axis -1 is outside rank 1", ir.T(ir.F32, 2), ir.T(ir.I64, 2)),
		bad(Gather{}, "negative or too large", ir.T(ir.F32, 2, 1<<50), ir.T(ir.I64, 1<<50)))
}

func (o ScatterAdd) checkData(in []ir.Tensor) error { return checkIndices(in[0].I, o.Size, o.Axis) }

func (o ScatterAdd) Eval(in, out []ir.Tensor) {
	idx, dy := in[0], in[1]
	_, n, inner := around(out[0].Type.Shape, o.Axis)
	count := int64(len(idx.I))
	for i := range dy.Type.Elems() {
		block, k, rest := i/(count*inner), i/inner%count, i%inner
		addOne(out[0], (block*n+entry(idx.I[k], n))*inner+rest, dy, i)
	}
}

// Cost plans scratch for the indices sorted by entry: Size+1 offsets and one number an index, of 8 bytes each.
func (o ScatterAdd) Cost(in, out []ir.Type) ir.Work {
	w := moved(in, out)
	w.FLOPs = in[1].Elems()
	w.ScratchBytes = 8 * (o.Size + 1 + in[0].Elems())
	return w
}

func (o ScatterAdd) Grad(b *ir.Builder, n *ir.Node, dOut []*ir.Value) []*ir.Value {
	if !differentiable(n) {
		return none(2)
	}
	return []*ir.Value{nil, b.Add(Gather{Axis: o.Axis}, dOut[0], n.In[0])}
}

func (ScatterAdd) Samples() []ir.Sample {
	list := badOperands(ScatterAdd{Size: 3}, ir.T(ir.I64, 2), ir.T(ir.F32, 2))
	for _, d := range []ir.DType{ir.F32, ir.F64, ir.F16, ir.BF16, ir.I64, ir.I32, ir.U8} {
		list = append(list,
			good(ScatterAdd{Size: 4}, sampleInts(ir.I64, ir.Shape{}, 2), ramp(d, 0, -2, 2)),
			good(ScatterAdd{Size: 4}, sampleInts(ir.I64, ir.Shape{2, 3}, 0, 3, -1, 3, -4, 1), ramp(d, 0, -2, 2, 2, 3, 3)),
			good(ScatterAdd{Axis: 1, Size: 4}, sampleInts(ir.I32, ir.Shape{5}, 0, 3, -1, 3, -4), ramp(d, 0, -2, 2, 2, 5, 3)),
			good(ScatterAdd{Axis: 1, Size: 4}, sampleInts(ir.I64, ir.Shape{0}), ramp(d, 0, -2, 2, 2, 0)),
			good(ScatterAdd{Size: 0}, sampleInts(ir.I64, ir.Shape{0}), ramp(d, 0, -2, 2, 0, 2)))
	}
	return append(list,
		bad(ScatterAdd{Size: 3}, "operand 0 is f32, want indices", ir.T(ir.F32, 2), ir.T(ir.F32, 2)),
		bad(ScatterAdd{Size: 3}, "operand 1 is bool, want numbers", ir.T(ir.I64, 2), ir.T(ir.Bool, 2)),
		bad(ScatterAdd{Size: -1}, "negative or too large", ir.T(ir.I64, 2), ir.T(ir.F32, 2)),
		bad(ScatterAdd{Size: 3, Axis: -1}, "axis -1 is outside", ir.T(ir.I64, 2), ir.T(ir.F32, 2)),
		bad(ScatterAdd{Size: 3, Axis: 1}, "axis 1 is outside", ir.T(ir.I64, 2), ir.T(ir.F32, 2)),
		bad(ScatterAdd{Size: 3}, "axis 0 is outside", ir.T(ir.I64, 2, 2), ir.T(ir.F32, 2)),
		bad(ScatterAdd{Size: 3}, "operand 1 has [3] at axis 0 where the indices have [2]", ir.T(ir.I64, 2), ir.T(ir.F32, 3)))
}
