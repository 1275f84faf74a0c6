package op

import (
	"fmt"

	"aitk/ir"
)

// Uniform makes a tensor of Shape whose elements are spread evenly over [0,1), of the float type DType:
//
//	seed i64[], step i64[], micro i64[] -> DType[Shape]
//
// Element i is word i%4 of StreamBits(StepKey(seed, step, micro), StreamID, i/4), cut to 24 bits (f16: 11, bf16: 8), over 2 to that power: as
// with Dropout the bits come from the operands alone. StreamID 0 is refused, since it marks deterministic ops.
//
// It is a core op because every other distribution is made from it, and it from nothing.
type Uniform struct {
	DType    ir.DType
	Shape    ir.Shape
	StreamID uint64
}

// NoGradReason says why no gradient flows.
func (Uniform) NoGradReason() string { return "no operand that it varies with" }

// Alias is empty: there is nothing to write over.
func (Uniform) Alias() []ir.AliasPair { return nil }

// Stateful is false: the bits come from the operands.
func (Uniform) Stateful() bool { return false }

// Stream is the number of the op's random stream.
func (o Uniform) Stream() uint64 { return o.StreamID }

func (o Uniform) Infer(in []ir.Type) ([]ir.Type, error) {
	if err := wantOperands(in, "seed", "step", "micro"); err != nil {
		return nil, err
	}
	for i, name := range []string{"seed", "step", "micro"} {
		if err := wantScalar(in, i, name, ir.I64); err != nil {
			return nil, err
		}
	}
	if !o.DType.IsFloat() {
		return nil, fmt.Errorf("cannot spread %v over [0,1)", o.DType)
	}
	if o.StreamID == 0 || o.StreamID == ShuffleStream {
		return nil, fmt.Errorf("stream id %d is reserved", o.StreamID)
	}
	return one(o.DType, o.Shape), o.Shape.Check()
}

// Mantissa is how many bits of a word an element takes.
func (o Uniform) Mantissa() uint {
	switch o.DType {
	case ir.F16:
		return 11
	case ir.BF16:
		return 8
	}
	return 24
}

func (o Uniform) Eval(in, out []ir.Tensor) {
	key := StepKey(in[0].I[0], in[1].I[0], in[2].I[0])
	bits := o.Mantissa()
	for i := range out[0].F {
		word := StreamBits(key, o.StreamID, uint64(i/4))[i%4]
		out[0].F[i] = float64(word>>(32-bits)) / float64(uint64(1)<<bits)
	}
}

// Cost counts ten rounds of about ten operations for each four elements.
func (Uniform) Cost(in, out []ir.Type) ir.Work {
	w := moved(in, out)
	w.FLOPs = 26 * out[0].Elems()
	return w
}

func (Uniform) Samples() []ir.Sample {
	at := func(o Uniform, counters ...int64) ir.Sample {
		s := ir.Sample{Op: o}
		for _, n := range counters {
			s.In = append(s.In, sampleInts(ir.I64, ir.Shape{}, n))
		}
		return s
	}
	i := ir.T(ir.I64)
	return []ir.Sample{
		at(Uniform{ir.F32, ir.Shape{3, 7}, 1}, 1, 0, 0),
		at(Uniform{ir.F32, ir.Shape{}, 2}, 1, 7, 3),
		at(Uniform{ir.F64, ir.Shape{1030}, 1 << 40}, -1, 1<<40, 1<<33),
		at(Uniform{ir.F16, ir.Shape{10}, 3}, 1, 2, 0),
		at(Uniform{ir.BF16, ir.Shape{10}, 3}, 1, 2, 0),
		at(Uniform{ir.F32, ir.Shape{0, 4}, 3}, 1, 2, 0),
		bad(Uniform{ir.I64, ir.Shape{2}, 1}, "cannot spread i64", i, i, i),
		bad(Uniform{ir.F32, ir.Shape{2}, 0}, "stream id 0 is reserved", i, i, i),
		bad(Uniform{ir.F32, ir.Shape{-2}, 1}, "negative or too large", i, i, i),
		bad(Uniform{ir.F32, ir.Shape{2}, 1}, "seed must be i64[]", ir.T(ir.I64, 1), i, i),
		bad(Uniform{ir.F32, ir.Shape{2}, 1}, "takes 3 operands (seed, step, micro)", i, i),
	}
}
