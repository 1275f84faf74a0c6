package cuda

import (
	"aitk/ir"
	"aitk/ir/op"
)

// HasKernel tells whether the device computes an op, also in a binary that has no device: what `aitk ops` shows. A test with the tag holds it to the
// families. Views run nothing and swaps are copies, so these have none.
func HasKernel(o ir.Op) bool {
	switch o.(type) {
	case op.Neg, op.Abs, op.Sign, op.Floor, op.Ceil, op.Round, op.Exp, op.Log, op.Sqrt, op.Rsqrt, op.Reciprocal, op.Sin, op.Cos, op.Atan, op.RoundFloat,
		op.Tanh, op.TanhGrad, op.Erf, op.ErfGrad, op.Sigmoid, op.SigmoidGrad, op.Relu, op.ReluGrad, op.Softplus,
		op.Gelu, op.GeluGrad, op.Swish, op.SwishGrad, op.LeakyRelu, op.Clip, op.Cast, op.Not, op.IsNaN, op.IsInf,
		op.Add, op.Sub, op.Mul, op.Div, op.Pow, op.Max, op.Min, op.Mod,
		op.Equal, op.Less, op.LessEqual, op.And, op.Or, op.Xor, op.Bits, op.Where,
		op.Transpose, op.Expand, op.Concat, op.Slice, op.Unslice, op.Pad, op.Fill, op.Iota, op.Trilu, op.CumSum,
		op.Gather, op.ScatterAdd, op.GatherElements, op.ScatterElements, op.GatherND, op.ScatterND, op.GatherNDGrad, op.ArgMax, op.TopK,
		op.ReduceSum, op.ReduceMean, op.ReduceProd, op.ReduceMax, op.ReduceMin,
		op.MatMul, op.Conv, op.ConvGradInput, op.ConvGradWeight, op.MaxPool, op.MaxPoolGrad, op.AvgPool, op.AvgPoolGrad,
		op.Softmax, op.SoftmaxGrad, op.LogSoftmax, op.LogSoftmaxGrad, op.Attention, op.AttentionGrad, op.AttentionMaskGrad,
		op.LayerNorm, op.LayerNormGrad, op.RMSNorm, op.RMSNormGrad,
		op.BatchNorm, op.BatchNormGrad, op.BatchNormInference, op.BatchNormInferenceGrad, op.MovingAverage,
		op.SoftmaxCrossEntropy, op.SoftmaxCrossEntropyGrad, op.Dropout, op.Uniform, op.Dequantize,
		op.SGD, op.Adam, op.SumSquares, op.AllFinite:
		return true
	}
	return false
}
