package op

import (
	"math"

	"aitk/ir"
)

// SumSquares is the sum of the squares of all elements, for gradient norms.
//
//	x [...] -> f32[] (f64[] for f64)
//
// Squares are summed wider than the result, in an order that depends on the number of elements alone, and rounded once.
type SumSquares struct{}

// Infer gives the scalar.
func (SumSquares) Infer(in []ir.Type) ([]ir.Type, error) {
	if err := wantOperands(in, "x"); err != nil {
		return nil, err
	}
	if err := wantFloats(in, 0); err != nil {
		return nil, err
	}
	if in[0].DType == ir.F64 {
		return []ir.Type{ir.T(ir.F64)}, nil
	}
	return []ir.Type{ir.T(ir.F32)}, nil
}

// Eval adds up.
func (SumSquares) Eval(in, out []ir.Tensor) {
	for _, x := range in[0].F {
		out[0].F[0] += x * x
	}
}

// Grad is 2*x*dy.
func (SumSquares) Grad(b *ir.Builder, n *ir.Node, dOut []*ir.Value) []*ir.Value {
	x := wide(b, n.In[0])
	twice := b.Add(Mul{}, dOut[0], b.Scalar(x.Type.DType, 2))
	return []*ir.Value{narrow(b, b.Add(Mul{}, x, twice), n.In[0].Type.DType)}
}

// Decompose is the definition.
func (SumSquares) Decompose(b *ir.Builder, in []*ir.Value) []*ir.Value {
	x := wide(b, in[0])
	return []*ir.Value{b.Add(ReduceSum{Axes: axesFrom(0, len(x.Type.Shape))}, b.Add(Mul{}, x, x))}
}

// Cost: a product and a sum.
func (SumSquares) Cost(in, out []ir.Type) ir.Work {
	w := perElement(2, in, out)
	w.PartialBytes = stretchBytes(in[0].Elems(), StretchElems)
	return w
}

// Samples are a scalar, a tensor, nothing, and every dtype.
func (SumSquares) Samples() []ir.Sample {
	return []ir.Sample{
		good(SumSquares{}, sampleFloats(1, ir.F32, 3, 4)),
		good(SumSquares{}, sampleFloats(2, ir.F32)),
		good(SumSquares{}, sampleFloats(3, ir.F32, 0, 4)),
		good(SumSquares{}, sampleFloats(4, ir.F64, 33, 35)),
		good(SumSquares{}, sampleFloats(5, ir.BF16, 9)),
		good(SumSquares{}, sampleFloats(6, ir.F16, 9)),
		bad(SumSquares{}, "want floats", ir.T(ir.I64, 3)),
		bad(SumSquares{}, "takes 1 operand (x)"),
	}
}

// AllFinite is true if ok is and no element of x is NaN or infinite.
//
//	ok bool[], x [...] -> bool[]
//
// It chains: the flag of one tensor is the ok of the next, so once fallen it stays down. It updates state: it runs exactly once a step and
// may write over ok.
type AllFinite struct{}

// Infer gives bool[].
func (AllFinite) Infer(in []ir.Type) ([]ir.Type, error) {
	if err := wantOperands(in, "ok", "x"); err != nil {
		return nil, err
	}
	if err := wantScalar(in, 0, "ok", ir.Bool); err != nil {
		return nil, err
	}
	if err := wantFloats(in, 1); err != nil {
		return nil, err
	}
	return []ir.Type{in[0]}, nil
}

// Alias lets the flag be written over ok.
func (AllFinite) Alias() []ir.AliasPair { return []ir.AliasPair{{Out: 0, In: 0}} }

// Stateful is true: the flag belongs to the step, not to the tensor.
func (AllFinite) Stateful() bool { return true }

// Stream is 0: nothing is random.
func (AllFinite) Stream() uint64 { return 0 }

// Eval looks at every element.
func (AllFinite) Eval(in, out []ir.Tensor) {
	out[0].I[0] = in[0].I[0]
	for _, x := range in[1].F {
		if math.IsNaN(x) || math.IsInf(x, 0) {
			out[0].I[0] = 0
		}
	}
}

// NoGradReason says why gradients stop here.
func (AllFinite) NoGradReason() string { return "boolean result" }

// Cost: a look at each element of x.
func (AllFinite) Cost(in, out []ir.Type) ir.Work {
	w := moved(in, out)
	w.FLOPs = in[1].Elems()
	w.PartialBytes = stretchBytes(in[1].Elems(), StretchElems)
	return w
}

// Samples are both flags with finite tensors and with each thing that is not.
func (AllFinite) Samples() []ir.Sample {
	up, down := sampleScalar(ir.Bool, 1), sampleScalar(ir.Bool, 0)
	with := func(d ir.DType, at int, bad float64) ir.Tensor {
		t := sampleFloats(1, d, 5, 7)
		t.F[at] = bad
		return t
	}
	all := []ir.Sample{
		good(AllFinite{}, down, sampleFloats(1, ir.F32, 5, 7)),
		good(AllFinite{}, up, sampleFloats(1, ir.F32, 0)),
		good(AllFinite{}, up, sampleScalar(ir.F32, math.NaN())),
		bad(AllFinite{}, "ok must be bool[]", ir.T(ir.Bool, 1), ir.T(ir.F32, 3)),
		bad(AllFinite{}, "want floats", ir.T(ir.Bool), ir.T(ir.I64, 3)),
		bad(AllFinite{}, "takes 2 operands (ok, x)", ir.T(ir.Bool)),
	}
	for _, d := range []ir.DType{ir.F64, ir.F32, ir.F16, ir.BF16} {
		all = append(all,
			good(AllFinite{}, up, sampleFloats(1, d, 5, 7)),
			good(AllFinite{}, up, with(d, 0, math.NaN())),
			good(AllFinite{}, up, with(d, 34, math.Inf(1))),
			good(AllFinite{}, up, with(d, 17, math.Inf(-1))),
			good(AllFinite{}, down, with(d, 17, math.Inf(-1))),
		)
	}
	return all
}
