package conformance

import (
	"encoding/binary"
	"fmt"
	"math"

	"google.golang.org/protobuf/proto"

	"aitk/importer/onnxpb"
	"aitk/ir"
)

// elements is a tensor as the corpus has it: floats or integers, and the ONNX type they came in.
type elements struct {
	kind  onnxpb.TensorProto_DataType
	shape ir.Shape
	f     []float64
	i     []int64
}

// decode reads a TensorProto. declared is the element type that the graph states: bfloat16 sometimes comes as uint16.
func decode(raw []byte, declared int32) (*elements, error) {
	p := &onnxpb.TensorProto{}
	if err := proto.Unmarshal(raw, p); err != nil {
		return nil, err
	}
	x := &elements{kind: onnxpb.TensorProto_DataType(p.GetDataType()), shape: append(ir.Shape{}, p.Dims...)}
	if x.kind == onnxpb.TensorProto_UINT16 && declared == int32(onnxpb.TensorProto_BFLOAT16) {
		x.kind = onnxpb.TensorProto_BFLOAT16
	}
	n := int(x.shape.Elems())
	bytes, err := plainBytes(p, x.kind, n)
	if err != nil {
		return nil, err
	}
	le := binary.LittleEndian
	if t, ok := wholeTypes()[x.kind]; ok {
		full, err := ir.DecodeTensor(ir.Type{DType: t, Shape: x.shape}, bytes)
		x.f, x.i = full.F, full.I
		return x, err
	}
	for i := range n {
		switch x.kind {
		case onnxpb.TensorProto_FLOAT8E4M3FN, onnxpb.TensorProto_FLOAT8E4M3FNUZ, onnxpb.TensorProto_FLOAT8E5M2, onnxpb.TensorProto_FLOAT8E5M2FNUZ, onnxpb.TensorProto_FLOAT8E8M0:
			x.f = append(x.f, narrow(x.kind).Value(bytes[i]))
		case onnxpb.TensorProto_FLOAT4E2M1:
			x.f = append(x.f, narrow(x.kind).Value(part(bytes, i, 4)))
		case onnxpb.TensorProto_UINT4:
			x.i = append(x.i, int64(part(bytes, i, 4)))
		case onnxpb.TensorProto_INT4:
			x.i = append(x.i, int64(int8(part(bytes, i, 4)<<4)>>4))
		case onnxpb.TensorProto_UINT2:
			x.i = append(x.i, int64(part(bytes, i, 2)))
		case onnxpb.TensorProto_INT2:
			x.i = append(x.i, int64(int8(part(bytes, i, 2)<<6)>>6))
		default:
			return nil, fmt.Errorf("tensors of %v", x.kind)
		}
	}
	_ = le
	return x, nil
}

// wholeTypes are the element types that graphs have too.
func wholeTypes() map[onnxpb.TensorProto_DataType]ir.DType {
	return map[onnxpb.TensorProto_DataType]ir.DType{
		onnxpb.TensorProto_FLOAT: ir.F32, onnxpb.TensorProto_DOUBLE: ir.F64, onnxpb.TensorProto_FLOAT16: ir.F16, onnxpb.TensorProto_BFLOAT16: ir.BF16,
		onnxpb.TensorProto_INT64: ir.I64, onnxpb.TensorProto_INT32: ir.I32, onnxpb.TensorProto_INT16: ir.I16, onnxpb.TensorProto_INT8: ir.I8,
		onnxpb.TensorProto_UINT64: ir.U64, onnxpb.TensorProto_UINT32: ir.U32, onnxpb.TensorProto_UINT16: ir.U16, onnxpb.TensorProto_UINT8: ir.U8,
		onnxpb.TensorProto_BOOL: ir.Bool,
	}
}

func narrow(kind onnxpb.TensorProto_DataType) ir.NarrowFloat {
	for _, f := range ir.NarrowFloats() {
		if kind.String() == upper(f.Name) {
			return f
		}
	}
	panic("no narrow float " + kind.String())
}

func upper(s string) string {
	b := []byte(s)
	for i, c := range b {
		if c >= 'a' && c <= 'z' {
			b[i] = c - 32
		}
	}
	return string(b)
}

// part is element i of a tensor packed several to a byte, the first in the low bits.
func part(bytes []byte, i, bits int) uint8 {
	per := 8 / bits
	return bytes[i/per] >> (i % per * bits) & (1<<bits - 1)
}

// widths of elements in bytes, for the typed fields.
func width(kind onnxpb.TensorProto_DataType) int {
	if t, ok := wholeTypes()[kind]; ok {
		return int(t.Bits() / 8)
	}
	return 1
}

// plainBytes is raw_data, or what it would be.
func plainBytes(p *onnxpb.TensorProto, kind onnxpb.TensorProto_DataType, n int) ([]byte, error) {
	if kind == onnxpb.TensorProto_STRING {
		return nil, fmt.Errorf("tensors of strings")
	}
	if len(p.RawData) > 0 || n == 0 {
		return p.RawData, nil
	}
	var out []byte
	le := binary.LittleEndian
	w := width(kind)
	put := func(x uint64) {
		var b [8]byte
		le.PutUint64(b[:], x)
		out = append(out, b[:w]...)
	}
	for _, x := range p.FloatData {
		put(uint64(math.Float32bits(x)))
	}
	for _, x := range p.DoubleData {
		put(math.Float64bits(x))
	}
	for _, x := range p.Int32Data {
		put(uint64(x))
	}
	for _, x := range p.Int64Data {
		put(uint64(x))
	}
	for _, x := range p.Uint64Data {
		put(x)
	}
	return out, nil
}

// tensor is the content as a tensor of the graph's type, which may be wider than the file's.
func (x *elements) tensor(t ir.Type) (ir.Tensor, error) {
	if !t.Shape.Equal(x.shape) {
		return ir.Tensor{}, fmt.Errorf("the graph has shape %v, the data %v", t.Shape, x.shape)
	}
	out := ir.NewTensor(t)
	if (x.f != nil) != t.DType.IsFloat() && x.shape.Elems() > 0 {
		return out, fmt.Errorf("the graph has %v, the data %v", t, x.kind)
	}
	copy(out.F, x.f)
	copy(out.I, x.i)
	return out, nil
}

// compare tells how got differs from what is wanted; "" if it does not. Types must be equal, or the wider one that stands for a narrow one.
func (x *elements) compare(got ir.Tensor, rtol, atol float64, values bool) string {
	if want, ok := wholeTypes()[x.kind]; ok && want != got.Type.DType {
		return fmt.Sprintf("type %v, want %v", got.Type, want)
	}
	if !x.shape.Equal(got.Type.Shape) {
		return fmt.Sprintf("shape %v, want %v", got.Type.Shape, x.shape)
	}
	if (x.f != nil) != got.Type.DType.IsFloat() && x.shape.Elems() > 0 {
		return fmt.Sprintf("type %v, want %v", got.Type, x.kind)
	}
	if !values {
		return ""
	}
	for i, w := range x.i {
		if g := got.I[i]; g != w {
			if math.Abs(float64(g-w)) > atol+rtol*math.Abs(float64(w)) || x.kind == onnxpb.TensorProto_BOOL || got.Type.DType == ir.Bool {
				return fmt.Sprintf("element %d is %d, want %d", i, g, w)
			}
		}
	}
	for i, w := range x.f {
		g := got.F[i]
		if w == g || w != w && g != g {
			continue
		}
		if !(math.Abs(g-w) <= atol+rtol*math.Abs(w)) {
			return fmt.Sprintf("element %d is %v, want %v", i, g, w)
		}
	}
	return ""
}
