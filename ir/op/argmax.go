package op

import (
	"fmt"
	"math"

	"aitk/ir"
)

// ArgMax is the i64 index of the greatest element along Axis, or with Min of the smallest; the first one at ties, or with Last the last one.
// NaN beats every number, as in numpy. KeepDims leaves the axis in place with extent 1.
type ArgMax struct {
	Axis           int64
	KeepDims, Last bool
	Min            bool
}

// NoGradReason says why no gradient flows.
func (ArgMax) NoGradReason() string { return "integer result" }

func (o ArgMax) Infer(in []ir.Type) ([]ir.Type, error) {
	if _, err := inferNumbers(in); err != nil {
		return nil, err
	}
	if err := wantAxis(o.Axis, len(in[0].Shape)); err != nil {
		return nil, err
	}
	if in[0].Shape[o.Axis] == 0 {
		return nil, fmt.Errorf("axis %d of %v has no elements to choose from", o.Axis, in[0].Shape)
	}
	return one(ir.I64, reducedShape(in[0].Shape, []int64{o.Axis}, o.KeepDims)), nil
}

func (o ArgMax) Eval(in, out []ir.Tensor) {
	x := in[0]
	outer, n, inner := around(x.Type.Shape, o.Axis)
	for line := range outer * inner {
		first := line/inner*n*inner + line%inner
		best := int64(0)
		for j := int64(1); j < n; j++ {
			if o.beats(x, first+j*inner, first+best*inner) {
				best = j
			}
		}
		out[0].I[line] = best
	}
}

// beats tells whether the element at i, which comes later, takes the place of the one at j.
func (o ArgMax) beats(x ir.Tensor, i, j int64) bool {
	if !x.Type.DType.IsFloat() {
		return x.I[i] > x.I[j] && !o.Min || x.I[i] < x.I[j] && o.Min || x.I[i] == x.I[j] && o.Last
	}
	a, b := x.F[i], x.F[j]
	if math.IsNaN(a) || math.IsNaN(b) {
		return math.IsNaN(a) && (o.Last || !math.IsNaN(b))
	}
	return a > b && !o.Min || a < b && o.Min || a == b && o.Last
}

// Cost is one comparison for each element read.
func (ArgMax) Cost(in, out []ir.Type) ir.Work { return perElement(1, in, out) }

func (ArgMax) Samples() []ir.Sample {
	list := append(badOperands(ArgMax{}, ir.T(ir.F32, 2)),
		bad(ArgMax{}, "operand 0 is bool, want numbers", ir.T(ir.Bool, 2)),
		bad(ArgMax{Axis: 1}, "axis 1 is outside rank 1", ir.T(ir.F32, 2)),
		bad(ArgMax{}, "axis 0 of [0] has no elements to choose from", ir.T(ir.F32, 0)))
	for k := range 8 {
		o := ArgMax{Min: k&1 != 0, Last: k&2 != 0, KeepDims: k&4 != 0}
		list = append(list, kinked(o, special(ir.F32)), kinked(o, listed(ir.I64, 3, 1, 3, 1)))
		for _, d := range []ir.DType{ir.F32, ir.F64, ir.F16, ir.BF16, ir.I64, ir.I32, ir.I8, ir.U8} {
			o.Axis = 0
			list = append(list, kinked(o, ramp(d, 0, -2, 2, 5)), kinked(o, ramp(d, 0, -2, 2, 3, 0)))
			o.Axis = 1
			list = append(list, kinked(o, ramp(d, 0, -2, 2, 2, 4, 3)), kinked(o, ramp(d, 0, -2, 2, 3, 4)))
		}
	}
	return list
}
