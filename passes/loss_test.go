package passes_test

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"aitk/ir"
	"aitk/passes"
)

// lossCase gives a loss on one output of a shape; want works it out from rows of logits or elements, without the ops.
type lossCase struct {
	spec   string
	shape  []int64
	ignore int64 // label that some samples get; 0: none
	want   func(x, t []float64) float64
}

func logSoftmax(x []float64) []float64 {
	top := x[0]
	for _, v := range x {
		top = max(top, v)
	}
	sum := 0.0
	for _, v := range x {
		sum += math.Exp(v - top)
	}
	y := make([]float64, len(x))
	for i, v := range x {
		y[i] = v - top - math.Log(sum)
	}
	return y
}

// overRows is the mean over rows of c logits (classes last) whose label is not ignored.
func overRows(c int, ignore float64, row func(x []float64, label int) float64) func(x, t []float64) float64 {
	return func(x, t []float64) float64 {
		sum, n := 0.0, 0.0
		for i, label := range t {
			if ignore != 0 && label == ignore {
				continue
			}
			sum += row(x[i*c:(i+1)*c], int(label))
			n++
		}
		return sum / n
	}
}

func meanOf(f func(x, t float64) float64) func(x, t []float64) float64 {
	return func(x, t []float64) float64 {
		sum := 0.0
		for i := range x {
			sum += f(x[i], t[i])
		}
		return sum / float64(len(x))
	}
}

func TestLosses(t *testing.T) {
	ce := func(x []float64, label int) float64 { return -logSoftmax(x)[label] }
	for _, c := range []lossCase{
		{spec: "mse", shape: []int64{4, 3}, want: meanOf(func(x, t float64) float64 { return (x - t) * (x - t) })},
		{spec: "l1", shape: []int64{4, 3}, want: meanOf(func(x, t float64) float64 { return math.Abs(x - t) })},
		{spec: "huber:delta=0.5", shape: []int64{40}, want: meanOf(func(x, t float64) float64 {
			if d := math.Abs(x - t); d > 0.5 {
				return 0.5 * (d - 0.25)
			}
			return (x - t) * (x - t) / 2
		})},
		{spec: "bce-logits", shape: []int64{4, 3}, want: meanOf(func(x, t float64) float64 {
			s := 1 / (1 + math.Exp(-x))
			return -t*math.Log(s) - (1-t)*math.Log(1-s)
		})},
		{spec: "cross-entropy", shape: []int64{6, 5}, want: overRows(5, 0, ce)},
		{spec: "cross-entropy", shape: []int64{2, 3, 5}, want: overRows(5, 0, ce)},
		{spec: "cross-entropy:axis=-1,ignore-index=3", shape: []int64{2, 6, 5}, ignore: 3, want: overRows(5, 3, ce)},
		{spec: "cross-entropy:label-smoothing=0.2", shape: []int64{6, 5}, want: overRows(5, 0, func(x []float64, label int) float64 {
			l := logSoftmax(x)
			sum := 0.0
			for _, v := range l {
				sum += v
			}
			return -0.8*l[label] - 0.2/5*sum
		})},
		{spec: "cross-entropy:shift=1", shape: []int64{1, 4, 5}, want: func(x, t []float64) float64 {
			return overRows(5, 0, ce)(x[:15], t[1:])
		}},
		{spec: "nll", shape: []int64{6, 5}, want: overRows(5, 0, func(x []float64, label int) float64 { return -x[label] })},
		{spec: "nll:ignore-index=2", shape: []int64{9, 5}, ignore: 2, want: overRows(5, 2, func(x []float64, label int) float64 { return -x[label] })},
		{spec: "nll:reduction=sum", shape: []int64{1, 5}, want: func(x, t []float64) float64 { return -x[int(t[0])] }},
	} {
		t.Run(c.spec, func(t *testing.T) {
			g, inputs, x, target := lossGraph(t, c)
			if err := passes.Run(&passes.Context{Options: options(t, "loss", c.spec)}, g, pick(t, []string{"loss"}), passes.Order()); err != nil {
				t.Fatal(err)
			}
			got := evaluate(t, g, inputs, nil)["result loss"]
			if want := c.want(x, target); math.Abs(got.F[0]-want) > 1e-12*(1+math.Abs(want)) {
				t.Errorf("got %v, want %v", got.F[0], want)
			}
		})
	}
}

// lossGraph is the identity on x, with random logits and a target that fits.
func lossGraph(t *testing.T, c lossCase) (g *ir.Graph, inputs map[string]ir.Tensor, x, target []float64) {
	t.Helper()
	r := rand.New(rand.NewPCG(3, 5))
	g = ir.NewGraph("m")
	in := g.AddInput("x", ir.T(ir.F64, c.shape...))
	g.Results = []ir.Result{{Name: "y", Value: in}}
	xt := ir.NewTensor(in.Type)
	for i := range xt.F {
		xt.F[i] = 3 * r.NormFloat64()
	}
	classes := strings.HasPrefix(c.spec, "cross") || strings.HasPrefix(c.spec, "nll")
	tt := ir.NewTensor(in.Type)
	if classes {
		tt = ir.NewTensor(ir.T(ir.I64, c.shape[:len(c.shape)-1]...))
	}
	for i := range tt.F {
		tt.F[i] = r.Float64()
		target = append(target, tt.F[i])
	}
	for i := range tt.I {
		tt.I[i] = r.Int64N(5)
		if c.ignore != 0 && i%3 == 0 {
			tt.I[i] = c.ignore
		}
		target = append(target, float64(tt.I[i]))
	}
	return g, map[string]ir.Tensor{"x": xt, "target": tt}, xt.F, target
}

func options(t *testing.T, kv ...string) passes.Options {
	t.Helper()
	var o passes.Options
	for i := 0; i < len(kv); i += 2 {
		if err := o.Set(kv[i], kv[i+1]); err != nil {
			t.Fatal(err)
		}
	}
	return o
}

// The loss of program eval with "$valid" = k is that of the first k samples alone.
func TestMaskedLoss(t *testing.T) {
	for _, c := range []lossCase{
		{spec: "mse", shape: []int64{4, 3}}, {spec: "bce-logits", shape: []int64{4}}, {spec: "l1:reduction=sum", shape: []int64{4, 2, 2}},
		{spec: "cross-entropy", shape: []int64{4, 5}}, {spec: "cross-entropy:ignore-index=1", shape: []int64{4, 6, 5}, ignore: 1},
		{spec: "cross-entropy:shift=2", shape: []int64{4, 6, 5}}, {spec: "nll", shape: []int64{4, 5}},
	} {
		t.Run(c.spec, func(t *testing.T) {
			const k = 3
			masked, inputs, x, _ := lossGraph(t, c)
			ctx := &passes.Context{Options: options(t, "loss", c.spec, "mask-eval", "true")}
			if err := passes.Run(ctx, masked, pick(t, []string{"loss", "eval"}), passes.Order()); err != nil {
				t.Fatal(err)
			}
			inputs["$valid"] = ir.Tensor{Type: ir.T(ir.I64), I: []int64{k}}
			got := evaluate(t, ctx.Program("eval"), inputs, nil)["result loss"].F[0]

			few := c
			few.shape = append([]int64{k}, c.shape[1:]...)
			plain, fewInputs, _, _ := lossGraph(t, few)
			copy(fewInputs["x"].F, x)
			copy(fewInputs["target"].F, inputs["target"].F)
			copy(fewInputs["target"].I, inputs["target"].I)
			if err := passes.Run(&passes.Context{Options: options(t, "loss", c.spec)}, plain, pick(t, []string{"loss"}), passes.Order()); err != nil {
				t.Fatal(err)
			}
			want := evaluate(t, plain, fewInputs, nil)["result loss"].F[0]
			if math.Abs(got-want) > 1e-12*(1+math.Abs(want)) {
				t.Errorf("got %v, want %v", got, want)
			}
		})
	}
}

// Over batches that differ in what counts, "$sum" and "$count" add up to the mean over all of it.
func TestEvalCounts(t *testing.T) {
	for _, c := range []struct {
		spec  string
		shape []int64
		all   float64 // that counts in 3 samples if no label is ignored; 0: the results are not there
	}{
		{"mse", []int64{4, 3}, 0}, {"cross-entropy", []int64{4, 5}, 0}, {"mse:reduction=sum", []int64{4, 3}, 9}, {"cross-entropy:reduction=sum", []int64{4, 6, 5}, 18},
		{"cross-entropy:ignore-index=1", []int64{4, 6, 5}, 18}, {"nll:ignore-index=1", []int64{4, 5}, 3}, {"cross-entropy:ignore-index=1,reduction=sum,shift=2", []int64{4, 6, 5}, 12},
	} {
		t.Run(c.spec, func(t *testing.T) {
			g, inputs, _, _ := lossGraph(t, lossCase{spec: c.spec, shape: c.shape, ignore: 1})
			ctx := &passes.Context{Options: options(t, "loss", c.spec, "mask-eval", "true")}
			if err := passes.Run(ctx, g, pick(t, []string{"loss", "eval"}), passes.Order()); err != nil {
				t.Fatal(err)
			}
			inputs["$valid"] = ir.Tensor{Type: ir.T(ir.I64), I: []int64{3}}
			ignores := strings.Contains(c.spec, "ignore")
			labels := inputs["target"].I
			clear(labels)
			for _, ignored := range []bool{false, ignores} {
				want := c.all
				if ignored {
					labels[1], want = 1, want-1 // the second sample's of rank 1, else the first sample's second
					if strings.Contains(c.spec, "shift") {
						want++ // nothing predicts the first positions
					}
				}
				got := evaluate(t, ctx.Program("eval"), inputs, nil)
				sum, has := got["result $sum"]
				if has != (c.all > 0) {
					t.Fatalf("results %v", got)
				}
				if !has {
					return
				}
				count, mean := got["result $count"].F[0], got["result loss"].F[0]
				if strings.Contains(c.spec, "sum") {
					mean /= count
				}
				if count != want || math.Abs(sum.F[0]-mean*count) > 1e-12*math.Abs(sum.F[0]) {
					t.Errorf("sum %v of %v (want %v), mean %v", sum.F[0], count, want, mean)
				}
			}
		})
	}
}

func TestChooseLoss(t *testing.T) {
	for _, c := range []struct {
		out, target ir.Type
		want        string
	}{
		{ir.T(ir.F32, 8, 10), ir.T(ir.I64, 8), "cross-entropy"},
		{ir.T(ir.F32, 8, 10), ir.T(ir.U8, 8), "cross-entropy"},
		{ir.T(ir.F32, 8, 32, 100), ir.T(ir.I64, 8, 32), "cross-entropy"},
		{ir.T(ir.F32, 8, 4, 16, 16), ir.T(ir.I64, 8, 16, 16), "cross-entropy:axis=1"},
		{ir.T(ir.F32, 8, 10), ir.T(ir.F32, 8, 10), "mse"},
		{ir.T(ir.F32, 8, 10), ir.T(ir.F32, 8), ""},
		{ir.T(ir.F32, 8, 10), ir.T(ir.I64, 10), ""},
		{ir.T(ir.F32, 8), ir.T(ir.I64, 8), ""},
		{ir.T(ir.I64, 8, 10), ir.T(ir.I64, 8), ""},
	} {
		l, ok := passes.ChooseLoss(c.out, c.target)
		if got := l.String(); ok != (c.want != "") || ok && got != c.want {
			t.Errorf("%v with target %v: got %q, %v; want %q", c.out, c.target, got, ok, c.want)
		}
	}
	g := ir.NewGraph("m")
	g.Results = []ir.Result{{Name: "y", Value: g.AddInput("x", ir.T(ir.F32, 8, 10))}}
	ctx := &passes.Context{Options: passes.Options{Target: ir.T(ir.U8, 8)}}
	if err := passes.Run(ctx, g, pick(t, []string{"loss"}), nil); err != nil {
		t.Fatal(err)
	}
	if len(ctx.Notes) != 1 || !strings.Contains(ctx.Notes[0], "cross-entropy") || ctx.Options.Loss.Name != "cross-entropy" {
		t.Errorf("the choice is not told: %q", ctx.Notes)
	}
}
