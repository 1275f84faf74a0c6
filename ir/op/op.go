// Package op is the vocabulary: every operation that a graph may hold, with all facts about it except machine code: what it accepts, what it
// means, its gradient, what it costs, which bytes it may share. One file per family; All lists them; there is no registry.
//
// The package must not know passes, plans, devices or ONNX: what is true of an op is true whoever plans or runs it.
//
// Invariants (tests hold every op of All to them): an op has Eval or Decompose or both, which then agree; Grad, or a reason for none; good
// samples and bad ones. Infer never panics, whatever attributes and operands a damaged file holds. Eval changes no operand and gives the same
// twice. What may be written over an operand has its bytes and as many elements. Beside these stands a rule for kernels: sums are taken in the
// order that the type's comment states.
//
//	type HardSwish struct{}                                             // hardswish.go: a synopsis, then the meaning
//	func (HardSwish) Infer(in []ir.Type) ([]ir.Type, error)             // and Eval, Grad, Samples; see ir/README.md for the whole list
package op

import "aitk/ir"

// Vocabulary is what readers of text and plan files accept.
func Vocabulary() ir.Vocabulary { return ir.NewVocabulary(All()) }

// All lists the zero value of every op, family by family.
func All() []ir.Op {
	return []ir.Op{
		// element by element
		Neg{}, Abs{}, Sign{}, Floor{}, Ceil{}, Round{}, Exp{}, Log{}, Sqrt{}, Rsqrt{}, Reciprocal{}, Sin{}, Cos{}, Atan{}, RoundFloat{},
		Tanh{}, TanhGrad{}, Erf{}, ErfGrad{}, Sigmoid{}, SigmoidGrad{}, Relu{}, ReluGrad{}, Softplus{}, Gelu{}, GeluGrad{}, Swish{}, SwishGrad{}, LeakyRelu{}, Clip{},
		Cast{}, Not{}, IsNaN{}, IsInf{},
		// two operands that broadcast
		Add{}, Sub{}, Mul{}, Div{}, Pow{}, Max{}, Min{}, Mod{},
		Equal{}, Less{}, LessEqual{}, And{}, Or{}, Xor{}, Bits{}, Where{},
		// shape
		Reshape{}, Transpose{}, Expand{}, Concat{}, Slice{}, Unslice{}, Pad{}, Fill{}, Iota{}, Trilu{}, CumSum{},
		// index
		Gather{}, ScatterAdd{}, GatherElements{}, ScatterElements{}, GatherND{}, ScatterND{}, GatherNDGrad{}, ArgMax{}, TopK{},
		// reduce
		ReduceSum{}, ReduceMean{}, ReduceProd{}, ReduceMax{}, ReduceMin{},
		// matmul, conv, pool
		MatMul{}, Conv{}, ConvGradInput{}, ConvGradWeight{},
		MaxPool{}, MaxPoolGrad{}, AvgPool{}, AvgPoolGrad{},
		// softmax, norm, loss, dropout
		Softmax{}, SoftmaxGrad{}, LogSoftmax{}, LogSoftmaxGrad{}, Attention{}, AttentionGrad{}, AttentionMaskGrad{},
		LayerNorm{}, LayerNormGrad{}, RMSNorm{}, RMSNormGrad{},
		BatchNorm{}, BatchNormGrad{}, BatchNormInference{}, BatchNormInferenceGrad{}, MovingAverage{},
		SoftmaxCrossEntropy{}, SoftmaxCrossEntropyGrad{},
		Dropout{}, Uniform{},
		// frozen weights
		Dequantize{},
		// optimizer, swap
		SGD{}, Adam{}, SumSquares{}, AllFinite{},
		SwapOut{}, SwapWait{}, SwapIn{},
	}
}
