package importer

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"aitk/importer/onnxpb"
	"aitk/ir"
)

// tensor is a constant of the file: an initializer or the value of a Constant node.
type tensor struct {
	name string
	typ  ir.Type
	elem int32   // ONNX type, where typ only holds its values (narrow.go); 0 else
	init ir.Init // InitFile, InitLiteral or InitAbsent; the bytes of a narrow type as the file packs them
}

// dtypeOf maps an ONNX element type to ours, a narrow one to what holds its values; ok is false for those that the graph has not.
func dtypeOf(onnx int32) (d ir.DType, ok bool) {
	if d, ok := wholeType(onnx); ok {
		return d, true
	}
	_, d, ok = narrowType(onnx)
	return d, ok
}

// wholeType is dtypeOf for the types that the graph has.
func wholeType(onnx int32) (d ir.DType, ok bool) {
	switch onnxpb.TensorProto_DataType(onnx) {
	case onnxpb.TensorProto_FLOAT:
		return ir.F32, true
	case onnxpb.TensorProto_DOUBLE:
		return ir.F64, true
	case onnxpb.TensorProto_FLOAT16:
		return ir.F16, true
	case onnxpb.TensorProto_BFLOAT16:
		return ir.BF16, true
	case onnxpb.TensorProto_INT64:
		return ir.I64, true
	case onnxpb.TensorProto_INT32:
		return ir.I32, true
	case onnxpb.TensorProto_INT16:
		return ir.I16, true
	case onnxpb.TensorProto_UINT64:
		return ir.U64, true
	case onnxpb.TensorProto_UINT32:
		return ir.U32, true
	case onnxpb.TensorProto_UINT16:
		return ir.U16, true
	case onnxpb.TensorProto_INT8:
		return ir.I8, true
	case onnxpb.TensorProto_UINT8:
		return ir.U8, true
	case onnxpb.TensorProto_BOOL:
		return ir.Bool, true
	}
	return ir.Invalid, false
}

// wantDType is dtypeOf with a reason.
func wantDType(onnx int32) (ir.DType, error) {
	d, ok := dtypeOf(onnx)
	if !ok {
		name, known := onnxpb.TensorProto_DataType_name[onnx]
		if !known {
			name = strconv.Itoa(int(onnx))
		}
		return d, &ir.Error{Kind: ir.Unsupported, Cause: fmt.Errorf("element type %s is not supported", strings.ToLower(name))}
	}
	return d, nil
}

// tensor works out type and place of a constant. Nothing is allocated for a declared shape before the bytes are known to be there.
func (f *file) tensor(p *onnxpb.TensorProto) (*tensor, error) {
	t := &tensor{name: p.GetName()}
	d, err := wantDType(p.GetDataType())
	if err != nil {
		return nil, err
	}
	if _, _, narrow := narrowType(p.GetDataType()); narrow {
		t.elem = p.GetDataType()
	}
	t.typ = ir.Type{DType: d, Shape: append(ir.Shape{}, p.Dims...)}
	if err := t.typ.Shape.Check(); err != nil {
		return nil, err
	}
	if p.Segment != nil {
		return nil, errors.New("tensors in segments are not supported")
	}
	if p.GetDataLocation() == onnxpb.TensorProto_EXTERNAL {
		t.init, err = f.external(p.ExternalData, storedBytes(t.elem, t.typ))
		return t, err
	}
	if p.RawOffset != nil {
		if want := storedBytes(t.elem, t.typ); p.GetRawBytes() != want {
			return nil, fmt.Errorf("%v needs %d bytes of data, the file has %d", t.typ, want, p.GetRawBytes())
		}
		if f.f == nil { // in memory
			t.init = ir.Init{Kind: ir.InitLiteral, Literal: f.raw[p.GetRawOffset():][:p.GetRawBytes()]}
			return t, nil
		}
		t.init = ir.Init{Kind: ir.InitFile, File: ir.Location{Path: f.path, Offset: p.GetRawOffset(), Bytes: p.GetRawBytes()}}
		return t, nil
	}
	t.init.Kind = ir.InitLiteral
	if t.elem != 0 { // a byte of packed elements in each entry
		t.init.Literal, err = typedData(p, ir.T(ir.U8, storedBytes(t.elem, t.typ)))
		return t, err
	}
	t.init.Literal, err = typedData(p, t.typ)
	return t, err
}

// typedData encodes the elements of one of the typed fields as little-endian bytes.
func typedData(p *onnxpb.TensorProto, t ir.Type) ([]byte, error) {
	var n int
	var put func(raw []byte, i int)
	le := binary.LittleEndian
	switch t.DType {
	case ir.F32:
		n, put = len(p.FloatData), func(raw []byte, i int) { le.PutUint32(raw[4*i:], math.Float32bits(p.FloatData[i])) }
	case ir.F64:
		n, put = len(p.DoubleData), func(raw []byte, i int) { le.PutUint64(raw[8*i:], math.Float64bits(p.DoubleData[i])) }
	case ir.I64:
		n, put = len(p.Int64Data), func(raw []byte, i int) { le.PutUint64(raw[8*i:], uint64(p.Int64Data[i])) }
	case ir.U64:
		n, put = len(p.Uint64Data), func(raw []byte, i int) { le.PutUint64(raw[8*i:], p.Uint64Data[i]) }
	case ir.U32:
		n, put = len(p.Uint64Data), func(raw []byte, i int) { le.PutUint32(raw[4*i:], uint32(p.Uint64Data[i])) }
	case ir.I32:
		n, put = len(p.Int32Data), func(raw []byte, i int) { le.PutUint32(raw[4*i:], uint32(p.Int32Data[i])) }
	case ir.F16, ir.BF16, ir.I16, ir.U16:
		n, put = len(p.Int32Data), func(raw []byte, i int) { le.PutUint16(raw[2*i:], uint16(p.Int32Data[i])) }
	case ir.I8, ir.U8:
		n, put = len(p.Int32Data), func(raw []byte, i int) { raw[i] = byte(p.Int32Data[i]) }
	case ir.Bool:
		n, put = len(p.Int32Data), func(raw []byte, i int) {
			if p.Int32Data[i] != 0 {
				raw[i] = 1
			}
		}
	}
	if int64(n) != t.Elems() {
		return nil, fmt.Errorf("%v needs %d elements of data, the file has %d", t, t.Elems(), n)
	}
	raw := make([]byte, t.Bytes())
	for i := range n {
		put(raw, i)
	}
	return raw, nil
}

// parseInt reads a decimal number of the file's text entries.
func parseInt(s string) (int64, error) {
	n, err := strconv.ParseInt(strings.TrimSpace(s), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%q is no number", s)
	}
	return n, nil
}
