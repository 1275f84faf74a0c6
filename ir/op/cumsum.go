package op

import "aitk/ir"

// CumSum is the running sum along Axis, in index order; Exclusive leaves the element itself out, Reverse runs from the last element
// to the first. Floats accumulate in float64 and are rounded once an element; integers wrap.
type CumSum struct {
	over0
	Axis               int64
	Exclusive, Reverse bool
}

func (o CumSum) Infer(in []ir.Type) ([]ir.Type, error) {
	out, err := inferNumbers(in)
	if err != nil {
		return nil, err
	}
	if err := wantAxis(o.Axis, len(in[0].Shape)); err != nil {
		return nil, err
	}
	return out, nil
}

func (o CumSum) Eval(in, out []ir.Tensor) {
	x, y := in[0], out[0]
	outer, n, inner := around(x.Type.Shape, o.Axis)
	for line := range outer * inner {
		first := line/inner*n*inner + line%inner
		var sum float64
		var count int64
		for j := range n {
			if o.Reverse {
				j = n - 1 - j
			}
			at := first + j*inner
			if x.Type.DType.IsFloat() {
				before := sum
				sum += x.F[at]
				y.F[at] = sum
				if o.Exclusive {
					y.F[at] = before
				}
				continue
			}
			before := count
			count += x.I[at]
			y.I[at] = count
			if o.Exclusive {
				y.I[at] = before
			}
		}
	}
}

func (o CumSum) Grad(b *ir.Builder, n *ir.Node, dOut []*ir.Value) []*ir.Value {
	if !differentiable(n) {
		return none(1)
	}
	o.Reverse = !o.Reverse
	return []*ir.Value{b.Add(o, dOut[0])}
}

func (CumSum) Samples() []ir.Sample {
	list := append(badOperands(CumSum{}, ir.T(ir.F32, 2)),
		bad(CumSum{}, "operand 0 is bool, want numbers", ir.T(ir.Bool, 2)),
		bad(CumSum{Axis: 1}, "axis 1 is outside rank 1", ir.T(ir.F32, 2)),
		bad(CumSum{}, "axis 0 is outside rank 0", ir.T(ir.F32)))
	for _, d := range []ir.DType{ir.F32, ir.F64, ir.F16, ir.BF16, ir.I64, ir.I32, ir.I8, ir.U8} {
		for k := range 4 {
			o := CumSum{Exclusive: k&1 != 0, Reverse: k&2 != 0}
			list = append(list, good(o, ramp(d, 0, -2, 2, 5)), good(o, ramp(d, 0, -2, 2, 0, 2)))
			o.Axis = 1
			list = append(list, good(o, ramp(d, 0, -2, 2, 2, 4, 3)), good(o, ramp(d, 0, -2, 2, 3, 4)))
		}
	}
	return list
}
