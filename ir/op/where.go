package op

import (
	"fmt"

	"aitk/ir"
)

// Where (cond, x, y) takes x where cond is true, else y; all three broadcast. cond is bool; x and y have one element type, any.
// What is not taken has no influence, NaN or not.
type Where struct {
	over12
	mover
}

func (Where) Infer(in []ir.Type) ([]ir.Type, error) {
	if err := operands(in, 3); err != nil {
		return nil, err
	}
	if in[0].DType != ir.Bool {
		return nil, fmt.Errorf("operand 0 is %v, want bool", in[0].DType)
	}
	if err := wantSame(in, 1, 2); err != nil {
		return nil, err
	}
	s, err := ir.Broadcast(in[1].Shape, in[2].Shape)
	if err != nil {
		return nil, err
	}
	s, err = ir.Broadcast(in[0].Shape, s)
	return one(in[1].DType, s), err
}

func (Where) Eval(in, out []ir.Tensor) {
	c, x, y, z := in[0], in[1], in[2], out[0]
	s := z.Type.Shape
	walk(s, func(i int64, at []int64) {
		if c.I[at[0]] != 0 {
			moveOne(z, i, x, at[1])
		} else {
			moveOne(z, i, y, at[2])
		}
	}, stretched(c.Type.Shape, s), stretched(x.Type.Shape, s), stretched(y.Type.Shape, s))
}

func (Where) Grad(b *ir.Builder, n *ir.Node, dOut []*ir.Value) []*ir.Value {
	if !differentiable(n) {
		return none(3)
	}
	c, dz := n.In[0], dOut[0]
	zero := b.Scalar(dz.Type.DType, 0)
	dx := b.Add(Where{}, c, dz, zero)
	dy := b.Add(Where{}, c, zero, dz)
	return []*ir.Value{nil, sumTo(b, dx, n.In[1].Type.Shape), sumTo(b, dy, n.In[2].Type.Shape)}
}

func (o Where) Samples() []ir.Sample {
	list := badOperands(o, ir.T(ir.Bool, 2), ir.T(ir.F32, 2), ir.T(ir.F32, 2))
	sample := func(d ir.DType, c, x, y ir.Shape) {
		list = append(list, good(o, ramp(ir.Bool, 0, 0, 1, c...), ramp(d, 1, -2, 2, x...), ramp(d, 2, -2, 2, y...)))
	}
	for _, s := range broadcastShapes() {
		sample(ir.F32, s[0], s[1], s[0])
		sample(ir.F32, s[0], s[1], s[1])
		sample(ir.F32, ir.Shape{}, s[0], s[1])
	}
	sample(ir.F32, ir.Shape{2, 1, 3}, ir.Shape{4, 1}, ir.Shape{})
	for _, d := range []ir.DType{ir.F64, ir.F16, ir.BF16, ir.I64, ir.I32, ir.I8, ir.U8, ir.Bool} {
		sample(d, ir.Shape{4, 5}, ir.Shape{4, 5}, ir.Shape{4, 5})
		sample(d, ir.Shape{4, 1}, ir.Shape{4, 5}, ir.Shape{})
	}
	x := special(ir.F32)
	return append(list,
		kinked(o, ramp(ir.Bool, 0, 0, 1, 16), x, ramp(ir.F32, 0, -1, 1, 16)),
		bad(o, "operand 0 is f32, want bool", ir.T(ir.F32), ir.T(ir.F32), ir.T(ir.F32)),
		bad(o, "want one element type", ir.T(ir.Bool), ir.T(ir.F32), ir.T(ir.I32)),
		bad(o, "do not broadcast", ir.T(ir.Bool), ir.T(ir.F32, 2), ir.T(ir.F32, 3)),
		bad(o, "do not broadcast", ir.T(ir.Bool, 3), ir.T(ir.F32, 2), ir.T(ir.F32, 2)))
}
