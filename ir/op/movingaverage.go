package op

import (
	"fmt"

	"aitk/ir"
)

// MovingAverage is Momentum*running + (1-Momentum)*batch: ONNX's rule, in which Momentum weighs the old value.
//
//	running [...], batch like running -> like running
//
// It updates state: it runs exactly once a step and may write over running.
type MovingAverage struct{ Momentum float64 }

// Infer gives running's type.
func (o MovingAverage) Infer(in []ir.Type) ([]ir.Type, error) {
	if err := wantOperands(in, "running", "batch"); err != nil {
		return nil, err
	}
	if err := wantFloats(in, 0, 1); err != nil {
		return nil, err
	}
	if err := wantShape(in, 1, "batch", in[0].Shape); err != nil {
		return nil, err
	}
	if !(o.Momentum >= 0 && o.Momentum <= 1) {
		return nil, fmt.Errorf("momentum must lie in [0,1], got %v", o.Momentum)
	}
	return []ir.Type{in[0]}, nil
}

// NoGradReason says why gradients stop here.
func (MovingAverage) NoGradReason() string { return "running statistics are state" }

// Alias lets the result be written over running.
func (MovingAverage) Alias() []ir.AliasPair { return []ir.AliasPair{{Out: 0, In: 0}} }

// Stateful is true: an average updated twice a step forgets too fast.
func (MovingAverage) Stateful() bool { return true }

// Stream is 0: nothing is random.
func (MovingAverage) Stream() uint64 { return 0 }

// Eval weighs old and new.
func (o MovingAverage) Eval(in, out []ir.Tensor) {
	for i, old := range in[0].F {
		out[0].F[i] = o.Momentum*old + (1-o.Momentum)*in[1].F[i]
	}
}

// Decompose is the definition.
func (o MovingAverage) Decompose(b *ir.Builder, in []*ir.Value) []*ir.Value {
	old, batch := wide(b, in[0]), wide(b, in[1])
	d := old.Type.DType
	y := b.Add(Add{}, b.Add(Mul{}, old, b.Scalar(d, o.Momentum)), b.Add(Mul{}, batch, b.Scalar(d, 1-o.Momentum)))
	return []*ir.Value{narrow(b, y, in[0].Type.DType)}
}

// Cost: two products and a sum.
func (MovingAverage) Cost(in, out []ir.Type) ir.Work { return perElement(3, in, out) }

// Samples are the usual momentum and both ends.
func (MovingAverage) Samples() []ir.Sample {
	var all []ir.Sample
	for i, m := range []float64{0.9, 0, 1} {
		all = append(all, good(MovingAverage{m}, sampleFloats(uint64(i), ir.F32, 5), sampleFloats(uint64(10+i), ir.F32, 5)))
	}
	return append(all,
		good(MovingAverage{0.9}, sampleFloats(20, ir.F64, 2, 300), sampleFloats(21, ir.F64, 2, 300)),
		good(MovingAverage{0.9}, sampleFloats(22, ir.BF16, 5), sampleFloats(23, ir.BF16, 5)),
		bad(MovingAverage{1.5}, "momentum must lie in [0,1]", ir.T(ir.F32, 5), ir.T(ir.F32, 5)),
		bad(MovingAverage{0.9}, "batch must have shape [5]", ir.T(ir.F32, 5), ir.T(ir.F32, 6)),
		bad(MovingAverage{0.9}, "want floats", ir.T(ir.I64, 5), ir.T(ir.I64, 5)),
		bad(MovingAverage{0.9}, "takes 2 operands (running, batch)", ir.T(ir.F32, 5)),
	)
}
