package op

import (
	"fmt"
	"math"

	"aitk/ir"
)

// Dropout sets elements to zero with probability Ratio in [0,1) and multiplies the others by 1/(1-Ratio).
//
//	x [...], seed i64[], step i64[], micro i64[] -> like x
//
// Which elements go depends on (seed, step, micro, StreamID, index of the element) alone (Eval says how). So a recompute gives the same
// bits, and the gradient is the same op on dy. StreamID tells the dropouts of a graph apart; 0 is refused, since it marks deterministic ops.
// The result may be written over x.
type Dropout struct {
	Ratio    float64
	StreamID uint64
}

// Infer gives x's type.
func (o Dropout) Infer(in []ir.Type) ([]ir.Type, error) {
	if err := wantOperands(in, "x", "seed", "step", "micro"); err != nil {
		return nil, err
	}
	if err := wantFloats(in, 0); err != nil {
		return nil, err
	}
	for i, name := range []string{"seed", "step", "micro"} {
		if err := wantScalar(in, i+1, name, ir.I64); err != nil {
			return nil, err
		}
	}
	if !(o.Ratio >= 0 && o.Ratio < 1) {
		return nil, fmt.Errorf("ratio must lie in [0,1), got %v", o.Ratio)
	}
	switch o.StreamID {
	case 0:
		return nil, fmt.Errorf("stream id 0 is reserved for ops without randomness; number the dropouts of a graph from 1")
	case ShuffleStream:
		return nil, fmt.Errorf("stream id %d is reserved for the order of samples", o.StreamID)
	}
	return []ir.Type{in[0]}, nil
}

// Alias lets the result be written over x.
func (Dropout) Alias() []ir.AliasPair { return []ir.AliasPair{{Out: 0, In: 0}} }

// Stateful is false: the bits come from the operands.
func (Dropout) Stateful() bool { return false }

// Stream is the number of the op's random stream.
func (o Dropout) Stream() uint64 { return o.StreamID }

// Eval keeps element i if word i%4 of StreamBits(StepKey(seed, step, micro), StreamID, i/4) is not below DropoutThreshold(Ratio).
func (o Dropout) Eval(in, out []ir.Tensor) {
	key := StepKey(in[1].I[0], in[2].I[0], in[3].I[0])
	drop := DropoutThreshold(o.Ratio)
	for i, x := range in[0].F {
		if uint64(StreamBits(key, o.StreamID, uint64(i/4))[i%4]) >= drop {
			out[0].F[i] = x / (1 - o.Ratio)
		}
	}
}

// Grad is the same op on dy: it is linear in x and its own adjoint.
func (o Dropout) Grad(b *ir.Builder, n *ir.Node, dOut []*ir.Value) []*ir.Value {
	return []*ir.Value{b.Add(o, dOut[0], n.In[1], n.In[2], n.In[3]), nil, nil, nil}
}

// Cost counts ten rounds of about ten operations for each four elements, and the product.
func (Dropout) Cost(in, out []ir.Type) ir.Work { return perElement(26, in, out) }

// Samples are usual ratios, none, nearly all, and counters beyond 32 bits.
func (Dropout) Samples() []ir.Sample {
	at := func(o Dropout, x ir.Tensor, seed, step, micro int64) ir.Sample {
		s := good(o, x)
		for _, n := range []int64{seed, step, micro} {
			s.In = append(s.In, sampleInts(ir.I64, ir.Shape{}, n))
		}
		return s
	}
	x, i := ir.T(ir.F32, 3), ir.T(ir.I64)
	return []ir.Sample{
		at(Dropout{0.5, 1}, sampleFloats(1, ir.F32, 3, 7), 1, 0, 0),
		at(Dropout{0.1, 2}, sampleFloats(2, ir.F32, 2, 3, 5), 1, 7, 3),
		at(Dropout{0, 3}, sampleFloats(3, ir.F32, 9), 1, 7, 3),
		at(Dropout{0.999, 4}, sampleFloats(4, ir.F32, 9), 1, 7, 3),
		at(Dropout{0.5, 1 << 40}, sampleFloats(5, ir.F32, 9), -1, 1<<40, 1<<33),
		at(Dropout{0.5, 5}, sampleFloats(6, ir.F64, 1030), 1, 2, 0),
		at(Dropout{0.5, 6}, sampleFloats(7, ir.BF16, 10), 1, 2, 0),
		at(Dropout{0.5, 6}, sampleFloats(7, ir.F16, 10), 1, 2, 0),
		at(Dropout{0.5, 7}, sampleFloats(8, ir.F32, 0, 4), 1, 2, 0),
		bad(Dropout{1, 1}, "ratio must lie in [0,1)", x, i, i, i),
		bad(Dropout{math.NaN(), 1}, "ratio must lie in [0,1)", x, i, i, i),
		bad(Dropout{0.5, 0}, "stream id 0 is reserved", x, i, i, i),
		bad(Dropout{0.5, ShuffleStream}, "stream id", x, i, i, i),
		bad(Dropout{0.5, 1}, "seed must be i64[]", x, ir.T(ir.I64, 1), i, i),
		bad(Dropout{0.5, 1}, "micro must be i64[]", x, i, i, ir.T(ir.F32)),
		bad(Dropout{0.5, 1}, "want floats", ir.T(ir.I64, 3), i, i, i),
		bad(Dropout{0.5, 1}, "takes 4 operands (x, seed, step, micro)", x, i, i),
	}
}
