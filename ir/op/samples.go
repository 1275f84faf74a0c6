package op

import (
	"math"

	"aitk/ir"
)

// ramp is a tensor of numbers between lo and hi, spread in no order and the same for the same arguments. Floats are odd multiples of
// 1/128, as the element type rounds them, and so stay away from kinks at whole numbers, halves and 0; phase tells operands apart.
func ramp(d ir.DType, phase, lo, hi float64, shape ...int64) ir.Tensor {
	t := ir.NewTensor(ir.T(d, shape...))
	at := func(i int) float64 {
		_, frac := math.Modf(float64(i+1)*math.Phi + 0.371*phase)
		return lo + (hi-lo)*frac
	}
	for i := range t.F {
		t.F[i] = (2*math.Floor(at(i)*64) + 1) / 128
	}
	for i := range t.I {
		t.I[i] = int64(math.Floor(at(i)))
		if d == ir.Bool {
			t.I[i] = int64(i*(i+int(phase)+1)/2) & 1
		}
	}
	t.Round()
	return t
}

// listed is a tensor of rank 1 with the given elements.
func listed(d ir.DType, xs ...float64) ir.Tensor {
	t := ir.NewTensor(ir.T(d, int64(len(xs))))
	copy(t.F, xs)
	for i := range t.I {
		t.I[i] = int64(xs[i])
	}
	t.Round()
	return t
}

// special is what goes wrong first in a float function.
func special(d ir.DType) ir.Tensor {
	return listed(d, 0, math.Copysign(0, -1), math.NaN(), math.Inf(1), math.Inf(-1), 0.5, -0.5, 1.5, 2.5, -1.5, 1, -1, 100, -100, 1e-3, 3e4)
}

// kinked is a sample whose operands are not for finite differences.
func kinked(o ir.Op, in ...ir.Tensor) ir.Sample {
	s := ir.Sample{Op: o, In: in}
	for i := range in {
		s.NoDiff = append(s.NoDiff, i)
	}
	return s
}

// badOperands are the operand lists that every op with n operands refuses. ok is one type that it accepts at each place.
func badOperands(o ir.Op, ok ...ir.Type) []ir.Sample {
	with := func(t ir.Type) []ir.Type { return append([]ir.Type{t}, ok[1:]...) }
	far := ok[0]
	far.Space = ir.Pinned
	negative := ok[0]
	negative.Shape = append(negative.Shape.Clone(), -1)
	return []ir.Sample{
		bad(o, "got 0"),
		bad(o, "got "+string(rune('1'+len(ok))), append(append([]ir.Type{}, ok...), ok[0])...),
		bad(o, "operand 0 is i4", with(ir.T(ir.I4, ok[0].Shape...))...),
		bad(o, "operand 0 has no element type", with(ir.T(ir.Invalid, ok[0].Shape...))...),
		bad(o, "operand 0 is in pinned memory", with(far)...),
		bad(o, "operand 0: shape", with(negative)...),
	}
}
