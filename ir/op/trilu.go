package op

import (
	"fmt"

	"aitk/ir"
)

// Trilu keeps the lower triangle of each matrix in the last two axes, the elements with column - row <= K, or with Upper those with
// column - row >= K, and makes the rest 0. Any element type.
type Trilu struct {
	over0
	mover
	Upper bool
	K     int64
}

func (o Trilu) Infer(in []ir.Type) ([]ir.Type, error) {
	if err := operands(in, 1); err != nil {
		return nil, err
	}
	if len(in[0].Shape) < 2 {
		return nil, fmt.Errorf("the operand has rank %d, want at least 2", len(in[0].Shape))
	}
	return one(in[0].DType, in[0].Shape), nil
}

// keeps tells whether the element at a row and column stays.
func (o Trilu) keeps(row, col int64) bool {
	if o.Upper {
		return col-row >= o.K
	}
	return col-row <= o.K
}

func (o Trilu) Eval(in, out []ir.Tensor) {
	s := in[0].Type.Shape
	rows, cols := s[len(s)-2], s[len(s)-1]
	move(out[0], in[0], func(i int64) int64 {
		if o.keeps(i/cols%rows, i%cols) {
			return i
		}
		return -1
	})
}

func (o Trilu) Grad(b *ir.Builder, n *ir.Node, dOut []*ir.Value) []*ir.Value {
	if !differentiable(n) {
		return none(1)
	}
	return []*ir.Value{b.Add(o, dOut[0])}
}

func (Trilu) Samples() []ir.Sample {
	list := append(badOperands(Trilu{}, ir.T(ir.F32, 2, 2)), bad(Trilu{}, "rank 1, want at least 2", ir.T(ir.F32, 2)))
	for _, d := range []ir.DType{ir.F32, ir.F64, ir.F16, ir.BF16, ir.I64, ir.I32, ir.U8, ir.Bool} {
		for _, s := range []ir.Shape{{3, 3}, {2, 4, 3}, {3, 5}, {0, 2}, {2, 3, 0}} {
			for _, k := range []int64{0, 1, -2} {
				list = append(list, good(Trilu{K: k}, ramp(d, 0, -2, 2, s...)), good(Trilu{K: k, Upper: true}, ramp(d, 0, -2, 2, s...)))
			}
		}
	}
	return append(list, good(Trilu{K: 1 << 40}, ramp(ir.F32, 0, -2, 2, 3, 3)), good(Trilu{K: -1 << 40, Upper: true}, ramp(ir.F32, 0, -2, 2, 3, 3)),
		kinked(Trilu{}, ir.Tensor{Type: ir.T(ir.F32, 4, 4), F: special(ir.F32).F}))
}
