package importer

import (
	"strings"

	"aitk/importer/onnxpb"
	"aitk/ir"
	"aitk/ir/op"
)

// Element types below a byte, and floats of 8 bits, are no element types of a graph. A value of such a type is held in a wider one that has all its
// numbers: i8 or u8 for integers, bf16 for floats; what makes one rounds or wraps (castTo). Which type the file means is remembered (operand.elem)
// because it steers casts and quantization. Frozen weights in these types are another matter: see lower_quant.go.

// narrowType is how many bits a narrow type has in the file and what holds its values; ok is false for other types.
func narrowType(onnx int32) (bits int64, carrier ir.DType, ok bool) {
	switch onnxpb.TensorProto_DataType(onnx) {
	case onnxpb.TensorProto_INT4:
		return 4, ir.I8, true
	case onnxpb.TensorProto_UINT4:
		return 4, ir.U8, true
	case onnxpb.TensorProto_INT2:
		return 2, ir.I8, true
	case onnxpb.TensorProto_UINT2:
		return 2, ir.U8, true
	case onnxpb.TensorProto_FLOAT4E2M1:
		return 4, ir.BF16, true
	case onnxpb.TensorProto_FLOAT8E4M3FN, onnxpb.TensorProto_FLOAT8E4M3FNUZ, onnxpb.TensorProto_FLOAT8E5M2, onnxpb.TensorProto_FLOAT8E5M2FNUZ,
		onnxpb.TensorProto_FLOAT8E8M0:
		return 8, ir.BF16, true
	}
	return 0, ir.Invalid, false
}

// narrowFloat is the format of a narrow float type.
func narrowFloat(onnx int32) (ir.NarrowFloat, bool) {
	f, err := ir.ParseNarrowFloat(strings.ToLower(onnxpb.TensorProto_DataType(onnx).String()))
	return f, err == nil
}

// storedBytes is what a tensor takes in the file.
func storedBytes(onnx int32, t ir.Type) int64 {
	if bits, _, ok := narrowType(onnx); ok {
		return (t.Elems()*bits + 7) / 8
	}
	return t.Bytes()
}

// decode is the content of a tensor of the file.
func (t *tensor) decode(raw []byte) (ir.Tensor, error) {
	bits, _, ok := narrowType(t.elem)
	if !ok {
		return ir.DecodeTensor(t.typ, raw)
	}
	out := ir.NewTensor(t.typ)
	format, isFloat := narrowFloat(t.elem)
	signed := t.typ.DType == ir.I8
	per := 8 / bits
	for i := range t.typ.Elems() {
		code := raw[i/per] >> (i % per * bits) & byte(1<<bits-1)
		switch {
		case isFloat:
			out.F[i] = format.Value(code)
		case signed:
			out.I[i] = int64(int8(code<<(8-bits)) >> (8 - bits))
		default:
			out.I[i] = int64(code)
		}
	}
	return out, nil
}

// castTo converts to any element type of the file, narrow ones included. saturate and mode matter to narrow floats.
func (c *call) castTo(x *operand, onnx int32, saturate bool, mode string) *operand {
	d, err := wantDType(onnx)
	if err != nil {
		c.unsupported("%w", err)
	}
	bits, _, isNarrow := narrowType(onnx)
	if !isNarrow {
		return c.cast(x, d)
	}
	if f, ok := narrowFloat(onnx); ok {
		if x.typ.DType != ir.F64 {
			x = c.cast(x, ir.F32)
		}
		x = c.emit(op.RoundFloat{Format: f.Name, Saturate: saturate, Mode: mode}, x)
	} else {
		x = c.wrap(c.cast(x, ir.I32), bits, d == ir.I8)
	}
	y := *c.cast(x, d)
	y.elem = onnx
	return &y
}

// wrap keeps the low bits of an integer, and makes the highest of them the sign.
func (c *call) wrap(x *operand, bits int64, signed bool) *operand {
	d := x.typ.DType
	x = c.emit(op.Bits{Fn: "and"}, x, scalar(d, float64(int64(1)<<bits-1)))
	if !signed {
		return x
	}
	half := scalar(d, float64(int64(1)<<(bits-1)))
	return c.emit(op.Sub{}, c.emit(op.Bits{Fn: "xor"}, x, half), half)
}

// elemOf is the file's element type of an operand.
func elemOf(x *operand) int32 {
	if x.elem != 0 {
		return x.elem
	}
	for onnx := range onnxpb.TensorProto_DataType_name {
		if d, ok := wholeType(onnx); ok && d == x.typ.DType {
			return onnx
		}
	}
	return 0
}

// keepsElem tells ops whose first result has the element type of the operand at index from.
func keepsElem(opType string) (from int, ok bool) {
	switch opType {
	case "Reshape", "Transpose", "Squeeze", "Unsqueeze", "Flatten", "Slice", "Split", "Concat", "Expand", "Tile", "Pad", "Gather", "Identity",
		"DepthToSpace", "SpaceToDepth", "GatherElements", "GatherND", "ScatterElements", "ScatterND":
		return 0, true
	case "Where":
		return 1, true
	}
	return 0, false
}
