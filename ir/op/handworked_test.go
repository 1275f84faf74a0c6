package op_test

import (
	"fmt"
	"math"
	"testing"

	"aitk/ir"
	"aitk/ir/op"
)

// tensor is an f64 tensor of a shape, f a rank-1 one; likewise for i64 and bool.
func tensor(shape ir.Shape, xs ...float64) ir.Tensor {
	return ir.Tensor{Type: ir.Type{DType: ir.F64, Shape: shape}, F: xs}
}

func f(xs ...float64) ir.Tensor { return tensor(ir.Shape{int64(len(xs))}, xs...) }

func ints(d ir.DType, shape ir.Shape, xs ...int64) ir.Tensor {
	return ir.Tensor{Type: ir.Type{DType: d, Shape: shape}, I: xs}
}

func i64(xs ...int64) ir.Tensor { return ints(ir.I64, ir.Shape{int64(len(xs))}, xs...) }

func bools(xs ...int64) ir.Tensor { return ints(ir.Bool, ir.Shape{int64(len(xs))}, xs...) }

// upto is 1, 2, 3, ... in a shape.
func upto(shape ...int64) ir.Tensor {
	t := ir.NewTensor(ir.T(ir.F64, shape...))
	for i := range t.F {
		t.F[i] = float64(i + 1)
	}
	return t
}

// TestHandWorked holds what generic tests cannot know: what the ops mean. Each value can be followed on paper.
func TestHandWorked(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	in := func(ts ...ir.Tensor) []ir.Tensor { return ts }
	m23 := upto(2, 3) // 1 2 3 / 4 5 6
	for _, c := range []struct {
		op   ir.Op
		in   []ir.Tensor
		want ir.Tensor
	}{
		{op.Neg{}, in(ints(ir.I8, ir.Shape{2}, -128, 5)), ints(ir.I8, ir.Shape{2}, -128, -5)},
		{op.Abs{}, in(f(-2, 3, -inf)), f(2, 3, inf)},
		{op.Sign{}, in(f(-2, 0, 3, nan)), f(-1, 0, 1, nan)},
		{op.Floor{}, in(f(-1.5, 1.5)), f(-2, 1)},
		{op.Ceil{}, in(f(-1.5, 1.5)), f(-1, 2)},
		{op.Round{}, in(f(-1.5, 0.5, 1.5, 2.5, 2.6)), f(-2, 0, 2, 2, 3)},
		{op.Exp{}, in(f(0, 1, -inf)), f(1, math.E, 0)},
		{op.Log{}, in(f(1, math.E, 0, -1)), f(0, 1, -inf, nan)},
		{op.Sqrt{}, in(f(4, 0, -1)), f(2, 0, nan)},
		{op.Rsqrt{}, in(f(4, 0)), f(0.5, inf)},
		{op.Reciprocal{}, in(f(4, 0)), f(0.25, inf)},
		{op.Sin{}, in(f(0, math.Pi/2)), f(0, 1)},
		{op.Cos{}, in(f(0, math.Pi)), f(1, -1)},
		{op.Tanh{}, in(f(0, inf, math.Log(3)/2)), f(0, 1, 0.5)},
		{op.Erf{}, in(f(0, inf, 0.5)), f(0, 1, 0.5204998778130465)},
		{op.Sigmoid{}, in(f(0, -inf, math.Log(3))), f(0.5, 0, 0.75)},
		{op.Softplus{}, in(f(0, 1000, -1000)), f(math.Ln2, 1000, 0)},
		{op.Relu{}, in(f(-1, 0, 2, nan)), f(0, 0, 2, nan)},
		{op.Relu{}, in(i64(-1, 2)), i64(0, 2)},
		{op.ReluGrad{}, in(f(0, 2), f(5, 7)), f(0, 7)},
		{op.TanhGrad{}, in(f(0.5), f(4)), f(3)},
		{op.SigmoidGrad{}, in(f(0.5), f(4)), f(1)},
		{op.ErfGrad{}, in(f(0), f(math.Sqrt(math.Pi))), f(2)},
		{op.Gelu{}, in(f(0, 1, -1)), f(0, 0.8413447460685429, -0.15865525393145707)},
		{op.Gelu{Tanh: true}, in(f(0, 1, -1)), f(0, 0.8411919906082768, -0.15880800939172324)},
		{op.GeluGrad{}, in(f(0, 1), f(2, 1)), f(1, 1.0833154705876864)},
		{op.Swish{Alpha: 1}, in(f(0, math.Log(3), -math.Log(3))), f(0, 0.75*math.Log(3), -0.25*math.Log(3))},
		{op.Swish{Alpha: 2}, in(f(math.Log(3) / 2)), f(0.375 * math.Log(3))},
		{op.SwishGrad{Alpha: 1}, in(f(0, math.Log(3)), f(2, 1)), f(1, 0.75+0.1875*math.Log(3))},
		{op.LeakyRelu{Alpha: 0.25}, in(f(-4, 0, 4)), f(-1, 0, 4)},
		{op.Clip{Min: -1, Max: 2}, in(f(-3, 0, 3, nan)), f(-1, 0, 2, nan)},
		{op.Clip{Min: -0.5, Max: 1.5}, in(i64(-3, 0, 3)), i64(0, 0, 1)},
		{op.Clip{Min: -inf, Max: inf}, in(i64(math.MinInt64, math.MaxInt64)), i64(math.MinInt64, math.MaxInt64)},
		{op.Cast{To: ir.I64}, in(f(-1.9, 1.9, nan, inf, 1e30)), i64(-1, 1, 0, math.MaxInt64, math.MaxInt64)},
		{op.Cast{To: ir.U8}, in(f(-1, 255.9, 300)), ints(ir.U8, ir.Shape{3}, 0, 255, 255)},
		{op.Cast{To: ir.I8}, in(i64(128, -129)), ints(ir.I8, ir.Shape{2}, -128, 127)},
		{op.Cast{To: ir.Bool}, in(f(0, 0.1, nan)), bools(0, 1, 1)},
		{op.Not{}, in(bools(0, 1)), bools(1, 0)},
		{op.IsNaN{}, in(f(nan, inf, 0)), bools(1, 0, 0)},
		{op.IsInf{}, in(f(nan, -inf, 0)), bools(0, 1, 0)},

		{op.Add{}, in(m23, f(10, 20, 30)), tensor(ir.Shape{2, 3}, 11, 22, 33, 14, 25, 36)},
		{op.Sub{}, in(upto(2, 1), f(1, 2, 3)), tensor(ir.Shape{2, 3}, 0, -1, -2, 1, 0, -1)},
		{op.Mul{}, in(m23, tensor(ir.Shape{2, 1}, 1, 10)), tensor(ir.Shape{2, 3}, 1, 2, 3, 40, 50, 60)},
		{op.Div{}, in(i64(7, -7, 7, 1), i64(2, 2, -2, 0)), i64(3, -3, -3, 0)},
		{op.Div{}, in(f(7, 1), f(2, 0)), f(3.5, inf)},
		{op.Pow{}, in(f(2, 4, -2, 0), f(3, 0.5, 3, 0)), f(8, 2, -8, 1)},
		{op.Pow{}, in(i64(2, -3, 2, -1, -1, 0), i64(10, 3, -1, -3, -2, 0)), i64(1024, -27, 0, -1, 1, 1)},
		{op.Max{}, in(f(1, nan, nan), f(2, 2, inf)), f(2, nan, nan)},
		{op.Min{}, in(f(1, nan), f(2, -inf)), f(1, nan)},
		{op.Mod{}, in(f(5, -5, 5), f(3, 3, -3)), f(2, 1, -1)},
		{op.Mod{Fmod: true}, in(f(5, -5, 5), f(3, 3, -3)), f(2, -2, 2)},
		{op.Mod{}, in(i64(5, -5, 5, 1), i64(3, 3, -3, 0)), i64(2, 1, -1, 0)},
		{op.Mod{Fmod: true}, in(i64(5, -5, 5, 1), i64(3, 3, -3, 0)), i64(2, -2, 2, 0)},
		{op.Equal{}, in(f(1, nan, 2), f(1, nan, 3)), bools(1, 0, 0)},
		{op.Less{}, in(i64(1, 2, 3), i64(2)), bools(1, 0, 0)},
		{op.LessEqual{}, in(i64(1, 2, 3), i64(2)), bools(1, 1, 0)},
		{op.And{}, in(bools(0, 0, 1, 1), bools(0, 1, 0, 1)), bools(0, 0, 0, 1)},
		{op.Or{}, in(bools(0, 0, 1, 1), bools(0, 1, 0, 1)), bools(0, 1, 1, 1)},
		{op.Xor{}, in(bools(0, 0, 1, 1), bools(0, 1, 0, 1)), bools(0, 1, 1, 0)},
		{op.Where{}, in(bools(1, 0, 1), f(nan, nan, 3), f(9)), f(nan, 9, 3)},

		{op.Reshape{Shape: ir.Shape{3, 2}}, in(m23), upto(3, 2)},
		{op.Transpose{Perm: []int64{1, 0}}, in(m23), tensor(ir.Shape{3, 2}, 1, 4, 2, 5, 3, 6)},
		{op.Transpose{Perm: []int64{2, 0, 1}}, in(upto(2, 1, 3)), tensor(ir.Shape{3, 2, 1}, 1, 4, 2, 5, 3, 6)},
		{op.Expand{Shape: ir.Shape{2, 2, 2}}, in(upto(2, 1)), tensor(ir.Shape{2, 2, 2}, 1, 1, 2, 2, 1, 1, 2, 2)},
		{op.Concat{Axis: 1}, in(upto(2, 1), upto(2, 2)), tensor(ir.Shape{2, 3}, 1, 1, 2, 2, 3, 4)},
		{op.Slice{Starts: []int64{1, 2}, Ends: []int64{-1, 3}, Steps: []int64{-1, 1}}, in(m23), tensor(ir.Shape{2, 1}, 6, 3)},
		{op.Slice{Starts: []int64{0}, Ends: []int64{5}, Steps: []int64{2}}, in(upto(5)), f(1, 3, 5)},
		{op.Unslice{Shape: ir.Shape{5}, Starts: []int64{4}, Steps: []int64{-2}}, in(upto(2)), f(0, 0, 2, 0, 1)},
		{op.Pad{Before: []int64{1, 0}, After: []int64{0, 2}, Value: 9}, in(upto(1, 2)), tensor(ir.Shape{2, 4}, 9, 9, 9, 9, 1, 2, 9, 9)},
		{op.Fill{DType: ir.I64, Shape: ir.Shape{2}, Value: -3}, nil, i64(-3, -3)},
		{op.Iota{DType: ir.F64, Shape: ir.Shape{2, 3}, Axis: 1, Start: 1, Step: 0.5}, nil, tensor(ir.Shape{2, 3}, 1, 1.5, 2, 1, 1.5, 2)},
		{op.Iota{DType: ir.U8, Shape: ir.Shape{3}, Start: 254, Step: 1}, nil, ints(ir.U8, ir.Shape{3}, 254, 255, 0)},
		{op.Trilu{}, in(m23), tensor(ir.Shape{2, 3}, 1, 0, 0, 4, 5, 0)},
		{op.Trilu{Upper: true, K: 1}, in(m23), tensor(ir.Shape{2, 3}, 0, 2, 3, 0, 0, 6)},
		{op.Trilu{K: math.MaxInt64}, in(m23), m23},
		{op.CumSum{}, in(f(1, 2, 3)), f(1, 3, 6)},
		{op.CumSum{Exclusive: true}, in(f(1, 2, 3)), f(0, 1, 3)},
		{op.CumSum{Reverse: true}, in(f(1, 2, 3)), f(6, 5, 3)},
		{op.CumSum{Axis: 0, Exclusive: true, Reverse: true}, in(m23), tensor(ir.Shape{2, 3}, 4, 5, 6, 0, 0, 0)},

		{op.Gather{Axis: 1}, in(m23, i64(2, -3)), tensor(ir.Shape{2, 2}, 3, 1, 6, 4)},
		{op.Gather{}, in(m23, ints(ir.I32, ir.Shape{}, -1)), f(4, 5, 6)},
		{op.ScatterAdd{Size: 3}, in(i64(0, 2, 0), upto(3, 2)), tensor(ir.Shape{3, 2}, 6, 8, 0, 0, 3, 4)},
		{op.ScatterAdd{Axis: 1, Size: 2}, in(i64(1, 1, -2), m23), tensor(ir.Shape{2, 2}, 3, 3, 6, 9)},
		{op.GatherElements{Axis: 1}, in(m23, ints(ir.I64, ir.Shape{2, 2}, 0, 2, 1, -1)), tensor(ir.Shape{2, 2}, 1, 3, 5, 6)},
		{op.GatherElements{}, in(m23, ints(ir.I64, ir.Shape{1, 2}, 1, 0)), tensor(ir.Shape{1, 2}, 4, 2)},
		{op.ScatterElements{}, in(f(1, 2, 3), i64(1, 1), f(7, 8)), f(1, 8, 3)},
		{op.ScatterElements{Reduce: "add"}, in(f(1, 2, 3), i64(1, -2), f(7, 8)), f(1, 17, 3)},
		{op.ScatterElements{Reduce: "mul"}, in(i64(1, 2, 3), i64(1, 1), i64(7, 8)), i64(1, 112, 3)},
		{op.ScatterElements{Reduce: "min"}, in(f(1, 2, 3), i64(1, 2), f(7, -8)), f(1, 2, -8)},
		{op.ScatterElements{Reduce: "max"}, in(f(1, 2, 3), i64(1, 2), f(7, nan)), f(1, 7, nan)},
		{op.GatherND{}, in(m23, ints(ir.I64, ir.Shape{2, 2}, 0, 1, -1, -1)), f(2, 6)},
		{op.GatherND{}, in(m23, ints(ir.I64, ir.Shape{1, 1}, 1)), tensor(ir.Shape{1, 3}, 4, 5, 6)},
		{op.GatherND{BatchDims: 1}, in(m23, ints(ir.I64, ir.Shape{2, 1}, 2, 0)), f(3, 4)},
		{op.GatherND{BatchDims: 1}, in(upto(2, 2, 2), ints(ir.I64, ir.Shape{2, 1}, 1, 0)), tensor(ir.Shape{2, 2}, 3, 4, 5, 6)},
		{op.ScatterND{}, in(upto(3, 2), ints(ir.I64, ir.Shape{1, 1}, 1), tensor(ir.Shape{1, 2}, 8, 9)), tensor(ir.Shape{3, 2}, 1, 2, 8, 9, 5, 6)},
		{op.ScatterND{Reduce: "add"}, in(f(1, 2), ints(ir.I64, ir.Shape{2, 1}, 0, 0), f(10, 100)), f(111, 2)},
		{op.GatherNDGrad{Shape: ir.Shape{2, 3}}, in(ints(ir.I64, ir.Shape{2, 2}, 1, 2, 1, -1), f(10, 5)), tensor(ir.Shape{2, 3}, 0, 0, 0, 0, 0, 15)},
		{op.GatherNDGrad{BatchDims: 1, Shape: ir.Shape{2, 2}}, in(ints(ir.I64, ir.Shape{2, 1}, 1, 0), f(10, 5)), tensor(ir.Shape{2, 2}, 0, 10, 5, 0)},
		{op.ArgMax{}, in(f(1, 3, 3)), ints(ir.I64, ir.Shape{}, 1)},
		{op.ArgMax{Last: true, KeepDims: true}, in(f(1, 3, 3)), i64(2)},
		{op.ArgMax{Min: true, Axis: 1}, in(tensor(ir.Shape{2, 2}, 2, 1, nan, 0)), i64(1, 0)},

		{op.ReduceSum{Axes: []int64{0}}, in(m23), f(5, 7, 9)},
		{op.ReduceSum{Axes: []int64{1}, KeepDims: true}, in(m23), tensor(ir.Shape{2, 1}, 6, 15)},
		{op.ReduceSum{Axes: []int64{0, 2}}, in(upto(2, 2, 2)), f(1+2+5+6, 3+4+7+8)},
		{op.ReduceSum{}, in(m23), m23},
		{op.ReduceSum{Axes: []int64{0}}, in(tensor(ir.Shape{0, 2})), f(0, 0)},
		{op.ReduceMean{Axes: []int64{0, 1}}, in(m23), tensor(ir.Shape{}, 3.5)},
		{op.ReduceMean{Axes: []int64{0}}, in(i64(-3, -4)), ints(ir.I64, ir.Shape{}, -3)},
		{op.ReduceMean{Axes: []int64{0}}, in(tensor(ir.Shape{0, 1})), f(nan)},
		{op.ReduceMean{Axes: []int64{0}}, in(ints(ir.I64, ir.Shape{0, 1})), i64(0)},
		{op.ReduceProd{Axes: []int64{1}}, in(m23), f(6, 120)},
		{op.ReduceProd{Axes: []int64{0}}, in(tensor(ir.Shape{0, 1})), f(1)},
		{op.ReduceMax{Axes: []int64{1}}, in(tensor(ir.Shape{2, 2}, 1, 2, nan, inf)), f(2, nan)},
		{op.ReduceMin{Axes: []int64{0}}, in(m23), f(1, 2, 3)},
		{op.ReduceMin{Axes: []int64{0}}, in(i64(3, -2)), ints(ir.I64, ir.Shape{}, -2)},
	} {
		got := run(c.op, c.in)
		sameTensor(t, fmt.Sprintf("%s%+v", ir.OpName(c.op), c.op), got[0], c.want, 1e-12)
	}
}
