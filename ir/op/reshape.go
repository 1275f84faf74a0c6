package op

import (
	"fmt"

	"aitk/ir"
)

// Reshape gives the same elements in row-major order another shape. It is a view: it moves nothing.
type Reshape struct {
	viewOf0
	Shape ir.Shape
}

func (o Reshape) Infer(in []ir.Type) ([]ir.Type, error) {
	if len(in) == 1 && in[0].DType == ir.I4 && in[0].Space == ir.Device {
		in = []ir.Type{{DType: ir.I8, Shape: in[0].Shape}} // a view may be of packed elements
		out, err := o.Infer(in)
		if err != nil {
			return nil, err
		}
		out[0].DType = ir.I4
		return out, nil
	}
	if err := operands(in, 1); err != nil {
		return nil, err
	}
	if err := o.Shape.Check(); err != nil {
		return nil, err
	}
	if n, m := in[0].Elems(), o.Shape.Elems(); n != m {
		return nil, fmt.Errorf("shape %v has %d elements, the operand %v has %d", o.Shape, m, in[0].Shape, n)
	}
	return one(in[0].DType, o.Shape), nil
}

func (Reshape) Eval(in, out []ir.Tensor) { move(out[0], in[0], func(i int64) int64 { return i }) }

func (Reshape) Cost(in, out []ir.Type) ir.Work { return ir.Work{} }

func (Reshape) Grad(b *ir.Builder, n *ir.Node, dOut []*ir.Value) []*ir.Value {
	if !differentiable(n) {
		return none(1)
	}
	return []*ir.Value{b.Add(Reshape{Shape: n.In[0].Type.Shape}, dOut[0])}
}

func (Reshape) Samples() []ir.Sample {
	list := badOperands(Reshape{Shape: ir.Shape{2}}, ir.T(ir.F32, 2))
	kept := list[:0]
	for _, s := range list {
		if s.Err != "operand 0 is i4" { // a view of packed elements is fine
			kept = append(kept, s)
		}
	}
	list = kept
	for _, s := range []struct{ from, to ir.Shape }{{ir.Shape{}, ir.Shape{1, 1}}, {ir.Shape{1}, ir.Shape{}}, {ir.Shape{2, 6}, ir.Shape{3, 1, 4}}, {ir.Shape{0, 3}, ir.Shape{5, 0}}} {
		for _, d := range []ir.DType{ir.F32, ir.F64, ir.BF16, ir.I64, ir.Bool} {
			list = append(list, good(Reshape{Shape: s.to}, ramp(d, 0, -2, 2, s.from...)))
		}
	}
	return append(list,
		bad(Reshape{Shape: ir.Shape{7}}, "shape [7] has 7 elements, the operand [2,3] has 6", ir.T(ir.F32, 2, 3)),
		bad(Reshape{Shape: ir.Shape{5}}, "shape [5] has 5 elements, the operand [6] has 6", ir.T(ir.I4, 6)),
		bad(Reshape{Shape: ir.Shape{-1}}, "shape [-1] is negative", ir.T(ir.F32, 2, 3)))
}
