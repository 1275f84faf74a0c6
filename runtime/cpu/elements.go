package cpu

import (
	"math"

	"aitk/ir"
	"aitk/runtime"
)

// floats is a tensor of any float dtype that kernels read and write as float64, a stretch at a time (load, store) or singly (at, set).
// The switch on the dtype is paid once a stretch.
type floats struct {
	d   ir.DType
	f64 []float64
	f32 []float32
	h   []uint16 // f16 and bf16
}

// newFloats views a slice as floats. ok is false where d is no float dtype.
func newFloats(d ir.DType, s runtime.Slice) (v floats, ok bool) {
	v.d = d
	switch d {
	case ir.F64:
		v.f64 = view[float64](s)
	case ir.F32:
		v.f32 = view[float32](s)
	case ir.F16, ir.BF16:
		v.h = view[uint16](s)
	default:
		return v, false
	}
	return v, true
}

// floatIn and floatOut view an operand as floats, or answer with noKernel.
func (b *builder) floatIn(i int) (floats, error) {
	v, ok := newFloats(b.inType(i).DType, b.in[i])
	if !ok {
		return v, b.noKernel(b.inType(i))
	}
	return v, nil
}

func (b *builder) floatOut(i int) (floats, error) {
	v, ok := newFloats(b.outType(i).DType, b.out[i])
	if !ok {
		return v, b.noKernel(b.outType(i))
	}
	return v, nil
}

// load widens len(dst) elements from index i on.
func (v *floats) load(dst []float64, i int) {
	switch v.d {
	case ir.F64:
		copy(dst, v.f64[i:i+len(dst)])
	case ir.F32:
		src := v.f32[i : i+len(dst)]
		for k, x := range src {
			dst[k] = float64(x)
		}
	case ir.F16:
		src := v.h[i : i+len(dst)]
		for k, x := range src {
			dst[k] = float64(ir.F16ToF32(x))
		}
	case ir.BF16:
		src := v.h[i : i+len(dst)]
		for k, x := range src {
			dst[k] = float64(ir.BF16ToF32(x))
		}
	}
}

// store rounds len(src) elements to the dtype and writes them from index i on.
func (v *floats) store(i int, src []float64) {
	switch v.d {
	case ir.F64:
		copy(v.f64[i:i+len(src)], src)
	case ir.F32:
		dst := v.f32[i : i+len(src)]
		for k, x := range src {
			dst[k] = float32(x)
		}
	case ir.F16:
		dst := v.h[i : i+len(src)]
		for k, x := range src {
			dst[k] = ir.F32ToF16(float32(x))
		}
	case ir.BF16:
		dst := v.h[i : i+len(src)]
		for k, x := range src {
			dst[k] = ir.F32ToBF16(float32(x))
		}
	}
}

// at reads one element; use load where there is more than one to read.
func (v *floats) at(i int) float64 {
	switch v.d {
	case ir.F64:
		return v.f64[i]
	case ir.F32:
		return float64(v.f32[i])
	case ir.F16:
		return float64(ir.F16ToF32(v.h[i]))
	case ir.BF16:
		return float64(ir.BF16ToF32(v.h[i]))
	}
	return math.NaN()
}

// set rounds and writes one element.
func (v *floats) set(i int, x float64) {
	switch v.d {
	case ir.F64:
		v.f64[i] = x
	case ir.F32:
		v.f32[i] = float32(x)
	case ir.F16:
		v.h[i] = ir.F32ToF16(float32(x))
	case ir.BF16:
		v.h[i] = ir.F32ToBF16(float32(x))
	}
}

// ints is a tensor of any integer dtype (bool too, packed i4 not) that kernels read and write as int64; stores wrap to the width.
type ints struct {
	d   ir.DType
	i64 []int64 // and u64, by its bits
	i32 []int32
	i16 []int16
	i8  []int8
	u32 []uint32
	u16 []uint16
	u8  []uint8 // u8 and bool
}

// newInts views a slice as integers. ok is false where d is no integer dtype of whole bytes.
func newInts(d ir.DType, s runtime.Slice) (v ints, ok bool) {
	v.d = d
	switch d {
	case ir.I64, ir.U64:
		v.i64 = view[int64](s)
	case ir.I32:
		v.i32 = view[int32](s)
	case ir.I16:
		v.i16 = view[int16](s)
	case ir.I8:
		v.i8 = view[int8](s)
	case ir.U32:
		v.u32 = view[uint32](s)
	case ir.U16:
		v.u16 = view[uint16](s)
	case ir.U8, ir.Bool:
		v.u8 = view[uint8](s)
	default:
		return v, false
	}
	return v, true
}

// intIn and intOut view an operand as integers, or answer with noKernel.
func (b *builder) intIn(i int) (ints, error) {
	v, ok := newInts(b.inType(i).DType, b.in[i])
	if !ok {
		return v, b.noKernel(b.inType(i))
	}
	return v, nil
}

func (b *builder) intOut(i int) (ints, error) {
	v, ok := newInts(b.outType(i).DType, b.out[i])
	if !ok {
		return v, b.noKernel(b.outType(i))
	}
	return v, nil
}

// load widens len(dst) elements from index i on.
func (v *ints) load(dst []int64, i int) {
	switch v.d {
	case ir.I64, ir.U64:
		copy(dst, v.i64[i:i+len(dst)])
	case ir.I32:
		for k, x := range v.i32[i : i+len(dst)] {
			dst[k] = int64(x)
		}
	case ir.I16:
		for k, x := range v.i16[i : i+len(dst)] {
			dst[k] = int64(x)
		}
	case ir.U32:
		for k, x := range v.u32[i : i+len(dst)] {
			dst[k] = int64(x)
		}
	case ir.U16:
		for k, x := range v.u16[i : i+len(dst)] {
			dst[k] = int64(x)
		}
	case ir.I8:
		for k, x := range v.i8[i : i+len(dst)] {
			dst[k] = int64(x)
		}
	case ir.U8, ir.Bool:
		for k, x := range v.u8[i : i+len(dst)] {
			dst[k] = int64(x)
		}
	}
}

// store wraps len(src) elements to the dtype and writes them from index i on; anything but 0 is a true bool.
func (v *ints) store(i int, src []int64) {
	switch v.d {
	case ir.I64, ir.U64:
		copy(v.i64[i:i+len(src)], src)
	case ir.I32:
		dst := v.i32[i : i+len(src)]
		for k, x := range src {
			dst[k] = int32(x)
		}
	case ir.I16:
		dst := v.i16[i : i+len(src)]
		for k, x := range src {
			dst[k] = int16(x)
		}
	case ir.U32:
		dst := v.u32[i : i+len(src)]
		for k, x := range src {
			dst[k] = uint32(x)
		}
	case ir.U16:
		dst := v.u16[i : i+len(src)]
		for k, x := range src {
			dst[k] = uint16(x)
		}
	case ir.I8:
		dst := v.i8[i : i+len(src)]
		for k, x := range src {
			dst[k] = int8(x)
		}
	case ir.U8:
		dst := v.u8[i : i+len(src)]
		for k, x := range src {
			dst[k] = uint8(x)
		}
	case ir.Bool:
		dst := v.u8[i : i+len(src)]
		for k, x := range src {
			dst[k] = boolByte(x != 0)
		}
	}
}

// at reads one element.
func (v *ints) at(i int) int64 {
	switch v.d {
	case ir.I64, ir.U64:
		return v.i64[i]
	case ir.I32:
		return int64(v.i32[i])
	case ir.I16:
		return int64(v.i16[i])
	case ir.U32:
		return int64(v.u32[i])
	case ir.U16:
		return int64(v.u16[i])
	case ir.I8:
		return int64(v.i8[i])
	}
	return int64(v.u8[i])
}

// set wraps and writes one element.
func (v *ints) set(i int, x int64) {
	switch v.d {
	case ir.I64, ir.U64:
		v.i64[i] = x
	case ir.I32:
		v.i32[i] = int32(x)
	case ir.I16:
		v.i16[i] = int16(x)
	case ir.U32:
		v.u32[i] = uint32(x)
	case ir.U16:
		v.u16[i] = uint16(x)
	case ir.I8:
		v.i8[i] = int8(x)
	case ir.Bool:
		v.u8[i] = boolByte(x != 0)
	default:
		v.u8[i] = uint8(x)
	}
}

func boolByte(b bool) uint8 {
	if b {
		return 1
	}
	return 0
}
