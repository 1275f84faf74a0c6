package passes

import (
	"fmt"
	"slices"

	"aitk/ir"
	"aitk/ir/op"
)

// updater makes update nodes of one optimizer, with the state that each weight needs.
type updater struct {
	spec    OptimizerSpec
	noDecay []string
	g       *ir.Graph
	lr      *ir.Value
	step    *ir.Value
}

func newUpdater(ctx *Context, g *ir.Graph) *updater {
	u := &updater{spec: ctx.Options.Optimizer, noDecay: ctx.Options.NoDecay, g: g, lr: g.Input("$lr"), step: g.Input("$step")}
	if u.lr == nil {
		u.lr = g.AddInput("$lr", ir.T(ir.F32))
	}
	if u.step == nil {
		u.step = g.AddInput("$step", ir.T(ir.I64))
	}
	return u
}

// decay is the weight decay of one weight.
func (u *updater) decay(p *ir.Param) float64 {
	for _, glob := range u.noDecay {
		if ir.MatchGlob(glob, p.Name) {
			return 0
		}
	}
	return u.spec.WeightDecay
}

// moment adds a tensor of optimizer state, zero before the first step.
func (u *updater) moment(p *ir.Param, suffix string) *ir.Param {
	m := u.g.AddParam(freeName(u.g, p.Name+suffix), p.Type)
	m.Role, m.Of, m.Reason = ir.Moment, p.Name, "optimizer state"
	return m
}

// freeName is the name, or the name with underscores where the model uses it already.
func freeName(g *ir.Graph, name string) string {
	for g.Param(name) != nil || g.Input(name) != nil {
		name += "_"
	}
	return name
}

// update appends the update of p with gradient grad and sets the new contents of p and of its state.
func (u *updater) update(b *ir.Builder, p *ir.Param, grad, ok *ir.Value) {
	switch s := u.spec; s.Name {
	case "sgd":
		o := op.SGD{Momentum: s.Momentum, Dampening: s.Dampening, Nesterov: s.Nesterov, WeightDecay: u.decay(p)}
		if s.Momentum == 0 {
			o.Dampening = 0
			p.Next = b.Add(o, p.Value, grad, u.lr, u.step, ok)
			return
		}
		buf := u.moment(p, ".momentum")
		out := b.Multi(o, p.Value, grad, buf.Value, u.lr, u.step, ok)
		p.Next, buf.Next = out[0], out[1]
	case "adam", "adamw":
		o := op.Adam{Beta1: s.Beta1, Beta2: s.Beta2, Eps: s.Eps, WeightDecay: u.decay(p), Decoupled: s.Name == "adamw"}
		if o.WeightDecay == 0 {
			o.Decoupled = false // the same without a weight to decay
		}
		m, v := u.moment(p, ".m"), u.moment(p, ".v")
		out := b.Multi(o, p.Value, grad, m.Value, v.Value, u.lr, u.step, ok)
		p.Next, m.Next, v.Next = out[0], out[1], out[2]
	default:
		panic(ir.Bugf("optimizer %q", s.Name))
	}
}

// separateUpdate makes the step add its gradients up and returns program "update", which runs once per optimizer step:
//
//	program step                            program update
//	%20 =b MatMul ...     the gradient      %0 = param "w" : f32[64,10]
//	%21 =u Add %acc %20                     %1 = param "w.grad" accumulator : f32[64,10]
//	update %acc %21                         %5 =u SumSquares %1
//	                                        ... norm, scale = min(1, clip/(norm+1e-6))
//	                                        %9 =u Mul %1 %scale
//	                                        %10 =u Adam %0 %9 ...
//	                                        %11 =u Fill{...}
//	                                        update %1 %11
//
// Both programs report "ok"; program update reports "grad_norm", that of the summed gradients before clipping.
func separateUpdate(ctx *Context, g *ir.Graph) (*ir.Graph, error) {
	done := completions(ctx, g)
	s := newInserter(g)
	w := newWatch(s.b)
	loss := g.Result("loss")
	lossAt := slices.Index(s.base, loss.Def)
	s.at(lossAt, "finite loss", func(b *ir.Builder) { w.finite(b, loss) })

	up := ir.NewGraph("update")
	pairs := make([]accumulated, len(done))
	flag := lossAt
	for i, c := range done {
		flag = max(flag, c.at)
		acc := g.AddParam(freeName(g, c.param.Name+".grad"), c.param.Type)
		acc.Role, acc.Of, acc.Reason = ir.Accumulator, c.param.Name, "gradient added up over microbatches"
		s.at(flag, "finite grad of "+c.param.Name, func(b *ir.Builder) { w.finite(b, c.grad) })
		s.at(flag, "accumulate grad of "+c.param.Name, func(b *ir.Builder) { acc.Next = b.Add(op.Add{}, acc.Value, c.grad) })
		pairs[i] = accumulated{param: sameParam(up, c.param), acc: sameParam(up, acc)}
	}
	g.Results = append(g.Results, ir.Result{Name: "ok", Value: w.ok})
	s.done()
	buildUpdate(ctx, up, pairs)
	ctx.Count("updates", int64(len(done)))
	return up, nil
}

// accumulated is a weight of program update with its summed gradient.
type accumulated struct{ param, acc *ir.Param }

// sameParam gives another program the same parameter.
func sameParam(g *ir.Graph, p *ir.Param) *ir.Param {
	q := *p
	q.Value = g.NewValue(p.Name, p.Type)
	q.Next = nil
	g.Params = append(g.Params, &q)
	return &q
}

// buildUpdate fills program update.
func buildUpdate(ctx *Context, up *ir.Graph, pairs []accumulated) {
	b := &ir.Builder{G: up, Phase: ir.Update}
	w := newWatch(b)
	for _, p := range pairs {
		b.Origin = ir.Origin{Node: "finite grad of " + p.param.Name}
		w.finite(b, p.acc.Value)
		w.sum(b, p.acc.Value)
	}
	b.Origin = ir.Origin{Node: "grad norm"}
	norm := b.Add(op.Sqrt{}, w.squares)
	var scale *ir.Value
	if c := ctx.Options.ClipNorm; c > 0 {
		b.Origin = ir.Origin{Node: fmt.Sprintf("clip to norm %v", c)}
		d := norm.Type.DType
		scale = b.Add(op.Min{}, b.Scalar(d, 1), b.Add(op.Div{}, b.Scalar(d, c), b.Add(op.Add{}, norm, b.Scalar(d, 1e-6))))
	}
	u := newUpdater(ctx, up)
	for _, p := range pairs {
		grad := p.acc.Value
		if scale != nil {
			b.Origin = ir.Origin{Node: "clip grad of " + p.param.Name}
			by := scale
			if by.Type.DType != grad.Type.DType {
				by = b.Add(op.Cast{To: grad.Type.DType}, by)
			}
			grad = b.Add(op.Mul{}, grad, by)
		}
		b.Origin = ir.Origin{Node: "update of " + p.param.Name}
		u.update(b, p.param, grad, w.ok)
		b.Origin = ir.Origin{Node: "zero grad of " + p.param.Name}
		p.acc.Next = b.Add(op.Fill{DType: p.acc.Type.DType, Shape: p.acc.Type.Shape})
	}
	up.Results = append(up.Results, ir.Result{Name: "ok", Value: w.ok}, ir.Result{Name: "grad_norm", Value: norm})
}
