package ir

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// DType is the element type of a tensor.
type DType uint8

// The element types. I4 is packed two to a byte, low nibble first, and appears only as storage of frozen weights. U64 is held as the int64 with
// the same bits wherever integers are held as int64.
const (
	Invalid DType = iota
	F64
	F32
	F16
	BF16
	I64
	I32
	I8
	U8
	Bool
	I4
	I16
	U16
	U32
	U64
	numDTypes
)

var dtypeNames = [numDTypes]string{"invalid", "f64", "f32", "f16", "bf16", "i64", "i32", "i8", "u8", "bool", "i4", "i16", "u16", "u32", "u64"}
var dtypeBits = [numDTypes]int64{0, 64, 32, 16, 16, 64, 32, 8, 8, 8, 4, 16, 16, 32, 64}

func (d DType) String() string {
	if d < numDTypes {
		return dtypeNames[d]
	}
	return "dtype(" + strconv.Itoa(int(d)) + ")"
}

// ParseDType is the inverse of String; ok is false for an unknown name.
func ParseDType(s string) (d DType, ok bool) {
	for i := F64; i < numDTypes; i++ {
		if dtypeNames[i] == s {
			return i, true
		}
	}
	return Invalid, false
}

// Bits is the storage size of one element.
func (d DType) Bits() int64 {
	if d < numDTypes {
		return dtypeBits[d]
	}
	return 0
}

// IsFloat tells whether gradients can flow through values of this type.
func (d DType) IsFloat() bool { return d == F64 || d == F32 || d == F16 || d == BF16 }

// IsInt tells whether d is an integer type; Bool is none.
func (d DType) IsInt() bool {
	switch d {
	case I64, I32, I16, I8, U64, U32, U16, U8, I4:
		return true
	}
	return false
}

// IntRange is the least and the largest number of an integer type that an int64 holds as a number: for U64 the lower half only, since the
// upper one is held by its bits. It is 0, 1 for Bool and 0, 0 for floats.
func (d DType) IntRange() (lo, hi int64) {
	switch d {
	case Bool:
		return 0, 1
	case U64:
		return 0, math.MaxInt64
	case U32, U16, U8:
		return 0, 1<<d.Bits() - 1
	case I64, I32, I16, I8, I4:
		return -1 << (d.Bits() - 1), 1<<(d.Bits()-1) - 1
	}
	return 0, 0
}

// Shape holds the extent of each axis, outermost first. A scalar has no axes. Zero extents are legal.
type Shape []int64

// Elems is the number of elements. It panics with *Bug on overflow: shapes are checked where they enter (Shape.Check).
func (s Shape) Elems() int64 {
	n, ok := s.elems()
	if !ok {
		panic(Bugf("shape %v overflows", []int64(s)))
	}
	return n
}

func (s Shape) elems() (int64, bool) {
	n := int64(1)
	zero := false
	for _, d := range s {
		switch {
		case d < 0:
			return 0, false
		case d == 0:
			zero = true
		case n > math.MaxInt64/64/d: // 64: room for the bits of the widest type
			return 0, false
		default:
			n *= d
		}
	}
	if zero {
		return 0, true
	}
	return n, true
}

// Check reports a negative extent or a size that does not fit int64 bits.
func (s Shape) Check() error {
	if _, ok := s.elems(); !ok {
		return fmt.Errorf("shape %v is negative or too large", []int64(s))
	}
	return nil
}

// Equal tells whether two shapes have the same extents.
func (s Shape) Equal(t Shape) bool {
	if len(s) != len(t) {
		return false
	}
	for i := range s {
		if s[i] != t[i] {
			return false
		}
	}
	return true
}

// Clone returns a copy that shares nothing.
func (s Shape) Clone() Shape { return append(Shape{}, s...) }

func (s Shape) String() string {
	var b strings.Builder
	b.WriteByte('[')
	for i, d := range s {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(strconv.FormatInt(d, 10))
	}
	b.WriteByte(']')
	return b.String()
}

// Broadcast is numpy's rule: shapes are aligned at the right, an extent of 1 stretches.
func Broadcast(a, b Shape) (Shape, error) {
	n := max(len(a), len(b))
	out := make(Shape, n)
	for i := range n {
		da, db := int64(1), int64(1)
		if k := i - (n - len(a)); k >= 0 {
			da = a[k]
		}
		if k := i - (n - len(b)); k >= 0 {
			db = b[k]
		}
		switch {
		case da == db, db == 1:
			out[i] = da
		case da == 1:
			out[i] = db
		default:
			return nil, fmt.Errorf("shapes %v and %v do not broadcast: axis %d has %d and %d", a, b, i, da, db)
		}
	}
	return out, out.Check()
}

// Space is a kind of memory with an arena of its own.
type Space uint8

// The spaces. Loops must not assume that these are all that a plan uses, nor that it uses all.
const (
	Device Space = iota
	Pinned
	Pageable
	Disk
	NumSpaces
)

var spaceNames = [NumSpaces]string{"device", "pinned", "pageable", "disk"}

func (s Space) String() string {
	if s < NumSpaces {
		return spaceNames[s]
	}
	return "space(" + strconv.Itoa(int(s)) + ")"
}

// ParseSpace is the inverse of String.
func ParseSpace(s string) (Space, bool) {
	for i, n := range spaceNames {
		if n == s {
			return Space(i), true
		}
	}
	return 0, false
}

// Type is what is known of a value before it is computed.
type Type struct {
	DType DType
	Shape Shape
	Space Space // Device for everything that is computed; SwapOut yields another
}

// T builds a device type.
func T(d DType, shape ...int64) Type { return Type{DType: d, Shape: shape} }

// Elems is the number of elements.
func (t Type) Elems() int64 { return t.Shape.Elems() }

// Bytes is the storage size; a packed I4 tensor is rounded up to a whole byte.
func (t Type) Bytes() int64 { return (t.Shape.Elems()*t.DType.Bits() + 7) / 8 }

// Equal compares element type, shape and space.
func (t Type) Equal(u Type) bool {
	return t.DType == u.DType && t.Space == u.Space && t.Shape.Equal(u.Shape)
}

// String is the text form: f32[32,128], with the space in front where it is not the device.
func (t Type) String() string {
	s := t.DType.String() + t.Shape.String()
	if t.Space != Device {
		s = t.Space.String() + " " + s
	}
	return s
}
