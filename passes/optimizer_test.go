package passes_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"aitk/ir"
	"aitk/ir/op"
	"aitk/passes"
	"aitk/runtime/ref"
)

// regression is y = x w + b with mse, whose gradient a loop works out below.
func regression() *ir.Graph {
	g := ir.NewGraph("m")
	b := &ir.Builder{G: g}
	x := g.AddInput("x", ir.T(ir.F64, 4, 3))
	w, bias := g.AddParam("w", ir.T(ir.F64, 3, 2)), g.AddParam("b", ir.T(ir.F64, 2))
	w.Trainable, bias.Trainable = true, true
	y := b.Add(op.Add{}, b.Add(op.MatMul{}, x, w.Value), bias.Value)
	g.Results = []ir.Result{{Name: "y", Value: y}}
	return g
}

// byHand holds the parameters (w then b) and the state of the straightforward optimizer.
type byHand struct {
	p, m, v []float64
	decays  []bool
}

// gradient is that of the mean of squared errors over all 8 outputs.
func (h *byHand) gradient(x, t []float64) (g []float64, loss float64) {
	g = make([]float64, 8)
	for i := range 4 {
		for j := range 2 {
			y := h.p[6+j]
			for k := range 3 {
				y += x[i*3+k] * h.p[k*2+j]
			}
			d := y - t[i*2+j]
			loss += d * d / 8
			for k := range 3 {
				g[k*2+j] += 2 * d * x[i*3+k] / 8
			}
			g[6+j] += 2 * d / 8
		}
	}
	return g, loss
}

// step is PyTorch's formula, written out.
func (h *byHand) step(o passes.OptimizerSpec, g []float64, lr float64, t int) {
	for i := range h.p {
		wd := o.WeightDecay
		if !h.decays[i] {
			wd = 0
		}
		d := g[i]
		switch o.Name {
		case "sgd":
			d += wd * h.p[i]
			if o.Momentum != 0 {
				if t == 0 {
					h.m[i] = d
				} else {
					h.m[i] = o.Momentum*h.m[i] + (1-o.Dampening)*d
				}
				if o.Nesterov {
					d += o.Momentum * h.m[i]
				} else {
					d = h.m[i]
				}
			}
			h.p[i] -= lr * d
		default:
			if o.Name == "adamw" {
				h.p[i] *= 1 - lr*wd
			} else {
				d += wd * h.p[i]
			}
			h.m[i] = o.Beta1*h.m[i] + (1-o.Beta1)*d
			h.v[i] = o.Beta2*h.v[i] + (1-o.Beta2)*d*d
			c1, c2 := 1-math.Pow(o.Beta1, float64(t+1)), 1-math.Pow(o.Beta2, float64(t+1))
			h.p[i] -= lr / c1 * h.m[i] / (math.Sqrt(h.v[i])/math.Sqrt(c2) + o.Eps)
		}
	}
}

func TestOptimizers(t *testing.T) {
	for _, c := range []struct {
		optimizer string
		clip      float64
		micro     int
	}{
		{optimizer: "sgd:lr=0.1"},
		{optimizer: "sgd:lr=0.1,momentum=0.9,dampening=0.5,weight-decay=0.01"},
		{optimizer: "sgd:lr=0.1,momentum=0.9,nesterov=true"},
		{optimizer: "adam:lr=0.05,weight-decay=0.1"},
		{optimizer: "adamw:lr=0.05,weight-decay=0.1"},
		{optimizer: "adamw:lr=0.05", clip: 0.25},
		{optimizer: "adamw:lr=0.05", micro: 3},
		{optimizer: "sgd:lr=0.1,momentum=0.5", micro: 4, clip: 0.5},
		{optimizer: "sgd:lr=0.1", clip: 1e9},
	} {
		t.Run(fmt.Sprintf("%s clip %v micro %d", c.optimizer, c.clip, c.micro), func(t *testing.T) {
			kv := []string{"loss", "mse", "optimizer", c.optimizer, "no-decay", "b"}
			if c.clip > 0 {
				kv = append(kv, "clip-norm", fmt.Sprint(c.clip))
			}
			if c.micro > 0 {
				kv = append(kv, "accumulate", fmt.Sprint(c.micro))
			}
			ctx := trained(t, regression(), options(t, kv...))
			r := rand.New(rand.NewPCG(11, 13))
			random := func(t ir.Type) ir.Tensor {
				x := ir.NewTensor(t)
				for i := range x.F {
					x.F[i] = r.NormFloat64()
				}
				return x
			}
			params := map[string]ir.Tensor{}
			for _, g := range ctx.Programs {
				for _, p := range g.Params {
					params[p.Name] = ir.NewTensor(p.Type)
				}
			}
			params["w"], params["b"] = random(ir.T(ir.F64, 3, 2)), random(ir.T(ir.F64, 2))
			hand := &byHand{p: append(append([]float64{}, params["w"].F...), params["b"].F...), m: make([]float64, 8), v: make([]float64, 8),
				decays: []bool{true, true, true, true, true, true, false, false}}
			machine := ref.New(params)
			spec := ctx.Options.Optimizer
			for step := range 3 {
				lr := float64(float32(spec.LR / float64(step+1)))
				sum, loss, got := make([]float64, 8), 0.0, 0.0
				var norm float64
				for range max(c.micro, 1) {
					x, target := random(ir.T(ir.F64, 4, 3)), random(ir.T(ir.F64, 4, 2))
					g, l := hand.gradient(x.F, target.F)
					for i := range sum {
						sum[i] += g[i] / float64(max(c.micro, 1))
					}
					loss += l / float64(max(c.micro, 1))
					results := runProgram(t, machine, ctx.Program("step"), map[string]ir.Tensor{"x": x, "target": target}, lr, step)
					got += results["loss"].F[0]
					if n, ok := results["grad_norm"]; ok {
						norm = n.F[0]
					}
				}
				if u := ctx.Program("update"); u != nil {
					norm = runProgram(t, machine, u, nil, lr, step)["grad_norm"].F[0]
				}
				want := 0.0
				for _, g := range sum {
					want += g * g
				}
				want = math.Sqrt(want)
				near(t, "loss", got, loss)
				near(t, "gradient norm", norm, want)
				if c.clip > 0 {
					for i := range sum {
						sum[i] *= min(1, c.clip/(want+1e-6))
					}
				}
				hand.step(spec, sum, lr, step)
				now := machine.Params()
				for i, p := range append(append([]float64{}, now["w"].F...), now["b"].F...) {
					near(t, fmt.Sprintf("step %d parameter %d", step, i), p, hand.p[i])
				}
				for name, x := range now {
					if c.micro+int(c.clip) > 0 && (name == "w.grad" || name == "b.grad") && x.F[0] != 0 {
						t.Errorf("%s is not zero after the update", name)
					}
				}
			}
		})
	}
}

func near(t *testing.T, what string, got, want float64) {
	t.Helper()
	if math.Abs(got-want) > 1e-9*(1+math.Abs(want)) {
		t.Errorf("%s is %v, want %v", what, got, want)
	}
}

// trained runs the whole front of the pipeline.
func trained(t *testing.T, g *ir.Graph, o passes.Options) *passes.Context {
	t.Helper()
	o.VerifyEach = true
	o.StopAfter = "schedule"
	ctx := &passes.Context{Options: o}
	if err := passes.Run(ctx, g, passes.Pipeline(), passes.Order()); err != nil {
		t.Fatal(err)
	}
	return ctx
}

func runProgram(t *testing.T, machine *ref.Interpreter, g *ir.Graph, inputs map[string]ir.Tensor, lr float64, step int) map[string]ir.Tensor {
	t.Helper()
	all := map[string]ir.Tensor{
		"$lr":   {Type: ir.T(ir.F32), F: []float64{lr}},
		"$step": {Type: ir.T(ir.I64), I: []int64{int64(step)}},
	}
	for name, x := range inputs {
		all[name] = x
	}
	results, err := machine.Run(g, all)
	if err != nil {
		t.Fatal(err)
	}
	if results["ok"].I[0] != 1 {
		t.Error("the flag has fallen")
	}
	return results
}

// Once a gradient is not finite no update changes anything: neither in the step nor in program update.
func TestFlagStopsUpdates(t *testing.T) {
	for _, kv := range [][]string{{}, {"accumulate", "2"}, {"clip-norm", "1"}} {
		ctx := trained(t, regression(), options(t, append([]string{"loss", "mse", "optimizer", "adamw"}, kv...)...))
		params := map[string]ir.Tensor{}
		for _, g := range ctx.Programs {
			for _, p := range g.Params {
				params[p.Name] = ir.NewTensor(p.Type)
			}
		}
		machine := ref.New(params)
		x, target := ir.NewTensor(ir.T(ir.F64, 4, 3)), ir.NewTensor(ir.T(ir.F64, 4, 2))
		x.F[5] = math.Inf(1)
		target.F[0] = 1
		inputs := map[string]ir.Tensor{"x": x, "target": target, "$lr": {Type: ir.T(ir.F32), F: []float64{1}}, "$step": {Type: ir.T(ir.I64), I: []int64{0}}}
		for _, name := range []string{"step", "update"} {
			g := ctx.Program(name)
			if g == nil {
				continue
			}
			results, err := machine.Run(g, inputs)
			if err != nil {
				t.Fatal(err)
			}
			if results["ok"].I[0] != 0 {
				t.Errorf("%v: flag of %s still stands", kv, name)
			}
		}
		for name, p := range machine.Params() {
			for _, f := range p.F {
				if (name == "w" || name == "b" || name == "w.m" || name == "b.v") && f != 0 {
					t.Errorf("%v: %s changed to %v", kv, name, p.F)
				}
			}
		}
	}
}

// An update stands behind the last reader of the old weight and takes its place; schedule keeps that.
func TestUpdatesAreInPlace(t *testing.T) {
	for _, kv := range [][]string{{}, {"accumulate", "2", "clip-norm", "1"}} {
		ctx := trained(t, regression(), options(t, append([]string{"loss", "mse", "optimizer", "adamw"}, kv...)...))
		for _, g := range ctx.Programs {
			updated := 0
			for _, p := range g.Params {
				if p.Next != nil {
					updated++
				}
			}
			if n := inPlace(g); n != updated {
				t.Errorf("%s: %d of %d parameters are updated in place\n%v", g.Name, n, updated, g)
			}
		}
	}
}

// inPlace counts the parameters whose new content takes their place.
func inPlace(g *ir.Graph) (n int) {
	l := passes.Live(g, nil, nil)
	for i, p := range l.Place {
		if p >= 0 && l.Def[i] >= 0 {
			n++
		}
	}
	for _, over := range l.Over {
		for _, h := range over {
			if l.Storages.All[h.In].Kind == passes.ParamStorage {
				n++
			}
		}
	}
	return n
}
