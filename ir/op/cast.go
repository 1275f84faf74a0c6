package op

import (
	"fmt"
	"math"

	"aitk/ir"
)

// Cast converts to element type To. Floats are rounded to nearest even; float to integer cuts the fraction, saturates at the bounds of
// the type and makes NaN 0; integers wrap; all but 0 is true, NaN too; true is 1. The gradient is a Cast back where both sides are
// floats, and stops elsewhere.
type Cast struct {
	over0
	mover
	To ir.DType
}

func (o Cast) Infer(in []ir.Type) ([]ir.Type, error) {
	if err := operands(in, 1); err != nil {
		return nil, err
	}
	if !isNumber(o.To) && o.To != ir.Bool || o.To == ir.I4 {
		return nil, fmt.Errorf("cannot cast to %v", o.To)
	}
	return one(o.To, in[0].Shape), nil
}

func (o Cast) Eval(in, out []ir.Tensor) {
	x, y := in[0], out[0]
	for i, v := range x.F {
		switch {
		case o.To.IsFloat():
			y.F[i] = v
		case o.To == ir.Bool:
			y.I[i] = truth(v != 0)
		default:
			y.I[i] = clampInt(o.To, v)
		}
	}
	for i, v := range x.I {
		switch {
		case o.To.IsFloat():
			y.F[i] = floatOf(x.Type.DType, v)
		case o.To == ir.Bool:
			y.I[i] = truth(v != 0)
		default:
			y.I[i] = v // Tensor.Round wraps
		}
	}
}

// floatOf is an integer as a float: u64 is held by its bits.
func floatOf(d ir.DType, x int64) float64 {
	if d == ir.U64 {
		return float64(uint64(x))
	}
	return float64(x)
}

// clampInt cuts the fraction of x and saturates it to integer type d; NaN is 0.
func clampInt(d ir.DType, x float64) int64 {
	if d == ir.U64 {
		switch {
		case !(x > 0): // NaN too
			return 0
		case x >= 1<<64:
			return -1
		}
		return int64(uint64(x))
	}
	lo, hi := d.IntRange()
	switch {
	case math.IsNaN(x):
		return 0
	case x <= float64(lo):
		return lo
	case x >= float64(hi): // 2^63 for i64, so that the conversion below is defined
		return hi
	}
	return int64(x)
}

// truth is a bool as an element.
func truth(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

func (o Cast) Grad(b *ir.Builder, n *ir.Node, dOut []*ir.Value) []*ir.Value {
	from := n.In[0].Type.DType
	if !from.IsFloat() || !o.To.IsFloat() {
		return none(1)
	}
	if from == o.To {
		return []*ir.Value{dOut[0]}
	}
	return []*ir.Value{b.Add(Cast{To: from}, dOut[0])}
}

func (Cast) Samples() []ir.Sample {
	all := []ir.DType{ir.F64, ir.F32, ir.F16, ir.BF16, ir.I64, ir.I32, ir.I16, ir.I8, ir.U64, ir.U32, ir.U16, ir.U8, ir.Bool}
	var list []ir.Sample
	for _, from := range all {
		for _, to := range all {
			x := ramp(from, 0, -40, 40, 3, 4)
			if from.IsFloat() && to.IsFloat() {
				list = append(list, good(Cast{To: to}, x), kinked(Cast{To: to}, special(from)))
			} else {
				list = append(list, kinked(Cast{To: to}, x))
			}
		}
	}
	for _, to := range []ir.DType{ir.I64, ir.I32, ir.I16, ir.I8, ir.U64, ir.U32, ir.U16, ir.U8, ir.Bool} {
		list = append(list, kinked(Cast{To: to}, listed(ir.F64, math.NaN(), math.Inf(1), math.Inf(-1), 1e30, -1e30, 1e19, 255.5, -0.9, 127, 128, 2147483647, -2147483649)))
	}
	list = append(list,
		kinked(Cast{To: ir.F32}, ir.Tensor{Type: ir.T(ir.U64, 3), I: []int64{-1, math.MinInt64, 5}}),
		good(Cast{To: ir.I8}, listed(ir.I64, 127, 128, -129, 1<<40+3)),
		good(Cast{To: ir.BF16}, ramp(ir.F32, 0, -1, 1)),
		good(Cast{To: ir.F32}, ramp(ir.U8, 0, 0, 1, 0, 2)),
		bad(Cast{To: ir.I4}, "cannot cast to i4", ir.T(ir.F32, 2)),
		bad(Cast{}, "cannot cast to invalid", ir.T(ir.F32, 2)))
	return append(list, badOperands(Cast{To: ir.F32}, ir.T(ir.F32, 2))...)
}
