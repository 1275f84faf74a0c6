package op

import (
	"fmt"
	"math"

	"aitk/ir"
)

// SGD is PyTorch's stochastic gradient descent.
//
//	p [...], g like p, lr f32[], step i64[], ok bool[] -> p'
//	p [...], g like p, buf like p, lr f32[], step i64[], ok bool[] -> p', buf'    (Momentum != 0)
//
//	g += WeightDecay*p
//	buf = g at step 0, else Momentum*buf + (1-Dampening)*g
//	g = g + Momentum*buf with Nesterov, else buf
//	p -= lr*g
//
// Where ok is false every output equals its operand. It updates state: it runs exactly once a step and may write over p and buf.
// Nesterov needs Momentum != 0 and Dampening 0. Narrow dtypes are computed in f32 or wider and rounded once.
type SGD struct {
	Momentum, Dampening float64
	Nesterov            bool
	WeightDecay         float64
}

// Infer gives p's type, twice with momentum.
func (o SGD) Infer(in []ir.Type) ([]ir.Type, error) {
	names := []string{"p", "g", "buf", "lr", "step", "ok"}
	if o.Momentum == 0 {
		names = []string{"p", "g", "lr", "step", "ok"}
	}
	if err := inferUpdate(in, names...); err != nil {
		return nil, err
	}
	if o.Nesterov && (o.Momentum == 0 || o.Dampening != 0) {
		return nil, fmt.Errorf("nesterov needs momentum and no dampening, got momentum %v and dampening %v", o.Momentum, o.Dampening)
	}
	for _, h := range []hyper{{"momentum", o.Momentum, 0, math.MaxFloat64}, {"dampening", o.Dampening, -math.MaxFloat64, math.MaxFloat64}, {"weight decay", o.WeightDecay, 0, math.MaxFloat64}} {
		if err := h.check(); err != nil {
			return nil, err
		}
	}
	if o.Momentum == 0 {
		return []ir.Type{in[0]}, nil
	}
	return []ir.Type{in[0], in[0]}, nil
}

// NoGradReason says why gradients stop here.
func (SGD) NoGradReason() string { return noUpdateGrad }

const noUpdateGrad = "updates of parameters are not differentiated"

// hyper is a setting with its closed range.
type hyper struct {
	name        string
	x, min, max float64
}

func (h hyper) check() error {
	if h.x >= h.min && h.x <= h.max {
		return nil
	}
	return fmt.Errorf("%s must lie in [%v,%v], got %v", h.name, h.min, h.max, h.x)
}

// inferUpdate checks the operands of an optimizer: tensors like the first, then lr, step and ok.
func inferUpdate(in []ir.Type, names ...string) error {
	if err := wantOperands(in, names...); err != nil {
		return err
	}
	n := len(in) - 3
	for i := range n {
		if err := wantFloats(in, 0, i); err != nil {
			return err
		}
		if err := wantShape(in, i, names[i], in[0].Shape); err != nil {
			return err
		}
	}
	if err := wantScalar(in, n, "lr", ir.F32); err != nil {
		return err
	}
	if err := wantScalar(in, n+1, "step", ir.I64); err != nil {
		return err
	}
	return wantScalar(in, n+2, "ok", ir.Bool)
}

// Alias lets p' be written over p and buf' over buf.
func (o SGD) Alias() []ir.AliasPair {
	if o.Momentum == 0 {
		return []ir.AliasPair{{Out: 0, In: 0}}
	}
	return []ir.AliasPair{{Out: 0, In: 0}, {Out: 1, In: 2}}
}

// Stateful is true: a parameter is updated once a step.
func (SGD) Stateful() bool { return true }

// Stream is 0: nothing is random.
func (SGD) Stream() uint64 { return 0 }

// Eval is the formula, element by element.
func (o SGD) Eval(in, out []ir.Tensor) {
	n := len(in) - 3
	lr, first, ok := in[n].F[0], in[n+1].I[0] == 0, in[n+2].I[0] != 0
	if !ok {
		keep(in, out, o.Alias())
		return
	}
	for i, p := range in[0].F {
		g := in[1].F[i] + o.WeightDecay*p
		if o.Momentum != 0 {
			buf := o.Momentum*in[2].F[i] + (1-o.Dampening)*g
			if first {
				buf = g
			}
			out[1].F[i] = buf
			if o.Nesterov {
				g += o.Momentum * buf
			} else {
				g = buf
			}
		}
		out[0].F[i] = p - lr*g
	}
}

// keep copies the operands that outputs replace.
func keep(in, out []ir.Tensor, pairs []ir.AliasPair) {
	for _, a := range pairs {
		copy(out[a.Out].F, in[a.In].F)
	}
}

// Decompose is the formula.
func (o SGD) Decompose(b *ir.Builder, in []*ir.Value) []*ir.Value {
	u := newUpdate(b, in)
	p, g := wide(b, in[0]), wide(b, in[1])
	if o.WeightDecay != 0 {
		g = u.add(g, u.times(o.WeightDecay, p))
	}
	var outs []*ir.Value
	if o.Momentum != 0 {
		buf := u.add(u.times(o.Momentum, wide(b, in[2])), u.times(1-o.Dampening, g))
		first := b.Add(Equal{}, u.step, b.Scalar(ir.I64, 0))
		buf = b.Add(Where{}, first, g, buf)
		outs = append(outs, u.unlessFallen(buf, in[2]))
		if o.Nesterov {
			g = u.add(g, u.times(o.Momentum, buf))
		} else {
			g = buf
		}
	}
	p = b.Add(Sub{}, p, b.Add(Mul{}, u.lr, g))
	return append([]*ir.Value{u.unlessFallen(p, in[0])}, outs...)
}

// update builds decompositions of optimizers, in the wide dtype of the parameter.
type update struct {
	b            *ir.Builder
	lr, step, ok *ir.Value
}

func newUpdate(b *ir.Builder, in []*ir.Value) update {
	n := len(in) - 3
	return update{b, narrow(b, in[n], wide(b, in[0]).Type.DType), in[n+1], in[n+2]}
}

func (u update) scalar(x float64) *ir.Value { return u.b.Scalar(u.lr.Type.DType, x) }

func (u update) add(x, y *ir.Value) *ir.Value { return u.b.Add(Add{}, x, y) }

func (u update) times(f float64, x *ir.Value) *ir.Value { return u.b.Add(Mul{}, u.scalar(f), x) }

// unlessFallen is what holds x's place afterwards: x rounded to old's dtype, or old where the flag has fallen.
func (u update) unlessFallen(x, old *ir.Value) *ir.Value {
	return u.b.Add(Where{}, u.ok, narrow(u.b, x, old.Type.DType), old)
}

// Cost counts two operations for each term of the formula.
func (o SGD) Cost(in, out []ir.Type) ir.Work {
	flops := int64(2)
	if o.WeightDecay != 0 {
		flops += 2
	}
	if o.Momentum != 0 {
		flops += 3
	}
	if o.Nesterov {
		flops += 2
	}
	return perElement(flops, in, out)
}

// Samples are every combination that PyTorch has, at the first step and a later one, and a fallen flag.
func (SGD) Samples() []ir.Sample {
	var all []ir.Sample
	for _, o := range []SGD{
		{}, {WeightDecay: 0.01}, {Momentum: 0.9}, {Momentum: 0.9, Dampening: 0.5, WeightDecay: 0.01}, {Momentum: 0.9, Nesterov: true, WeightDecay: 0.01},
	} {
		states := 0
		if o.Momentum != 0 {
			states = 1
		}
		all = append(all, updateSamples(o, states)...)
	}
	x, lr, step, ok := ir.T(ir.F32, 3), ir.T(ir.F32), ir.T(ir.I64), ir.T(ir.Bool)
	return append(all,
		bad(SGD{}, "takes 5 operands (p, g, lr, step, ok)", x, x, x, lr, step, ok),
		bad(SGD{Momentum: 0.9}, "takes 6 operands (p, g, buf, lr, step, ok)", x, x, lr, step, ok),
		bad(SGD{}, "g must have shape [3]", x, ir.T(ir.F32, 4), lr, step, ok),
		bad(SGD{}, "want one element type", x, ir.T(ir.BF16, 3), lr, step, ok),
		bad(SGD{}, "lr must be f32[]", x, x, ir.T(ir.F64), step, ok),
		bad(SGD{}, "step must be i64[]", x, x, lr, lr, ok),
		bad(SGD{}, "ok must be bool[]", x, x, lr, step, step),
		bad(SGD{Nesterov: true}, "nesterov needs momentum", x, x, lr, step, ok),
		bad(SGD{Momentum: 0.9, Dampening: 0.1, Nesterov: true}, "nesterov needs momentum and no dampening", x, x, x, lr, step, ok),
		bad(SGD{Momentum: -1}, "momentum must lie in", x, x, x, lr, step, ok),
		bad(SGD{WeightDecay: math.NaN()}, "weight decay must lie in", x, x, lr, step, ok),
	)
}

// updateSamples try an optimizer with the given number of state tensors.
func updateSamples(o ir.Op, states int) []ir.Sample {
	var all []ir.Sample
	for i, c := range []struct {
		d     ir.DType
		shape ir.Shape
		step  float64
		ok    float64
	}{
		{ir.F32, ir.Shape{3, 5}, 0, 1},
		{ir.F32, ir.Shape{3, 5}, 9, 1},
		{ir.F32, ir.Shape{3, 5}, 9, 0},
		{ir.F32, ir.Shape{}, 1, 1},
		{ir.F32, ir.Shape{0}, 1, 1},
		{ir.F64, ir.Shape{1030}, 2, 1},
		{ir.BF16, ir.Shape{7}, 2, 1},
		{ir.F16, ir.Shape{7}, 0, 1},
	} {
		seed := uint64(10 * i)
		in := []ir.Tensor{sampleFloats(seed, c.d, c.shape...), sampleFloats(seed+1, c.d, c.shape...)}
		for k := range states {
			in = append(in, samplePositives(seed+2+uint64(k), c.d, c.shape...))
		}
		in = append(in, sampleScalar(ir.F32, 0.1), sampleScalar(ir.I64, c.step), sampleScalar(ir.Bool, c.ok))
		all = append(all, good(o, in...))
	}
	return all
}
