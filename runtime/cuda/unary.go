//go:build cuda && linux

package cuda

import (
	"math"
	"math/bits"

	"aitk/ir"
	"aitk/ir/op"
)

// unaryKernel serves the functions of one element.
func unaryKernel(b *builder) (*kernel, error) {
	f := -1
	switch b.x.Op.(type) {
	case op.Neg:
		f = 0
	case op.Abs:
		f = 1
	case op.Sign:
		f = 2
	case op.Floor:
		f = 3
	case op.Ceil:
		f = 4
	case op.Round:
		f = 5
	case op.Exp:
		f = 6
	case op.Log:
		f = 7
	case op.Sqrt:
		f = 8
	case op.Rsqrt:
		f = 9
	case op.Reciprocal:
		f = 10
	case op.Sin:
		f = 11
	case op.Cos:
		f = 12
	case op.Atan:
		f = 13
	default:
		return roundFloatKernel(b)
	}
	t := b.inType(0)
	module, tail, ok := variant("unary", t.DType)
	if !ok || f > 2 && !t.DType.IsFloat() {
		return nil, b.noKernel(t)
	}
	n := t.Elems()
	return b.k, b.launch(module, "unary", b.dev.blocksFor(n), threads, 0, append([]any{b.out[0], b.in[0], n, f}, tail...)...)
}

// roundFloatKernel serves RoundFloat. The format is taken apart into numbers that the kernel rounds by.
func roundFloatKernel(b *builder) (*kernel, error) {
	o, ok := b.x.Op.(op.RoundFloat)
	if !ok {
		return nil, nil
	}
	t := b.inType(0)
	module, tail, ok := floatVariant("roundfloat", t.DType)
	if !ok {
		return nil, b.noKernel(t)
	}
	n := t.Elems()
	args := []any{b.out[0], b.in[0], n}
	if o.Format == op.Whole {
		args = append(args, 0, 0, 0, 0.0, 0.0, 0.0, 0.0, false)
		return b.k, b.launch(module, "roundfloat", b.dev.blocksFor(n), threads, 0, append(args, tail...)...)
	}
	f, err := ir.ParseNarrowFloat(o.Format)
	if err != nil {
		return nil, err
	}
	return b.k, b.launch(module, "roundfloat", b.dev.blocksFor(n), threads, 0, append(append(args, narrowArgs(o, f)...), tail...)...)
}

// narrowArgs describe a format to the kernel by what it does to a few numbers: which kind it is, bits of mantissa, exponent of the least normal number, the
// largest and the least number, what is too large becomes, what NaN becomes, and whether zero keeps its sign.
func narrowArgs(o op.RoundFloat, f ir.NarrowFloat) []any {
	round := o.Function()
	least := f.Max()
	inside := 0 // numbers in [1, 2): 2 to the power of the mantissa's bits
	negative := false
	for p := range 1 << f.Bits() {
		v := f.Value(uint8(p))
		if v > 0 {
			least = min(least, v)
		}
		if v >= 1 && v < 2 {
			inside++
		}
		negative = negative || v < 0
	}
	mantissa := bits.Len(uint(inside)) - 1
	kind := 1
	if !negative { // powers of two
		kind = map[string]int{"up": 2, "nearest": 3, "down": 4}[o.Mode]
	}
	return []any{kind, mantissa, math.Ilogb(least) + mantissa, f.Max(), least, round(math.MaxFloat64), round(math.NaN()), math.Signbit(round(math.Copysign(0, -1)))}
}
