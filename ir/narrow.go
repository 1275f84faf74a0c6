package ir

import (
	"fmt"
	"math"
)

// NarrowFloat is a float of 8 bits or less. No tensor of a graph has one as element type: values of such a type are held in bf16, which has them all, and
// rounded where they are made (op.RoundFloat).
type NarrowFloat struct {
	Name     string
	exponent int  // bits
	mantissa int  // bits
	bias     int  // of the exponent
	infinity bool // the largest exponent is infinity and NaN, as in IEEE 754
	allNaN   bool // the pattern of ones is NaN, and so is its negative
	unsigned bool // no sign bit; NaN is the pattern of ones
	negNaN   bool // the pattern of negative zero is NaN, and there is no negative zero
}

// NarrowFloats lists the formats, by the names that ONNX gives them in lower case.
func NarrowFloats() []NarrowFloat {
	return []NarrowFloat{
		{Name: "float8e4m3fn", exponent: 4, mantissa: 3, bias: 7, allNaN: true},
		{Name: "float8e4m3fnuz", exponent: 4, mantissa: 3, bias: 8, negNaN: true},
		{Name: "float8e5m2", exponent: 5, mantissa: 2, bias: 15, infinity: true},
		{Name: "float8e5m2fnuz", exponent: 5, mantissa: 2, bias: 16, negNaN: true},
		{Name: "float8e8m0", exponent: 8, bias: 127, unsigned: true},
		{Name: "float4e2m1", exponent: 2, mantissa: 1, bias: 1},
	}
}

// ParseNarrowFloat finds a format by its name.
func ParseNarrowFloat(name string) (NarrowFloat, error) {
	for _, f := range NarrowFloats() {
		if f.Name == name {
			return f, nil
		}
	}
	return NarrowFloat{}, fmt.Errorf("no narrow float is called %q", name)
}

// Bits is the storage of one element.
func (f NarrowFloat) Bits() int {
	if f.unsigned {
		return f.exponent + f.mantissa
	}
	return 1 + f.exponent + f.mantissa
}

// Value is the number that a bit pattern stands for.
func (f NarrowFloat) Value(pattern uint8) float64 {
	sign, body := 1.0, int(pattern)
	if !f.unsigned {
		top := 1 << (f.exponent + f.mantissa)
		if body&top != 0 {
			sign = -1
		}
		body &= top - 1
	}
	ones := 1<<(f.exponent+f.mantissa) - 1
	exp, man := body>>f.mantissa, body&(1<<f.mantissa-1)
	switch {
	case f.negNaN && sign < 0 && body == 0, (f.allNaN || f.unsigned) && body == ones:
		return math.NaN()
	case f.infinity && exp == 1<<f.exponent-1:
		if man != 0 {
			return math.NaN()
		}
		return math.Inf(int(sign))
	case f.unsigned:
		return math.Ldexp(1, exp-f.bias)
	case exp == 0:
		return math.Copysign(math.Ldexp(float64(man), 1-f.bias-f.mantissa), sign)
	}
	return sign * math.Ldexp(float64(1<<f.mantissa+man), exp-f.bias-f.mantissa)
}

// Max is the largest finite number.
func (f NarrowFloat) Max() float64 {
	top := 1<<(f.exponent+f.mantissa) - 1 // magnitude bits of ones
	switch {
	case f.infinity:
		top = (1<<f.exponent-1)<<f.mantissa - 1
	case f.allNaN, f.unsigned:
		top--
	}
	return f.Value(uint8(top))
}

// Round is the nearest number of the format, halves to even. What is larger than Max becomes Max with saturate, else infinity where the format
// has one, else NaN where it has that, else Max. The unsigned format holds powers of two; mode says which of two neighbours it takes: "up",
// "down" or "nearest"; halves go up.
func (f NarrowFloat) Round(x float64, saturate bool, mode string) float64 {
	if math.IsNaN(x) {
		if f.Bits() < 8 { // 4 bits have no NaN; the corpus of ONNX has negative zero in its place
			return math.Copysign(0, -1)
		}
		return x
	}
	if f.unsigned {
		return f.power(x, saturate, mode)
	}
	a := math.Abs(x)
	if !math.IsInf(a, 0) && a != 0 {
		_, e := math.Frexp(a) // a in [2^(e-1), 2^e)
		step := max(e-1, 1-f.bias) - f.mantissa
		a = math.Ldexp(math.RoundToEven(math.Ldexp(a, -step)), step)
	}
	if a > f.Max() {
		switch {
		case saturate || f.Bits() < 8:
			a = f.Max()
		case f.infinity:
			a = math.Inf(1)
		default:
			return math.NaN()
		}
	}
	if a == 0 && f.negNaN {
		return 0
	}
	return math.Copysign(a, x)
}

// power rounds to a power of two.
func (f NarrowFloat) power(x float64, saturate bool, mode string) float64 {
	least, most := math.Ldexp(1, -f.bias), f.Max()
	a := math.Abs(x)
	if a == 0 {
		return least
	}
	if !math.IsInf(a, 0) {
		frac, e := math.Frexp(a) // frac in [0.5, 1)
		down := math.Ldexp(1, e-1)
		if frac > 0.5 && (mode == "up" || mode == "nearest" && frac >= 0.75) {
			down *= 2
		}
		a = down
	}
	if a > most {
		if !saturate {
			return math.NaN()
		}
		a = most
	}
	return max(a, least)
}
