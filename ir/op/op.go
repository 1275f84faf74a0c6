// Package op is the vocabulary: every operation that a graph may hold, with all facts about it except machine code. One file per
// family; All lists them; there is no registry.
package op

import "aitk/ir"

// Vocabulary is what readers of text and plan files accept.
func Vocabulary() ir.Vocabulary { return ir.NewVocabulary(All()) }

// All lists the zero value of every op, family by family.
func All() []ir.Op {
	return []ir.Op{
		// matmul, conv, pool
		MatMul{}, Conv{}, ConvGradInput{}, ConvGradWeight{},
		MaxPool{}, MaxPoolGrad{}, AvgPool{}, AvgPoolGrad{},
		// softmax, norm, loss, dropout
		Softmax{}, SoftmaxGrad{}, LogSoftmax{}, LogSoftmaxGrad{},
		LayerNorm{}, LayerNormGrad{}, RMSNorm{}, RMSNormGrad{},
		BatchNorm{}, BatchNormGrad{}, BatchNormInference{}, BatchNormInferenceGrad{}, MovingAverage{},
		SoftmaxCrossEntropy{}, SoftmaxCrossEntropyGrad{},
		Dropout{},
		// optimizer, swap
		SGD{}, Adam{}, SumSquares{}, AllFinite{},
		SwapOut{}, SwapWait{}, SwapIn{},
	}
}
