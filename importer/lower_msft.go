package importer

import (
	"math"

	"aitk/importer/onnxpb"
	"aitk/ir"
	"aitk/ir/op"
)

// msftLowerer has the ops of com.microsoft that ONNX Runtime's optimizer and quantizer write. They are taken apart again by their definitions.
// (lower_msft.go, lower_msft_norm.go, lower_msft_attention.go, lower_qlinear.go)
func msftLowerer(opType string) lowerFunc {
	switch opType {
	case "FusedMatMul", "TransposeMatMul":
		return lowerFusedMatMul
	case "FusedGemm":
		return lowerFusedGemm
	case "FusedConv":
		return lowerFusedConv
	case "NhwcConv":
		return lowerNhwcConv
	case "Gelu":
		return lowerGelu
	case "FastGelu":
		return lowerFastGelu
	case "BiasGelu":
		return lowerBiasGelu
	case "QuickGelu":
		return lowerQuickGelu
	case "BiasSplitGelu":
		return lowerBiasSplitGelu
	case "BiasAdd":
		return variadic(op.Add{})
	case "SkipLayerNormalization":
		return lowerSkipLayerNorm
	case "SimplifiedLayerNormalization":
		return lowerSimplifiedLayerNorm
	case "SkipSimplifiedLayerNormalization":
		return lowerSkipSimplifiedLayerNorm
	case "EmbedLayerNormalization":
		return lowerEmbedLayerNorm
	case "GroupNorm":
		return lowerMsftGroupNorm
	case "SkipGroupNorm":
		return lowerSkipGroupNorm
	case "Attention":
		return lowerMsftAttention
	case "MultiHeadAttention":
		return lowerMultiHeadAttention
	case "GroupQueryAttention":
		return lowerGroupQueryAttention
	case "RotaryEmbedding":
		return lowerMsftRotary
	case "QuantizeLinear":
		return lowerQuantizeLinear
	case "DequantizeLinear":
		return lowerDequantizeLinear
	case "QLinearAdd":
		return qlinearBinary(op.Add{})
	case "QLinearMul":
		return qlinearBinary(op.Mul{})
	case "QLinearSigmoid":
		return qlinearUnary(func(c *call, x *operand) *operand { return c.emit(op.Sigmoid{}, x) })
	case "QLinearLeakyRelu":
		return qlinearUnary(func(c *call, x *operand) *operand { return c.emit(op.LeakyRelu{Alpha: c.float("alpha", 0.01)}, x) })
	case "QLinearGlobalAveragePool":
		return qlinearUnary(qlinearGlobalAveragePool)
	case "QLinearConcat":
		return lowerQLinearConcat
	case "DynamicQuantizeMatMul":
		return lowerDynamicQuantizeMatMul
	case "MatMulIntegerToFloat":
		return lowerMatMulIntegerToFloat
	case "Trilu":
		return lowerTrilu
	}
	return nil
}

// lowerFusedMatMul is alpha*A*B. transA swaps the last two axes of A, transBatchA first moves its first axis before the last.
func lowerFusedMatMul(c *call) []*operand {
	c.args(2, 2)
	turned := func(x *operand, which string) *operand {
		r := len(x.typ.Shape)
		batch, last := c.flag("transBatch"+which, false), c.flag("trans"+which, false)
		if r < 2 {
			return x
		}
		perm := allAxes(r)
		if batch {
			perm = append(append(perm[1:r-1:r-1], 0), int64(r-1))
		}
		if last {
			perm[r-2], perm[r-1] = perm[r-1], perm[r-2]
		}
		return c.transpose(x, perm...)
	}
	return one(c.scale(c.matmul(turned(c.arg(0), "A"), turned(c.arg(1), "B")), c.float("alpha", 1)))
}

// fused applies the activation that the optimizer merged into an op.
func (c *call) fused(x *operand, parameter func(k int, def float64) float64) *operand {
	switch name := c.string("activation", ""); name {
	case "":
		return x
	case "Relu":
		return c.emit(op.Relu{}, x)
	case "Sigmoid":
		return c.emit(op.Sigmoid{}, x)
	case "Tanh":
		return c.emit(op.Tanh{}, x)
	case "LeakyRelu":
		return c.emit(op.LeakyRelu{Alpha: parameter(0, 0.01)}, x)
	case "Clip":
		return c.emit(op.Clip{Min: parameter(0, math.Inf(-1)), Max: parameter(1, math.Inf(1))}, x)
	case "HardSigmoid":
		return c.hardSigmoid(x, parameter(0, 0.2), parameter(1, 0.5))
	default:
		c.unsupported("activation=%q", name)
	}
	return nil
}

func lowerFusedGemm(c *call) []*operand {
	alpha, beta := c.float("activation_alpha", math.NaN()), c.float("activation_beta", math.NaN())
	c.ignore("activation_gamma")
	y := lowerGemm(c)[0]
	return one(c.fused(y, func(k int, def float64) float64 {
		if v := []float64{alpha, beta}[k]; !math.IsNaN(v) {
			return v
		}
		return def
	}))
}

// activationParams are those of FusedConv.
func (c *call) activationParams() func(k int, def float64) float64 {
	list := c.floats("activation_params")
	return func(k int, def float64) float64 {
		if k < len(list) {
			return list[k]
		}
		return def
	}
}

func lowerFusedConv(c *call) []*operand {
	c.args(2, 4)
	y := c.channelBias(c.conv(c.arg(0), c.arg(1)), 2)
	if c.has(3) {
		y = c.emit(op.Add{}, y, c.arg(3))
	}
	return one(c.fused(y, c.activationParams()))
}

// lowerNhwcConv has the channels of operand and result last; the kernel is as ever.
func lowerNhwcConv(c *call) []*operand {
	c.args(2, 3)
	x := c.channelsFirst(c.arg(0))
	return one(c.channelsLast(c.channelBias(c.conv(x, c.arg(1)), 2)))
}

func (c *call) channelsFirst(x *operand) *operand {
	r := len(x.typ.Shape)
	if r < 2 {
		c.invalid("%v has no channels", x.typ)
	}
	return c.transpose(x, append([]int64{0, int64(r - 1)}, axesFrom(1, r-1)...)...)
}

func (c *call) channelsLast(x *operand) *operand {
	r := len(x.typ.Shape)
	return c.transpose(x, append(append([]int64{0}, axesFrom(2, r)...), 1)...)
}

func lowerFastGelu(c *call) []*operand {
	c.args(1, 2)
	x := c.arg(0)
	if c.has(1) {
		x = c.emit(op.Add{}, x, c.arg(1))
	}
	return one(c.emit(op.Gelu{Tanh: true}, x))
}

func lowerBiasGelu(c *call) []*operand {
	c.args(2, 2)
	return one(c.emit(op.Gelu{}, c.emit(op.Add{}, c.arg(0), c.arg(1))))
}

func lowerQuickGelu(c *call) []*operand {
	c.args(1, 1)
	x := c.arg(0)
	return one(c.emit(op.Mul{}, x, c.emit(op.Sigmoid{}, c.scale(x, c.float("alpha", 1.702)))))
}

// lowerBiasSplitGelu multiplies the first half of the last axis by the Gelu of the second.
func lowerBiasSplitGelu(c *call) []*operand {
	c.args(2, 2)
	x := c.emit(op.Add{}, c.arg(0), c.arg(1))
	last := int64(len(x.typ.Shape) - 1)
	n := x.typ.Shape[last]
	if n%2 != 0 {
		c.invalid("%v has no halves", x.typ)
	}
	return one(c.emit(op.Mul{}, c.slice(x, last, 0, n/2, 1), c.emit(op.Gelu{}, c.slice(x, last, n/2, n, 1))))
}

func qlinearGlobalAveragePool(c *call, x *operand) *operand {
	last := c.flag("channels_last", false)
	r := len(x.typ.Shape)
	if r < 3 {
		c.invalid("%v has no spatial axis", x.typ)
	}
	axes := axesFrom(2, r)
	if last {
		axes = axesFrom(1, r-1)
	}
	return c.emit(op.ReduceMean{Axes: axes, KeepDims: true}, x)
}

// lowerMatMulIntegerToFloat is a product of integers brought back to floats: A, B, their scales, their zero points, a bias.
func lowerMatMulIntegerToFloat(c *call) []*operand {
	c.args(4, 7)
	return one(c.integerProduct(c.arg(0), c.optional(4), c.arg(2), 1, 3, 5, 6))
}

// integerProduct multiplies a by operand b, whose scale, zero point and bias follow at the given places.
func (c *call) integerProduct(a, zeroA, scaleA *operand, b, scaleB, zeroB, bias int) *operand {
	w := c.arg(b)
	ra, rb := len(a.typ.Shape), len(w.typ.Shape)
	if ra < 2 || rb < 2 {
		c.invalid("operands %v and %v are no matrices", a.typ, w.typ)
	}
	x := c.centred(a, c.along(zeroA, ra-2, ra))
	y := c.matmul(x, c.centred(w, c.along(c.optional(zeroB), rb-1, rb)))
	scale := c.emit(op.Mul{}, c.cast(c.along(scaleA, ra-2, ra), ir.F64), c.cast(c.along(c.arg(scaleB), rb-1, rb), ir.F64))
	z := c.cast(c.emit(op.Mul{}, y, scale), scaleA.typ.DType)
	if c.has(bias) {
		z = c.emit(op.Add{}, z, c.arg(bias))
	}
	return z
}

// lowerDynamicQuantizeMatMul quantizes A by its own extent first. The rounded A is what gradients pass through.
func lowerDynamicQuantizeMatMul(c *call) []*operand {
	c.args(3, 5)
	inner := &call{lowering: c.lowering, n: &onnxpb.NodeProto{Output: []string{"", "", ""}}, i: c.i, in: c.in[:1], read: map[string]bool{}}
	q := lowerDynamicQuantizeLinear(inner)
	return one(c.integerProduct(q[0], q[2], q[1], 1, 2, 3, 4))
}
