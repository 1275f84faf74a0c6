package op_test

import (
	"strings"
	"testing"

	"aitk/ir"
	"aitk/ir/op"
)

// TestIndicesOutOfRange: CheckData names what is wrong, and Eval would rather panic than read elsewhere.
func TestIndicesOutOfRange(t *testing.T) {
	floats := func(shape ...int64) ir.Tensor { return ir.NewTensor(ir.T(ir.F32, shape...)) }
	ints := func(shape ir.Shape, xs ...int64) ir.Tensor {
		return ir.Tensor{Type: ir.Type{DType: ir.I64, Shape: shape}, I: xs}
	}
	for _, c := range []struct {
		op   ir.Op
		in   []ir.Tensor
		want string
	}{
		{op.Gather{}, []ir.Tensor{floats(3), ints(ir.Shape{2}, 0, 3)}, "Gather: index 3 is outside extent 3 of axis 0"},
		{op.Gather{Axis: 1}, []ir.Tensor{floats(3, 2), ints(ir.Shape{1}, -3)}, "Gather: index -3 is outside extent 2 of axis 1"},
		{op.Gather{}, []ir.Tensor{floats(0), ints(ir.Shape{1}, 0)}, "index 0 is outside extent 0"},
		{op.ScatterAdd{Size: 3}, []ir.Tensor{ints(ir.Shape{1}, 1<<62), floats(1)}, "is outside extent 3 of axis 0"},
		{op.GatherElements{}, []ir.Tensor{floats(3), ints(ir.Shape{1}, 3)}, "GatherElements: index 3 is outside extent 3 of axis 0"},
		{op.ScatterElements{Axis: 1}, []ir.Tensor{floats(2, 3), ints(ir.Shape{1, 1}, -4), floats(1, 1)}, "index -4 is outside extent 3 of axis 1"},
		{op.GatherND{}, []ir.Tensor{floats(2, 3), ints(ir.Shape{1, 2}, 0, 3)}, "index 3 is outside extent 3 of axis 1"},
		{op.GatherND{BatchDims: 1}, []ir.Tensor{floats(1, 3), ints(ir.Shape{1, 1}, 3)}, "index 3 is outside extent 3 of axis 1"},
		{op.ScatterND{}, []ir.Tensor{floats(2, 3), ints(ir.Shape{1, 2}, 2, 0), floats(1)}, "index 2 is outside extent 2 of axis 0"},
		{op.GatherNDGrad{Shape: ir.Shape{2}}, []ir.Tensor{ints(ir.Shape{1, 1}, -3), floats(1)}, "index -3 is outside extent 2 of axis 0"},
	} {
		err := op.CheckData(c.op, c.in)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want %q", ir.OpName(c.op), err, c.want)
		}
		func() {
			defer func() {
				if _, ok := recover().(*ir.Bug); !ok {
					t.Errorf("%s evaluates an index out of range", ir.OpName(c.op))
				}
			}()
			run(c.op, c.in)
		}()
	}
}
