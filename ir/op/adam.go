package op

import (
	"math"

	"aitk/ir"
)

// Adam is PyTorch's Adam and, with Decoupled, AdamW.
//
//	p [...], g, m, v like p, lr f32[], step i64[], ok bool[] -> p', m', v'
//
//	Decoupled: p *= 1 - lr*WeightDecay; else: g += WeightDecay*p
//	m = Beta1*m + (1-Beta1)*g
//	v = Beta2*v + (1-Beta2)*g*g
//	p -= lr/(1-Beta1^t) * m / (sqrt(v)/sqrt(1-Beta2^t) + Eps)        t = step + 1
//
// Where ok is false every output equals its operand. It updates state: it runs exactly once a step and may write over p, m and v.
type Adam struct {
	Beta1, Beta2, Eps float64
	WeightDecay       float64
	Decoupled         bool
}

// Infer gives p's type three times.
func (o Adam) Infer(in []ir.Type) ([]ir.Type, error) {
	if err := inferUpdate(in, "p", "g", "m", "v", "lr", "step", "ok"); err != nil {
		return nil, err
	}
	below1 := math.Nextafter(1, 0)
	for _, h := range []hyper{{"beta1", o.Beta1, 0, below1}, {"beta2", o.Beta2, 0, below1}, {"eps", o.Eps, 0, math.MaxFloat64}, {"weight decay", o.WeightDecay, 0, math.MaxFloat64}} {
		if err := h.check(); err != nil {
			return nil, err
		}
	}
	return []ir.Type{in[0], in[0], in[0]}, nil
}

// NoGradReason says why gradients stop here.
func (Adam) NoGradReason() string { return noUpdateGrad }

// Alias lets p', m' and v' be written over p, m and v.
func (Adam) Alias() []ir.AliasPair {
	return []ir.AliasPair{{Out: 0, In: 0}, {Out: 1, In: 2}, {Out: 2, In: 3}}
}

// Stateful is true: a parameter is updated once a step.
func (Adam) Stateful() bool { return true }

// Stream is 0: nothing is random.
func (Adam) Stream() uint64 { return 0 }

// Eval is the formula, element by element.
func (o Adam) Eval(in, out []ir.Tensor) {
	lr, step, ok := in[4].F[0], in[5].I[0], in[6].I[0] != 0
	if !ok {
		keep(in, out, o.Alias())
		return
	}
	t := float64(step) + 1
	c1, c2 := 1-math.Pow(o.Beta1, t), math.Sqrt(1-math.Pow(o.Beta2, t))
	for i, p := range in[0].F {
		g := in[1].F[i]
		if o.Decoupled {
			p *= 1 - lr*o.WeightDecay
		} else {
			g += o.WeightDecay * p
		}
		m := o.Beta1*in[2].F[i] + (1-o.Beta1)*g
		v := o.Beta2*in[3].F[i] + (1-o.Beta2)*g*g
		out[0].F[i] = p - lr/c1*m/(math.Sqrt(v)/c2+o.Eps)
		out[1].F[i], out[2].F[i] = m, v
	}
}

// Decompose is the formula.
func (o Adam) Decompose(b *ir.Builder, in []*ir.Value) []*ir.Value {
	u := newUpdate(b, in)
	p, g := wide(b, in[0]), wide(b, in[1])
	switch {
	case o.WeightDecay == 0:
	case o.Decoupled:
		p = b.Add(Mul{}, p, b.Add(Sub{}, u.scalar(1), u.times(o.WeightDecay, u.lr)))
	default:
		g = u.add(g, u.times(o.WeightDecay, p))
	}
	m := u.add(u.times(o.Beta1, wide(b, in[2])), u.times(1-o.Beta1, g))
	v := u.add(u.times(o.Beta2, wide(b, in[3])), u.times(1-o.Beta2, b.Add(Mul{}, g, g)))
	t := u.add(b.Add(Cast{To: u.lr.Type.DType}, u.step), u.scalar(1))
	correction := func(beta float64) *ir.Value {
		return b.Add(Sub{}, u.scalar(1), b.Add(Pow{}, u.scalar(beta), t))
	}
	root := b.Add(Div{}, b.Add(Sqrt{}, v), b.Add(Sqrt{}, correction(o.Beta2)))
	rate := b.Add(Div{}, u.lr, correction(o.Beta1))
	p = b.Add(Sub{}, p, b.Add(Div{}, b.Add(Mul{}, rate, m), u.add(root, u.scalar(o.Eps))))
	return []*ir.Value{u.unlessFallen(p, in[0]), u.unlessFallen(m, in[2]), u.unlessFallen(v, in[3])}
}

// Cost: three for m, four for v, five for p, and the weight decay.
func (o Adam) Cost(in, out []ir.Type) ir.Work {
	flops := int64(12)
	if o.WeightDecay != 0 {
		flops += 2
	}
	return perElement(flops, in, out)
}

// Samples are Adam and AdamW with and without weight decay, at the first step and a later one, and a fallen flag.
func (Adam) Samples() []ir.Sample {
	base := Adam{Beta1: 0.9, Beta2: 0.999, Eps: 1e-8}
	with := func(change func(*Adam)) Adam {
		o := base
		change(&o)
		return o
	}
	var all []ir.Sample
	for _, o := range []Adam{
		base,
		with(func(o *Adam) { o.WeightDecay = 0.05 }),
		with(func(o *Adam) { o.WeightDecay, o.Decoupled, o.Eps = 0.1, true, 1e-6 }),
		with(func(o *Adam) { o.Beta1, o.Beta2 = 0, 0 }),
	} {
		all = append(all, updateSamples(o, 2)...)
	}
	x, lr, step, ok := ir.T(ir.F32, 3), ir.T(ir.F32), ir.T(ir.I64), ir.T(ir.Bool)
	return append(all,
		bad(base, "takes 7 operands (p, g, m, v, lr, step, ok)", x, x, x, lr, step, ok),
		bad(base, "v must have shape [3]", x, x, x, ir.T(ir.F32, 4), lr, step, ok),
		bad(base, "want one element type", x, x, ir.T(ir.F64, 3), x, lr, step, ok),
		bad(base, "lr must be f32[]", x, x, x, x, x, step, ok),
		bad(base, "want floats", step, step, step, step, lr, step, ok),
		bad(with(func(o *Adam) { o.Beta1 = 1 }), "beta1 must lie in", x, x, x, x, lr, step, ok),
		bad(with(func(o *Adam) { o.Beta2 = -0.1 }), "beta2 must lie in", x, x, x, x, lr, step, ok),
		bad(with(func(o *Adam) { o.Eps = -1 }), "eps must lie in", x, x, x, x, lr, step, ok),
		bad(with(func(o *Adam) { o.WeightDecay = -1 }), "weight decay must lie in", x, x, x, x, lr, step, ok),
	)
}
