package op

import (
	"fmt"
	"math"

	"aitk/ir"
)

// RoundFloat rounds every element to the nearest number of a narrow format and keeps the element type: what a cast to that type and back does.
//
// Formats are the floats of 8 bits or less (ir.NarrowFloats), and "whole" for whole numbers, halves to even. With Saturate what is too large
// becomes the largest number, else what the format has for it. Mode ("up", "down", "nearest") matters to the format of powers of two alone. The
// gradient passes straight through, but for elements that are too large.
//
// It is a core op because Round lets no gradient through, and no chain of others rounds to nearest even at a precision that follows the magnitude.
type RoundFloat struct {
	over0
	Format   string
	Saturate bool
	Mode     string
}

// Whole is the format of whole numbers.
const Whole = "whole"

// Function rounds one number. Infer has refused unknown formats.
func (o RoundFloat) Function() func(x float64) float64 {
	if o.Format == Whole {
		return math.RoundToEven
	}
	f, err := ir.ParseNarrowFloat(o.Format)
	if err != nil {
		panic(ir.Bugf("%v", err))
	}
	return func(x float64) float64 { return f.Round(x, o.Saturate, o.Mode) }
}

func (o RoundFloat) Infer(in []ir.Type) ([]ir.Type, error) {
	if _, err := ir.ParseNarrowFloat(o.Format); err != nil && o.Format != Whole {
		return nil, err
	}
	switch o.Mode {
	case "up", "down", "nearest":
	default:
		return nil, fmt.Errorf("mode %q is none of up, down, nearest", o.Mode)
	}
	return inferFloats(in)
}

func (o RoundFloat) Eval(in, out []ir.Tensor) {
	each(in, out, o.Function(), nil)
}

// Cost is about that of a logarithm an element.
func (RoundFloat) Cost(in, out []ir.Type) ir.Work { return perElement(16, in, out) }

// Grad lets the gradient through where the value fits the format.
func (o RoundFloat) Grad(b *ir.Builder, n *ir.Node, dOut []*ir.Value) []*ir.Value {
	if o.Format == Whole {
		return []*ir.Value{dOut[0]}
	}
	f, err := ir.ParseNarrowFloat(o.Format)
	if err != nil {
		panic(ir.Bugf("%v", err))
	}
	most := f.Max()
	return Clip{Min: -most, Max: most}.Grad(b, n, dOut)
}

func (RoundFloat) Samples() []ir.Sample {
	ok := RoundFloat{Format: "float8e4m3fn", Mode: "nearest"}
	list := append(badOperands(ok, ir.T(ir.F32, 2)),
		bad(ok, "operand 0 is i64, want floats", ir.T(ir.I64, 2)),
		bad(RoundFloat{Format: "float7", Mode: "up"}, "no narrow float is called \"float7\"", ir.T(ir.F32, 2)),
		bad(RoundFloat{Format: "float8e5m2"}, "mode \"\" is none of up, down, nearest", ir.T(ir.F32, 2)))
	for _, f := range ir.NarrowFloats() {
		for _, saturate := range []bool{false, true} {
			o := RoundFloat{Format: f.Name, Saturate: saturate, Mode: "up"}
			list = append(list,
				kinked(o, listed(ir.F32, 0, math.Copysign(0, -1), math.NaN(), math.Inf(1), math.Inf(-1), 1.0625, 17, 19, 463, 464, 465, -1e9, 3, 1e-9, 0x1p-9, 0x1.8p-10, 1e30)),
				kinked(o, ramp(ir.F32, 0, -20, 20, 3, 7)), kinked(o, ramp(ir.BF16, 0, -20, 20, 5)), kinked(o, ramp(ir.F16, 0, -20, 20)),
				kinked(o, ramp(ir.F64, 0, -20, 20, 0, 2)))
		}
	}
	// Where differences are 0 on both sides of a step the gradient is 0 too: beyond the largest number.
	list = append(list, good(RoundFloat{Format: "float8e4m3fn", Saturate: true, Mode: "nearest"}, listed(ir.F64, 1000, -2000)))
	list = append(list, kinked(RoundFloat{Format: Whole, Mode: "nearest"}, ramp(ir.F32, 0, -9, 9, 3, 4)), kinked(RoundFloat{Format: Whole, Mode: "nearest"}, special(ir.F16)))
	for _, mode := range []string{"down", "nearest"} {
		list = append(list, kinked(RoundFloat{Format: "float8e8m0", Mode: mode}, ramp(ir.F32, 0, 0.01, 20, 9)))
	}
	return list
}
