// Package quant packs floats into 8 and 4 bits and tells what that costs. It is arithmetic on slices: it knows no graph, no file
// and no device, and of package ir only types and the recipe that a parameter carries (ir.Packing). internal/weights packs with it while parameters load, ir/op and the kernels unpack with its tables, passes measure errors
// with it, so there is one rule for each format and it is written here.
//
// All arithmetic is float32, each operation rounded to nearest even, so that an independent program gives the same bits. A group is the
// elements that share a scale, m the largest magnitude in it:
//
//	int8   s = m/127   code = rint(x/s) in [-127,127]                       value = code*s
//	fp8    s = m/448   code = x/s, clamped to ±448, rounded to e4m3fn       value = code*s
//	int4   s = m/7     code = rint(x/s) in [-7,7]                           value = code*s
//	nf4    s = m       code = how many midpoints of the codebook lie below x/s   value = codebook[code]*s
//
// rint rounds halves to even. A group of zeros, or one whose scale rounds to 0, has code 0 (nf4: 7) and value 0. Scales are float32, because
// float16 ends at 6e-5 where weights of a trained model still mean something; double quantization (double.go) stores them in 8 bits.
//
// Format.Bound says how far a value can be from what it was.
package quant

import "fmt"

// Format names a way to store a number in 8 or 4 bits.
type Format string

// The formats. UInt8 and UInt4 are read from models that come quantized; nothing is packed into them.
const (
	Int8  Format = "int8"  // two's complement
	UInt8 Format = "uint8" // 0..255, with a zero point
	FP8   Format = "fp8"   // e4m3fn: 1 sign, 4 exponent bits with bias 7, 3 mantissa bits; no infinities
	Int4  Format = "int4"  // two's complement, two to a byte, low nibble first
	UInt4 Format = "uint4" // 0..15, with a zero point
	NF4   Format = "nf4"   // index into a codebook of 16 quantiles of the normal distribution
)

// Formats lists those that weights can be packed into, the smallest error first.
func Formats() []Format { return []Format{Int8, FP8, NF4, Int4} }

// Bits is the storage of one code; 0 for an unknown format.
func (f Format) Bits() int64 {
	switch f {
	case Int8, UInt8, FP8:
		return 8
	case Int4, UInt4, NF4:
		return 4
	}
	return 0
}

// Blocked tells formats that share a scale among a block from those that share one among a channel.
func (f Format) Blocked() bool { return f == Int4 || f == NF4 }

// Scheme says how a matrix of Rows x Cols is packed. A group is, with Block 0, all elements of one index along Axis: a row (Axis 0) or a
// column (Axis 1); else a block of up to Block elements that follow one another along Axis: in a row (Axis 1) or in a column (Axis 0).
type Scheme struct {
	Format     Format
	Rows, Cols int64
	Axis       int
	Block      int64
	Double     bool // scales are stored in 8 bits, see double.go
}

// Check reports what makes no sense.
func (s *Scheme) Check() error {
	switch {
	case s.Format != Int8 && s.Format != FP8 && s.Format != Int4 && s.Format != NF4:
		return fmt.Errorf("no weights can be packed as %q", string(s.Format))
	case s.Rows < 0 || s.Cols < 0 || s.Axis < 0 || s.Axis > 1 || s.Block < 0:
		return fmt.Errorf("%d rows, %d columns, axis %d, block %d", s.Rows, s.Cols, s.Axis, s.Block)
	case s.Double && s.Block == 0:
		return fmt.Errorf("scales of channels are not packed again")
	}
	return nil
}

// ScaleShape is the shape of the scales: one axis for channels, two for blocks.
func (s *Scheme) ScaleShape() []int64 {
	switch {
	case s.Block > 0 && s.Axis == 1:
		return []int64{s.Rows, ceil(s.Cols, s.Block)}
	case s.Block > 0:
		return []int64{ceil(s.Rows, s.Block), s.Cols}
	case s.Axis == 0:
		return []int64{s.Rows}
	}
	return []int64{s.Cols}
}

// Groups is the number of scales.
func (s *Scheme) Groups() int64 {
	n := int64(1)
	for _, d := range s.ScaleShape() {
		n *= d
	}
	return n
}

// Bytes is the storage of codes and scales together.
func (s *Scheme) Bytes() int64 {
	n := (s.Rows*s.Cols*s.Format.Bits() + 7) / 8
	groups := s.Groups()
	if !s.Double {
		return n + 4*groups
	}
	return n + groups + 4*ceil(groups, DoubleBlock) + 4
}

func ceil(n, d int64) int64 { return (n + d - 1) / d }

// run calls f for stretches of a slab that share a group: x[lo:hi] of n whole rows that begin at row.
func (s *Scheme) run(row, n int64, f func(group, lo, hi int64)) {
	cols := s.Cols
	for r := range n {
		at := r * cols
		switch {
		case s.Block == 0 && s.Axis == 0:
			if cols > 0 {
				f(row+r, at, at+cols)
			}
		case s.Block > 0 && s.Axis == 1:
			g := (row + r) * ceil(cols, s.Block)
			for lo := int64(0); lo < cols; lo += s.Block {
				f(g, at+lo, at+min(lo+s.Block, cols))
				g++
			}
		default: // every element has another group than its neighbour
			g := int64(0)
			if s.Block > 0 {
				g = (row + r) / s.Block * cols
			}
			for c := range cols {
				f(g+c, at+c, at+c+1)
			}
		}
	}
}
