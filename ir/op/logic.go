package op

import (
	"fmt"

	"aitk/ir"
)

// The operations on booleans. Two operands broadcast.
type (
	// Not is true where x is false.
	Not struct {
		over0
		boolResult
	}
	// And is true where both are.
	And struct {
		over01
		boolResult
	}
	// Or is true where at least one is.
	Or struct {
		over01
		boolResult
	}
	// Xor is true where exactly one is.
	Xor struct {
		over01
		boolResult
	}
)

// inferLogic broadcasts n operands, all bool, to bool.
func inferLogic(in []ir.Type, n int) ([]ir.Type, error) {
	if err := operands(in, n); err != nil {
		return nil, err
	}
	s := ir.Shape{}
	for i, t := range in {
		if t.DType != ir.Bool {
			return nil, fmt.Errorf("operand %d is %v, want bool", i, t.DType)
		}
		var err error
		if s, err = ir.Broadcast(s, t.Shape); err != nil {
			return nil, err
		}
	}
	return one(ir.Bool, s), nil
}

func (Not) Infer(in []ir.Type) ([]ir.Type, error) { return inferLogic(in, 1) }
func (And) Infer(in []ir.Type) ([]ir.Type, error) { return inferLogic(in, 2) }
func (Or) Infer(in []ir.Type) ([]ir.Type, error)  { return inferLogic(in, 2) }
func (Xor) Infer(in []ir.Type) ([]ir.Type, error) { return inferLogic(in, 2) }

func (Not) Eval(in, out []ir.Tensor) { each(in, out, nil, func(x int64) int64 { return x ^ 1 }) }
func (And) Eval(in, out []ir.Tensor) {
	eachBroadcast(in, out, nil, func(x, y int64) int64 { return x & y })
}
func (Or) Eval(in, out []ir.Tensor) {
	eachBroadcast(in, out, nil, func(x, y int64) int64 { return x | y })
}
func (Xor) Eval(in, out []ir.Tensor) {
	eachBroadcast(in, out, nil, func(x, y int64) int64 { return x ^ y })
}

func (o Not) Samples() []ir.Sample {
	list := append(badOperands(o, ir.T(ir.Bool, 2)), bad(o, "operand 0 is u8, want bool", ir.T(ir.U8, 2)))
	for _, s := range []ir.Shape{{}, {5}, {3, 4}, {0}} {
		list = append(list, good(o, ramp(ir.Bool, 0, 0, 1, s...)))
	}
	return list
}

func (o And) Samples() []ir.Sample { return logicSamples(o) }
func (o Or) Samples() []ir.Sample  { return logicSamples(o) }
func (o Xor) Samples() []ir.Sample { return logicSamples(o) }

func logicSamples(o ir.Op) []ir.Sample {
	list := badOperands(o, ir.T(ir.Bool, 2), ir.T(ir.Bool, 2))
	for _, s := range broadcastShapes() {
		list = append(list, good(o, ramp(ir.Bool, 0, 0, 1, s[0]...), ramp(ir.Bool, 1, 0, 1, s[1]...)))
	}
	return append(list,
		bad(o, "operand 1 is f32, want bool", ir.T(ir.Bool, 2), ir.T(ir.F32, 2)),
		bad(o, "do not broadcast", ir.T(ir.Bool, 2), ir.T(ir.Bool, 3)))
}
