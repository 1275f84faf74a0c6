package importer

import (
	"math"

	"aitk/importer/onnxpb"
	"aitk/ir"
	"aitk/ir/op"
)

// Quantization of activations. QuantizeLinear gives integers (or narrow floats), which no gradient enters; so the rounded floats are kept beside them
// (operand.real), and a DequantizeLinear that reads the integers takes the floats instead. Between the two stand a rounding through which the gradient
// passes straight and a clip to the type's range through which it passes inside the range: the straight-through rule of quantization-aware training.
// Anything else that reads the integers is frozen.

// quantRange is the range of an integer type that quantizes; ok is false for floats.
func quantRange(onnx int32) (lo, hi float64, ok bool) {
	switch onnxpb.TensorProto_DataType(onnx) {
	case onnxpb.TensorProto_UINT8:
		return 0, 255, true
	case onnxpb.TensorProto_INT8:
		return -128, 127, true
	case onnxpb.TensorProto_UINT16:
		return 0, 65535, true
	case onnxpb.TensorProto_INT16:
		return -32768, 32767, true
	case onnxpb.TensorProto_INT32:
		return math.MinInt32, math.MaxInt32, true
	case onnxpb.TensorProto_UINT4:
		return 0, 15, true
	case onnxpb.TensorProto_INT4:
		return -8, 7, true
	case onnxpb.TensorProto_UINT2:
		return 0, 3, true
	case onnxpb.TensorProto_INT2:
		return -2, 1, true
	}
	return 0, 0, false
}

// grain brings a scale or zero point into a shape that broadcasts over x: one number for all, one for each index along axis, or with block > 0 one for
// each block of neighbours along axis.
func (c *call) grain(v *operand, x ir.Shape, axis, block int64) *operand {
	s := v.typ.Shape
	switch {
	case s.Elems() == 1:
		return c.reshape(v, []int64{}...)
	case block > 0:
		axis = c.axis(axis, len(x))
		if len(s) != len(x) || s[axis] != (x[axis]+block-1)/block {
			c.invalid("%v for blocks of %d along axis %d of %v", v.typ, block, axis, x)
		}
		if s[axis] == 0 || x[axis] > indexElems {
			c.unsupported("blocks of %d along axis %d of %v", block, axis, x)
		}
		index := make([]int64, x[axis])
		for i := range index {
			index[i] = int64(i) / block
		}
		return c.emit(op.Gather{Axis: axis}, v, ints(index))
	case len(s) != 1:
		c.invalid("%v for axis %d of %v", v.typ, axis, x)
	}
	axis = c.axis(axis, len(x))
	line := make([]int64, len(x))
	for a := range line {
		line[a] = 1
	}
	line[axis] = s[0]
	return c.reshape(v, line...)
}

// quantize rounds floats x/scale + zero to a type. zero may be nil. With late rounding the zero point is added first.
func (c *call) quantize(x, zero *operand, onnx int32, saturate, late bool) *operand {
	d := x.typ.DType
	lo, hi, isInt := quantRange(onnx)
	if !isInt {
		y := *c.castTo(x, onnx, saturate, "nearest")
		y.real = c.cast(&y, d)
		return &y
	}
	if zero != nil {
		zero = c.cast(zero, d)
	}
	whole := op.RoundFloat{Format: op.Whole, Mode: "nearest"}
	if late && zero != nil {
		x = c.emit(op.Add{}, x, zero)
	}
	x = c.emit(whole, x)
	if !late && zero != nil {
		x = c.emit(op.Add{}, x, zero)
	}
	x = c.emit(op.Clip{Min: lo, Max: hi}, x)
	to, err := wantDType(onnx)
	if err != nil {
		c.unsupported("%w", err)
	}
	y := *c.cast(x, to)
	y.real = x
	if _, _, narrow := narrowType(onnx); narrow {
		y.elem = onnx
	}
	return &y
}

// computeType is where quantization is computed: float32, or float64 for float64.
func computeType(ds ...ir.DType) ir.DType {
	for _, d := range ds {
		if d == ir.F64 {
			return ir.F64
		}
	}
	return ir.F32
}

func lowerQuantizeLinear(c *call) []*operand {
	c.args(2, 3)
	x, scale := c.arg(0), c.arg(1)
	axis, block := c.int("axis", 1), c.int("block_size", 0)
	saturate := c.flag("saturate", true)
	to := int32(c.int("output_dtype", 0))
	precision := int32(c.int("precision", 0))
	var zero *operand
	if c.has(2) {
		zero = c.grain(c.arg(2), x.typ.Shape, axis, block)
		if e := elemOf(c.arg(2)); to == 0 {
			to = e
		}
	}
	if to == 0 {
		to = int32(onnxpb.TensorProto_UINT8)
	}
	scale = c.grain(scale, x.typ.Shape, axis, block)
	// The quotient is rounded to the type that it is computed in before it is rounded to a whole number.
	d := x.typ.DType
	if !d.IsFloat() {
		d = scale.typ.DType
	}
	if p, ok := wholeType(precision); ok {
		d = p
	}
	q := c.emit(op.Div{}, c.cast(x, d), c.cast(scale, d))
	return one(c.quantize(c.cast(q, computeType(d)), zero, to, saturate, false))
}

// dequantize is (x - zero) * scale in float32, or float64; zero may be nil.
func (c *call) dequantize(x, scale, zero *operand) *operand {
	d := computeType(scale.typ.DType)
	var y *operand
	if x.real != nil {
		y = c.cast(x.real, d)
	} else {
		y = c.cast(x, d)
	}
	if zero != nil && !isZero(zero) {
		y = c.emit(op.Sub{}, y, c.cast(zero, d))
	}
	return c.emit(op.Mul{}, y, c.cast(scale, d))
}

func lowerDequantizeLinear(c *call) []*operand {
	c.args(2, 3)
	x, scale := c.arg(0), c.arg(1)
	axis, block := c.int("axis", 1), c.int("block_size", 0)
	to := scale.typ.DType
	if t := int32(c.int("output_dtype", 0)); t != 0 {
		var err error
		if to, err = wantDType(t); err != nil {
			c.unsupported("%w", err)
		}
	}
	if x.stored != nil {
		return one(c.packedDequantize(x.stored, axis, block, to))
	}
	var zero *operand
	if c.has(2) {
		zero = c.grain(c.arg(2), x.typ.Shape, axis, block)
	}
	return one(c.cast(c.dequantize(x, c.grain(scale, x.typ.Shape, axis, block), zero), to))
}

// lowerDynamicQuantizeLinear finds scale and zero point from the extent of the data, of which 0 is always a part.
func lowerDynamicQuantizeLinear(c *call) []*operand {
	c.args(1, 1)
	x := c.arg(0)
	d := x.typ.DType
	axes := axesFrom(0, len(x.typ.Shape))
	most := c.emit(op.Max{}, c.emit(op.ReduceMax{Axes: axes}, x), scalar(d, 0))
	least := c.emit(op.Min{}, c.emit(op.ReduceMin{Axes: axes}, x), scalar(d, 0))
	width := c.emit(op.Sub{}, most, least)
	flat := c.emit(op.Equal{}, most, least)
	scale := c.emit(op.Div{}, c.emit(op.Where{}, flat, scalar(d, 1), width), scalar(d, 255))
	zero := c.emit(op.Clip{Min: 0, Max: 255}, c.emit(op.Neg{}, c.emit(op.Div{}, least, scale)))
	zero = c.emit(op.RoundFloat{Format: op.Whole, Mode: "nearest"}, zero)
	y := c.quantize(c.emit(op.Div{}, x, scale), zero, int32(onnxpb.TensorProto_UINT8), true, false)
	return []*operand{y, scale, c.cast(zero, ir.U8)}
}
