package data

import (
	"encoding/binary"
	"math"

	"aitk/ir"
)

// castable tells whether elements of a file may become elements of an input. Every cast keeps the number.
func castable(from, to ir.DType) bool {
	switch {
	case from == to:
		return from != ir.I4
	case from == ir.U8:
		return to == ir.F32 || to == ir.I64
	}
	return from == ir.I32 && to == ir.I64
}

// cast converts elements; dst and src are little-endian and hold equally many. needs: castable.
func cast(dst []byte, to ir.DType, src []byte, from ir.DType) {
	le := binary.LittleEndian
	switch {
	case from == ir.U8 && to == ir.F32:
		for i, x := range src {
			le.PutUint32(dst[4*i:], math.Float32bits(float32(x)))
		}
	case from == ir.U8 && to == ir.I64:
		for i, x := range src {
			le.PutUint64(dst[8*i:], uint64(x))
		}
	case from == ir.I32 && to == ir.I64:
		for i := 0; i+4 <= len(src); i += 4 {
			le.PutUint64(dst[2*i:], uint64(int64(int32(le.Uint32(src[i:])))))
		}
	default:
		copy(dst, src)
	}
}

// FirstNotFinite is the index of the first element that is NaN or infinite, -1 if there is none: an exponent of all ones says so.
func FirstNotFinite(d ir.DType, raw []byte) int64 {
	le := binary.LittleEndian
	switch d {
	case ir.F64:
		const mask = 0x7ff << 52
		for i := 0; i+8 <= len(raw); i += 8 {
			if le.Uint64(raw[i:])&mask == mask {
				return int64(i / 8)
			}
		}
	case ir.F32:
		const mask = 0xff << 23
		for i := 0; i+4 <= len(raw); i += 4 {
			if le.Uint32(raw[i:])&mask == mask {
				return int64(i / 4)
			}
		}
	case ir.F16, ir.BF16:
		mask := uint16(0x1f << 10)
		if d == ir.BF16 {
			mask = 0xff << 7
		}
		for i := 0; i+2 <= len(raw); i += 2 {
			if le.Uint16(raw[i:])&mask == mask {
				return int64(i / 2)
			}
		}
	}
	return -1
}

// badBool is the index of the first byte that is neither 0 nor 1, -1 if there is none.
func badBool(raw []byte) int64 {
	for i, x := range raw {
		if x > 1 {
			return int64(i)
		}
	}
	return -1
}

// badLabel is the index of the first integer outside [0,classes) that is not to be ignored, -1 if there is none.
func badLabel(d ir.DType, raw []byte, l *Labels) (index, value int64) {
	size := d.Bits() / 8
	for i := int64(0); i < int64(len(raw)); i += size {
		if v := intAt(d, raw[i:]); (v < 0 || v >= l.Classes) && !(l.HasIgnore && v == l.Ignore) {
			return i / size, v
		}
	}
	return -1, 0
}
