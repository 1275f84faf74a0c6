package ir

import (
	"encoding/binary"
	"fmt"
	"math"
)

// Tensor is the content of a value for reference evaluation: floats of every width as float64 in F, integers and bools as int64 in I,
// row-major. Exactly one of the two is used.
type Tensor struct {
	Type Type
	F    []float64
	I    []int64
}

// NewTensor allocates zeros.
func NewTensor(t Type) Tensor {
	if t.DType.IsFloat() {
		return Tensor{Type: t, F: make([]float64, t.Elems())}
	}
	return Tensor{Type: t, I: make([]int64, t.Elems())}
}

// Filled is a tensor whose elements are all x, rounded to the element type.
func Filled(t Type, x float64) Tensor {
	v := NewTensor(t)
	for i := range v.F {
		v.F[i] = x
	}
	for i := range v.I {
		v.I[i] = int64(x)
	}
	v.Round()
	return v
}

// Round rounds floats to what the element type can hold, integers wrap to its width.
func (t Tensor) Round() {
	switch t.Type.DType {
	case F32:
		for i, x := range t.F {
			t.F[i] = float64(float32(x))
		}
	case F16:
		for i, x := range t.F {
			t.F[i] = float64(F16ToF32(F32ToF16(float32(x))))
		}
	case BF16:
		for i, x := range t.F {
			t.F[i] = float64(BF16ToF32(F32ToBF16(float32(x))))
		}
	case I32:
		for i, x := range t.I {
			t.I[i] = int64(int32(x))
		}
	case I8:
		for i, x := range t.I {
			t.I[i] = int64(int8(x))
		}
	case U8:
		for i, x := range t.I {
			t.I[i] = int64(uint8(x))
		}
	case I4:
		for i, x := range t.I {
			t.I[i] = int64(int8(x<<4)) >> 4
		}
	case I16:
		for i, x := range t.I {
			t.I[i] = int64(int16(x))
		}
	case U16:
		for i, x := range t.I {
			t.I[i] = int64(uint16(x))
		}
	case U32:
		for i, x := range t.I {
			t.I[i] = int64(uint32(x))
		}
	case Bool:
		for i, x := range t.I {
			if x != 0 {
				t.I[i] = 1
			}
		}
	}
}

// DecodeTensor reads little-endian elements. raw must have exactly t.Bytes() bytes.
func DecodeTensor(t Type, raw []byte) (Tensor, error) {
	if int64(len(raw)) != t.Bytes() {
		return Tensor{}, fmt.Errorf("%v needs %d bytes, got %d", t, t.Bytes(), len(raw))
	}
	x := NewTensor(t)
	le := binary.LittleEndian
	switch t.DType {
	case F64:
		for i := range x.F {
			x.F[i] = math.Float64frombits(le.Uint64(raw[8*i:]))
		}
	case F32:
		for i := range x.F {
			x.F[i] = float64(math.Float32frombits(le.Uint32(raw[4*i:])))
		}
	case F16:
		for i := range x.F {
			x.F[i] = float64(F16ToF32(le.Uint16(raw[2*i:])))
		}
	case BF16:
		for i := range x.F {
			x.F[i] = float64(BF16ToF32(le.Uint16(raw[2*i:])))
		}
	case I64, U64:
		for i := range x.I {
			x.I[i] = int64(le.Uint64(raw[8*i:]))
		}
	case I32:
		for i := range x.I {
			x.I[i] = int64(int32(le.Uint32(raw[4*i:])))
		}
	case I8:
		for i := range x.I {
			x.I[i] = int64(int8(raw[i]))
		}
	case U8:
		for i := range x.I {
			x.I[i] = int64(raw[i])
		}
	case Bool:
		for i := range x.I {
			if raw[i] != 0 {
				x.I[i] = 1
			}
		}
	case I4:
		for i := range x.I {
			b := raw[i/2] >> (4 * (i % 2))
			x.I[i] = int64(int8(b<<4)) >> 4
		}
	case I16:
		for i := range x.I {
			x.I[i] = int64(int16(le.Uint16(raw[2*i:])))
		}
	case U16:
		for i := range x.I {
			x.I[i] = int64(le.Uint16(raw[2*i:]))
		}
	case U32:
		for i := range x.I {
			x.I[i] = int64(le.Uint32(raw[4*i:]))
		}
	default:
		return Tensor{}, fmt.Errorf("cannot decode %v", t)
	}
	return x, nil
}

// Encode writes little-endian elements, rounding to the element type.
func (t Tensor) Encode() []byte {
	raw := make([]byte, t.Type.Bytes())
	le := binary.LittleEndian
	switch t.Type.DType {
	case F64:
		for i, x := range t.F {
			le.PutUint64(raw[8*i:], math.Float64bits(x))
		}
	case F32:
		for i, x := range t.F {
			le.PutUint32(raw[4*i:], math.Float32bits(float32(x)))
		}
	case F16:
		for i, x := range t.F {
			le.PutUint16(raw[2*i:], F32ToF16(float32(x)))
		}
	case BF16:
		for i, x := range t.F {
			le.PutUint16(raw[2*i:], F32ToBF16(float32(x)))
		}
	case I64, U64:
		for i, x := range t.I {
			le.PutUint64(raw[8*i:], uint64(x))
		}
	case I32, U32:
		for i, x := range t.I {
			le.PutUint32(raw[4*i:], uint32(x))
		}
	case I16, U16:
		for i, x := range t.I {
			le.PutUint16(raw[2*i:], uint16(x))
		}
	case I8, U8:
		for i, x := range t.I {
			raw[i] = byte(x)
		}
	case Bool:
		for i, x := range t.I {
			if x != 0 {
				raw[i] = 1
			}
		}
	case I4:
		for i, x := range t.I {
			raw[i/2] |= byte(x&15) << (4 * (i % 2))
		}
	default:
		panic(Bugf("cannot encode %v", t.Type))
	}
	return raw
}

// BF16ToF32 widens a bfloat16.
func BF16ToF32(h uint16) float32 { return math.Float32frombits(uint32(h) << 16) }

// F32ToBF16 rounds to nearest even; NaN stays a quiet NaN.
func F32ToBF16(f float32) uint16 {
	u := math.Float32bits(f)
	if u&0x7fffffff > 0x7f800000 {
		return uint16(u>>16) | 0x40
	}
	return uint16((u + 0x7fff + u>>16&1) >> 16)
}

// F16ToF32 widens an IEEE binary16.
func F16ToF32(h uint16) float32 {
	sign := uint32(h>>15) << 31
	exp, man := uint32(h>>10&0x1f), uint32(h&0x3ff)
	switch {
	case exp == 0x1f:
		return math.Float32frombits(sign | 0x7f800000 | man<<13)
	case exp == 0:
		f := float32(man) * (1.0 / (1 << 24))
		return math.Float32frombits(sign | math.Float32bits(f))
	}
	return math.Float32frombits(sign | (exp+112)<<23 | man<<13)
}

// F32ToF16 rounds to nearest even, overflowing to infinity.
func F32ToF16(f float32) uint16 {
	u := math.Float32bits(f)
	sign := uint16(u >> 16 & 0x8000)
	u &= 0x7fffffff
	switch {
	case u > 0x7f800000:
		return sign | 0x7e00 | uint16(u>>13&0x3ff)
	case u >= 0x477ff000: // rounds past 65504
		return sign | 0x7c00
	case u < 0x38800000: // subnormal: the float unit rounds when 0.5 is added
		g := math.Float32frombits(u) + 0.5
		return sign | uint16(math.Float32bits(g)-0x3f000000)
	}
	return sign | uint16((u-0x38000000+0xfff+u>>13&1)>>13)
}
