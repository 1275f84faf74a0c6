package importer

import (
	"aitk/ir"
	"aitk/ir/op"
)

// lowererOf is the table of ONNX ops: nil for those without a lowering. It is a switch and not a map, so that there is nothing to
// initialise and nothing to change.
//
// A lowering is keyed by what an op means, not by its number: the functions look at call.ver only where a version changed the meaning.
func lowererOf(domain, opType string) lowerFunc {
	if domain == "com.microsoft" && opType == "MatMulNBits" {
		return lowerMatMulNBits
	}
	switch domain {
	case "":
	case "ai.onnx.preview":
		return previewLowerer(opType)
	case "ai.onnx.preview.training":
		return trainingLowerer(opType)
	case "com.microsoft":
		return msftLowerer(opType)
	default:
		return nil
	}
	for _, family := range [](func(string) lowerFunc){mathLowerer, shapeLowerer, indexLowerer, reduceLowerer, nnLowerer, quantLowerer, controlLowerer, samplingLowerer} {
		if f := family(opType); f != nil {
			return f
		}
	}
	return nil
}

// mathLowerer has the element-wise ops. (lower_math.go, lower_activation.go)
func mathLowerer(opType string) lowerFunc {
	switch opType {
	case "Neg":
		return unaryOp(op.Neg{})
	case "Abs":
		return lowerAbs
	case "Sign":
		return lowerSign
	case "Floor":
		return unaryOp(op.Floor{})
	case "Ceil":
		return unaryOp(op.Ceil{})
	case "Round":
		return unaryOp(op.Round{})
	case "Exp":
		return unaryOp(op.Exp{})
	case "Log":
		return unaryOp(op.Log{})
	case "Sqrt":
		return unaryOp(op.Sqrt{})
	case "Reciprocal":
		return unaryOp(op.Reciprocal{})
	case "Sin":
		return unaryOp(op.Sin{})
	case "Cos":
		return unaryOp(op.Cos{})
	case "Tan":
		return lowerTan
	case "Asin":
		return formula((*call).asin)
	case "Acos":
		return formula((*call).acos)
	case "Atan":
		return unaryOp(op.Atan{})
	case "Sinh":
		return formula((*call).sinh)
	case "Cosh":
		return formula((*call).cosh)
	case "Asinh":
		return formula((*call).asinh)
	case "Acosh":
		return formula((*call).acosh)
	case "Atanh":
		return formula((*call).atanh)
	case "Shrink":
		return lowerShrink
	case "SwiGLU":
		return lowerSwiGLU
	case "HannWindow":
		return cosineWindow(0.5, 0.5)
	case "HammingWindow":
		return cosineWindow(25.0/46, 21.0/46)
	case "BlackmanWindow":
		return cosineWindow(0.42, 0.5, 0.08)
	case "Tanh":
		return unaryOp(op.Tanh{})
	case "Erf":
		return unaryOp(op.Erf{})
	case "Sigmoid":
		return unaryOp(op.Sigmoid{})
	case "Relu":
		return unaryOp(op.Relu{})
	case "Softplus":
		return unaryOp(op.Softplus{})
	case "Not":
		return unaryOp(op.Not{})
	case "IsNaN":
		return unaryOp(op.IsNaN{})
	case "IsInf":
		return lowerIsInf
	case "Identity":
		return lowerIdentity
	case "Cast":
		return lowerCast
	case "CastLike":
		return lowerCastLike
	case "Add":
		return binaryOp(op.Add{})
	case "Sub":
		return binaryOp(op.Sub{})
	case "Mul":
		return binaryOp(op.Mul{})
	case "Div":
		return lowerDiv
	case "And":
		return binaryOp(op.And{})
	case "Or":
		return binaryOp(op.Or{})
	case "Xor":
		return binaryOp(op.Xor{})
	case "Equal":
		return binaryOp(op.Equal{})
	case "Less":
		return binaryOp(op.Less{})
	case "LessOrEqual":
		return binaryOp(op.LessEqual{})
	case "Greater":
		return swapped(op.Less{})
	case "GreaterOrEqual":
		return swapped(op.LessEqual{})
	case "BitShift":
		return lowerBitShift
	case "BitwiseAnd":
		return binaryOp(op.Bits{Fn: "and"})
	case "BitwiseOr":
		return binaryOp(op.Bits{Fn: "or"})
	case "BitwiseXor":
		return binaryOp(op.Bits{Fn: "xor"})
	case "BitwiseNot":
		return lowerBitwiseNot
	case "Pow":
		return lowerPow
	case "Mod":
		return lowerMod
	case "Max":
		return variadic(op.Max{})
	case "Min":
		return variadic(op.Min{})
	case "Sum":
		return variadic(op.Add{})
	case "Mean":
		return lowerMean
	case "Where":
		return lowerWhere
	case "Clip":
		return lowerClip
	case "Gelu":
		return lowerGelu
	case "LeakyRelu":
		return lowerLeakyRelu
	case "PRelu":
		return lowerPRelu
	case "Elu":
		return lowerElu
	case "Selu":
		return lowerSelu
	case "Celu":
		return lowerCelu
	case "ThresholdedRelu":
		return lowerThresholdedRelu
	case "Softsign":
		return lowerSoftsign
	case "HardSigmoid":
		return lowerHardSigmoid
	case "HardSwish":
		return lowerHardSwish
	case "Mish":
		return lowerMish
	case "Swish":
		return lowerSwish
	}
	return nil
}

// shapeLowerer has the ops that move elements without looking at them. (lower_shape.go, lower_slice.go, lower_sequence.go)
func shapeLowerer(opType string) lowerFunc {
	switch opType {
	case "Constant":
		return lowerConstant
	case "ConstantOfShape":
		return lowerConstantOfShape
	case "Shape":
		return lowerShape
	case "Size":
		return lowerSize
	case "Range":
		return lowerRange
	case "Reshape":
		return lowerReshape
	case "Flatten":
		return lowerFlatten
	case "Squeeze":
		return lowerSqueeze
	case "Unsqueeze":
		return lowerUnsqueeze
	case "Transpose":
		return lowerTranspose
	case "Expand":
		return lowerExpand
	case "Tile":
		return lowerTile
	case "Concat":
		return lowerConcat
	case "Split":
		return lowerSplit
	case "Slice", "DynamicSlice":
		return lowerSlice
	case "Pad":
		return lowerPad
	case "Trilu":
		return lowerTrilu
	case "CenterCropPad":
		return lowerCenterCropPad
	case "EyeLike":
		return lowerEyeLike
	case "BitCast":
		return lowerBitCast
	case "DepthToSpace":
		return lowerDepthToSpace
	case "SpaceToDepth":
		return lowerSpaceToDepth
	case "SplitToSequence":
		return lowerSplitToSequence
	case "SequenceConstruct":
		return lowerSequenceConstruct
	case "SequenceEmpty":
		return lowerSequenceEmpty
	case "SequenceInsert":
		return lowerSequenceInsert
	case "SequenceErase":
		return lowerSequenceErase
	case "SequenceMap":
		return lowerSequenceMap
	case "Optional", "OptionalGetElement":
		return lowerOptional
	case "OptionalHasElement":
		return lowerOptionalHasElement
	case "SequenceAt":
		return lowerSequenceAt
	case "SequenceLength":
		return lowerSequenceLength
	case "ConcatFromSequence":
		return lowerConcatFromSequence
	}
	return nil
}

// indexLowerer has the ops that read or write where an index says. (lower_index.go)
func indexLowerer(opType string) lowerFunc {
	switch opType {
	case "Gather":
		return lowerGather
	case "GatherElements":
		return lowerGatherElements
	case "GatherND":
		return lowerGatherND
	case "ScatterElements":
		return lowerScatterElements
	case "ScatterND":
		return lowerScatterND
	case "OneHot":
		return lowerOneHot
	case "ArgMax":
		return argExtreme(false)
	case "ArgMin":
		return argExtreme(true)
	case "TopK":
		return lowerTopK
	case "Scatter":
		return lowerScatterElements
	case "Compress":
		return lowerCompress
	case "NonZero":
		return lowerNonZero
	case "Unique":
		return lowerUnique
	case "NonMaxSuppression":
		return lowerNonMaxSuppression
	case "ReverseSequence":
		return lowerReverseSequence
	case "TensorScatter":
		return lowerTensorScatter
	case "Col2Im":
		return lowerCol2Im
	case "Hardmax":
		return lowerHardmax
	case "Resize":
		return lowerResize
	case "Upsample":
		return lowerUpsample
	}
	return nil
}

// reduceLowerer has reductions and what runs along an axis. (lower_reduce.go, lower_softmax.go)
func reduceLowerer(opType string) lowerFunc {
	switch opType {
	case "ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1", "ReduceL2", "ReduceSumSquare",
		"ReduceLogSum", "ReduceLogSumExp":
		return lowerReduce
	case "CumSum":
		return lowerCumSum
	case "Softmax":
		return softmax(func(axis int64) ir.Op { return op.Softmax{Axis: axis} })
	case "LogSoftmax":
		return softmax(func(axis int64) ir.Op { return op.LogSoftmax{Axis: axis} })
	case "CumProd":
		return lowerCumProd
	case "Det":
		return lowerDet
	case "DFT":
		return lowerDFT
	case "STFT":
		return lowerSTFT
	case "MelWeightMatrix":
		return lowerMelWeightMatrix
	case "Einsum":
		return lowerEinsum
	case "LRN":
		return lowerLRN
	case "LpNormalization":
		return lowerLpNormalization
	case "MeanVarianceNormalization":
		return lowerMeanVarianceNormalization
	case "SoftmaxCrossEntropyLoss":
		return lowerCrossEntropy
	case "NegativeLogLikelihoodLoss":
		return lowerNLL
	}
	return nil
}

// nnLowerer has the layers. (lower_nn.go, lower_pool.go, lower_norm.go)
func nnLowerer(opType string) lowerFunc {
	switch opType {
	case "MatMul":
		return lowerMatMul
	case "Gemm":
		return lowerGemm
	case "Conv":
		return lowerConv
	case "ConvTranspose":
		return lowerConvTranspose
	case "MaxPool":
		return lowerMaxPool
	case "AveragePool":
		return lowerAveragePool
	case "GlobalAveragePool":
		return globalPool(func(axes []int64) ir.Op { return op.ReduceMean{Axes: axes, KeepDims: true} })
	case "GlobalMaxPool":
		return globalPool(func(axes []int64) ir.Op { return op.ReduceMax{Axes: axes, KeepDims: true} })
	case "MaxUnpool":
		return lowerMaxUnpool
	case "LpPool":
		return lowerLpPool
	case "GlobalLpPool":
		return lowerGlobalLpPool
	case "RNN":
		return lowerRNN
	case "LSTM":
		return lowerLSTM
	case "GRU":
		return lowerGRU
	case "Attention":
		return lowerAttention
	case "LinearAttention":
		return lowerLinearAttention
	case "CausalConvWithState":
		return lowerCausalConvWithState
	case "RotaryEmbedding":
		return lowerRotaryEmbedding
	case "Dropout":
		return lowerDropout
	case "BatchNormalization":
		return lowerBatchNorm
	case "LayerNormalization":
		return lowerLayerNorm
	case "RMSNormalization":
		return lowerRMSNorm
	case "SimplifiedLayerNormalization":
		return lowerSimplifiedLayerNorm
	case "InstanceNormalization":
		return lowerInstanceNorm
	case "GroupNormalization":
		return lowerGroupNorm
	}
	return nil
}

// quantLowerer has quantization and the ops on quantized operands. (lower_qdq.go, lower_qlinear.go)
func quantLowerer(opType string) lowerFunc {
	switch opType {
	case "QuantizeLinear":
		return lowerQuantizeLinear
	case "DequantizeLinear":
		return lowerDequantizeLinear
	case "DynamicQuantizeLinear":
		return lowerDynamicQuantizeLinear
	case "MatMulInteger":
		return lowerMatMulInteger
	case "ConvInteger":
		return lowerConvInteger
	case "QLinearMatMul":
		return lowerQLinearMatMul
	case "QLinearConv":
		return lowerQLinearConv
	}
	return nil
}

// controlLowerer has control flow. (lower_control.go)
func controlLowerer(opType string) lowerFunc {
	switch opType {
	case "If":
		return lowerIf
	case "Loop":
		return lowerLoop
	case "Scan":
		return lowerScan
	}
	return nil
}

// samplingLowerer has what reads images between their cells, and what draws numbers. (lower_sample.go, lower_random.go)
func samplingLowerer(opType string) lowerFunc {
	switch opType {
	case "GridSample":
		return lowerGridSample
	case "AffineGrid":
		return lowerAffineGrid
	case "RoiAlign":
		return lowerRoiAlign
	case "DeformConv":
		return lowerDeformConv
	case "RandomUniform":
		return randomUniform(false)
	case "RandomUniformLike":
		return randomUniform(true)
	case "RandomNormal":
		return randomNormal(false)
	case "RandomNormalLike":
		return randomNormal(true)
	case "Bernoulli":
		return lowerBernoulli
	case "Multinomial":
		return lowerMultinomial
	}
	return nil
}

func previewLowerer(opType string) lowerFunc {
	if opType == "FlexAttention" {
		return lowerFlexAttention
	}
	return nil
}

// trainingLowerer has the updates of the training preview. (lower_training.go)
func trainingLowerer(opType string) lowerFunc {
	switch opType {
	case "Adagrad":
		return lowerAdagrad
	case "Adam":
		return lowerAdam
	case "Momentum":
		return lowerMomentum
	}
	return nil
}
