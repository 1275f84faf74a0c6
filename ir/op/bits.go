package op

import (
	"fmt"

	"aitk/ir"
)

// Bits is an operation on the bits of two integers of one type, which broadcast: Fn is "and", "or", "xor", "shl" or "shr". Shifts take y as a
// number of places; what leaves the width is lost, and y beyond the width gives 0. "shr" brings in zeros for unsigned types and copies of the
// sign bit for signed ones.
//
// It is a core op because masks and packed codes are made of it, and no other op sees single bits.
type Bits struct {
	over01
	Fn string
}

// NoGradReason says why no gradient flows.
func (Bits) NoGradReason() string { return "integer result" }

func (o Bits) Infer(in []ir.Type) ([]ir.Type, error) {
	out, err := inferArithmetic(in)
	if err != nil {
		return nil, err
	}
	if !in[0].DType.IsInt() {
		return nil, fmt.Errorf("operand 0 is %v, want integers", in[0].DType)
	}
	if o.Function(in[0].DType) == nil {
		return nil, fmt.Errorf("function %q is none of and, or, xor, shl, shr", o.Fn)
	}
	return out, nil
}

// Function is the operation on elements of type d, held as int64; nil for an unknown one. The result still has to be cut to the width.
func (o Bits) Function(d ir.DType) func(x, y int64) int64 {
	width := uint64(d.Bits())
	switch o.Fn {
	case "and":
		return func(x, y int64) int64 { return x & y }
	case "or":
		return func(x, y int64) int64 { return x | y }
	case "xor":
		return func(x, y int64) int64 { return x ^ y }
	case "shl":
		return func(x, y int64) int64 {
			if uint64(y) >= width {
				return 0
			}
			return x << uint64(y)
		}
	case "shr":
		return func(x, y int64) int64 {
			switch {
			case uint64(y) >= width && (d == ir.U64 || x >= 0):
				return 0
			case uint64(y) >= width:
				return -1
			case d == ir.U64:
				return int64(uint64(x) >> uint64(y))
			}
			return x >> uint64(y)
		}
	}
	return nil
}

func (o Bits) Eval(in, out []ir.Tensor) {
	eachBroadcast(in, out, nil, o.Function(in[0].Type.DType))
}

func (Bits) Samples() []ir.Sample {
	ok := Bits{Fn: "and"}
	list := append(badOperands(ok, ir.T(ir.I32, 2), ir.T(ir.I32, 2)),
		bad(ok, "operand 0 is f32, want integers", ir.T(ir.F32, 2), ir.T(ir.F32, 2)),
		bad(ok, "operand 0 is bool, want numbers", ir.T(ir.Bool, 2), ir.T(ir.Bool, 2)),
		bad(Bits{}, "function \"\" is none of", ir.T(ir.I32, 2), ir.T(ir.I32, 2)),
		bad(ok, "want one element type", ir.T(ir.I32, 2), ir.T(ir.I64, 2)),
		bad(ok, "do not broadcast", ir.T(ir.I32, 2), ir.T(ir.I32, 3)))
	for _, fn := range []string{"and", "or", "xor", "shl", "shr"} {
		o := Bits{Fn: fn}
		for _, d := range []ir.DType{ir.I64, ir.I32, ir.I16, ir.I8, ir.U64, ir.U32, ir.U16, ir.U8} {
			list = append(list,
				good(o, ramp(d, 0, -90, 90, 3, 4), ramp(d, 1, 0, 9, 3, 4)),
				good(o, ramp(d, 0, -90, 90, 3, 4), ramp(d, 1, 0, 9, 4)),
				good(o, listed(d, -1, -1, 1, 100, 7), listed(d, 7, 100, 63, 3, 0)))
		}
		for _, s := range broadcastShapes() {
			list = append(list, good(o, ramp(ir.I32, 0, -90, 90, s[0]...), ramp(ir.I32, 1, 0, 9, s[1]...)))
		}
	}
	return list
}
