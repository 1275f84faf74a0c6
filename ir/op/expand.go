package op

import (
	"fmt"

	"aitk/ir"
)

// Expand repeats elements along axes of extent 1 and new leading axes, by the rules of broadcasting, to exactly Shape. Any element type.
type Expand struct {
	mover
	Shape ir.Shape
}

func (o Expand) Infer(in []ir.Type) ([]ir.Type, error) {
	if err := operands(in, 1); err != nil {
		return nil, err
	}
	if err := o.Shape.Check(); err != nil {
		return nil, err
	}
	s, err := ir.Broadcast(in[0].Shape, o.Shape)
	if err != nil || !s.Equal(o.Shape) {
		return nil, fmt.Errorf("shape %v does not stretch to %v", in[0].Shape, o.Shape)
	}
	return one(in[0].DType, o.Shape), nil
}

func (o Expand) Eval(in, out []ir.Tensor) {
	walk(o.Shape, func(i int64, at []int64) { moveOne(out[0], i, in[0], at[0]) }, stretched(in[0].Type.Shape, o.Shape))
}

func (Expand) Grad(b *ir.Builder, n *ir.Node, dOut []*ir.Value) []*ir.Value {
	if !differentiable(n) {
		return none(1)
	}
	return []*ir.Value{sumTo(b, dOut[0], n.In[0].Type.Shape)}
}

func (Expand) Samples() []ir.Sample {
	list := badOperands(Expand{Shape: ir.Shape{2}}, ir.T(ir.F32, 2))
	for _, s := range []struct{ from, to ir.Shape }{
		{ir.Shape{}, ir.Shape{}}, {ir.Shape{}, ir.Shape{2, 3}}, {ir.Shape{3}, ir.Shape{2, 3}}, {ir.Shape{2, 1}, ir.Shape{2, 3}}, {ir.Shape{1, 3, 1}, ir.Shape{2, 2, 3, 4}},
		{ir.Shape{2, 1, 3}, ir.Shape{2, 4, 3}}, {ir.Shape{1}, ir.Shape{0}}, {ir.Shape{0, 1}, ir.Shape{0, 3}},
	} {
		for _, d := range []ir.DType{ir.F32, ir.F64, ir.F16, ir.BF16, ir.I64, ir.I32, ir.U8, ir.Bool} {
			list = append(list, good(Expand{Shape: s.to}, ramp(d, 0, -2, 2, s.from...)))
		}
	}
	return append(list,
		bad(Expand{Shape: ir.Shape{3}}, "shape [2] does not stretch to [3]", ir.T(ir.F32, 2)),
		bad(Expand{Shape: ir.Shape{1}}, "shape [2] does not stretch to [1]", ir.T(ir.F32, 2)),
		bad(Expand{Shape: ir.Shape{2}}, "shape [2,2] does not stretch to [2]", ir.T(ir.F32, 2, 2)),
		bad(Expand{Shape: ir.Shape{1 << 40, 1 << 40}}, "negative or too large", ir.T(ir.F32, 1)))
}
