package gen

import (
	"fmt"

	"aitk/ir"
	"aitk/ir/op"
)

func training() []maker { return []maker{dropout, uniform, again} }

func dropout(g *generator) {
	x := g.float(0)
	if g.NoRandom || x == nil {
		return
	}
	ratio := float64(1+g.rand.IntN(3)) / 4
	s := span{g.span(x).lo / (1 - ratio), g.span(x).hi / (1 - ratio)}
	g.streams++
	seed, step, micro := g.reserved("$seed", ir.I64), g.reserved("$step", ir.I64), g.reserved("$micro", ir.I64)
	g.add(op.Dropout{Ratio: ratio, StreamID: g.streams}, join(s, span{0, 0}), x, seed, step, micro)
}

func uniform(g *generator) {
	if g.NoRandom || g.rand.IntN(3) > 0 {
		return
	}
	g.streams++
	seed, step, micro := g.reserved("$seed", ir.I64), g.reserved("$step", ir.I64), g.reserved("$micro", ir.I64)
	g.add(op.Uniform{DType: g.DType, Shape: ir.Shape{g.extent(), g.extent()}, StreamID: g.streams}, span{0, 1}, seed, step, micro)
}

// again repeats a node, for cse to find.
func again(g *generator) {
	v := g.pick(func(v *ir.Value) bool { return v.Def != nil && len(v.Def.Out) == 1 && !ir.IsStateful(v.Def.Op) })
	if v != nil {
		g.add(v.Def.Op, g.span(v), v.Def.In...)
	}
}

// updates gives about half of the trainable weights an update by SGD or Adam. Gradients are other values' business: the weight itself,
// bounded by a tanh, stands for its own.
func (g *generator) updates() {
	g.b.Phase = ir.Update
	for _, p := range g.g.Params[:len(g.g.Params):len(g.g.Params)] {
		if !p.Trainable || g.rand.IntN(2) == 0 {
			continue
		}
		grad := g.b.Add(op.Tanh{}, p.Value)
		if g.ok == nil {
			g.ok = g.b.Scalar(ir.Bool, 1)
		}
		g.ok = g.b.Add(op.AllFinite{}, g.ok, grad)
		lr, step := g.reserved("$lr", ir.F32), g.reserved("$step", ir.I64)
		state := func(name string) *ir.Param {
			m := g.g.AddParam(fmt.Sprintf("%s/%s", p.Name, name), p.Type)
			m.Role, m.Of = ir.Moment, p.Name
			return m
		}
		switch g.rand.IntN(3) {
		case 0:
			p.Next = g.b.Add(op.SGD{WeightDecay: 0.25}, p.Value, grad, lr, step, g.ok)
		case 1:
			m := state("momentum")
			out := g.b.Multi(op.SGD{Momentum: 0.5, Nesterov: true}, p.Value, grad, m.Value, lr, step, g.ok)
			p.Next, m.Next = out[0], out[1]
		default:
			m, v := state("m"), state("v")
			o := op.Adam{Beta1: 0.5, Beta2: 0.75, Eps: 0.125, Decoupled: g.rand.IntN(2) == 0}
			out := g.b.Multi(o, p.Value, grad, m.Value, v.Value, lr, step, g.ok)
			p.Next, m.Next, v.Next = out[0], out[1], out[2]
		}
	}
	g.b.Phase = ir.Forward
}
