package gorgonia

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"

	"aitk/ir"
	"aitk/ir/op"
	"aitk/runtime/ref"
)

// weigh gives the gradient that arrives at a result: numbers that differ.
func weigh(t ir.Type) ir.Tensor {
	w := ir.NewTensor(t)
	for i := range w.F {
		w.F[i] = math.Sin(float64(3*i + 1))
	}
	return w
}

// graphs are the two ways to the gradients of sum(weights * op(operands)): the forward graph, and ours with the op's own Grad.
func graphs(s ir.Sample) (forward, both *ir.Graph, inputs, params map[string]ir.Tensor) {
	inputs, params = map[string]ir.Tensor{}, map[string]ir.Tensor{}
	for name, x := range operands(s) {
		if x.Type.DType.IsFloat() {
			params[name] = x
		} else {
			inputs[name] = x
		}
	}
	begin := func(name string) (*ir.Builder, []*ir.Value) {
		b := &ir.Builder{G: ir.NewGraph(name)}
		all := make([]*ir.Value, len(s.In))
		for i := range s.In {
			name := fmt.Sprint(i)
			if x, ok := params[name]; ok {
				p := b.G.AddParam(name, x.Type)
				p.Trainable = true
				all[i] = p.Value
			} else {
				all[i] = b.G.AddInput(name, inputs[name].Type)
			}
		}
		return b, b.Multi(s.Op, all...)
	}
	b, y := begin("forward")
	if t := y[0].Type; t.DType.IsFloat() && t.Space == ir.Device {
		axes := make([]int64, len(t.Shape))
		for a := range axes {
			axes[a] = int64(a)
		}
		weighted := b.Add(op.Mul{}, y[0], b.G.AddConst(t, weigh(t).Encode()))
		b.G.Results = []ir.Result{{Name: "loss", Value: b.Add(op.ReduceSum{Axes: axes}, weighted)}}
	}
	forward = b.G
	d, ok := s.Op.(ir.Differentiable)
	if !ok || !y[0].Type.DType.IsFloat() {
		return forward, nil, inputs, params
	}
	b, y = begin("both")
	arriving := make([]*ir.Value, len(y))
	arriving[0] = b.G.AddConst(y[0].Type, weigh(y[0].Type).Encode())
	for i, g := range d.Grad(b, b.G.Nodes[0], arriving) {
		if g != nil {
			b.G.Results = append(b.G.Results, ir.Result{Name: fmt.Sprint(i), Value: g})
		}
	}
	return forward, b.G, inputs, params
}

// operands are a sample's tensors by number, floats as f64.
func operands(s ir.Sample) map[string]ir.Tensor {
	out := map[string]ir.Tensor{}
	for i, x := range s.In {
		x.Type = ir.T(x.Type.DType, x.Type.Shape...)
		if x.Type.DType.IsFloat() {
			x.Type.DType = ir.F64
		}
		out[fmt.Sprint(i)] = x
	}
	return out
}

// Gorgonia's gradients of every op that it covers equal ours, over the ops' own samples.
func TestOps(t *testing.T) {
	want := []string{"Abs", "Add", "Cast", "Conv", "Cos", "Div", "Exp", "Expand", "Log", "LogSoftmax", "MatMul", "MaxPool", "Mul", "Neg",
		"Reciprocal", "ReduceMean", "ReduceSum", "Relu", "Reshape", "Rsqrt", "Sigmoid", "Sin", "Softmax", "SoftmaxCrossEntropy", "Softplus", "Sqrt", "Sub", "Tanh"}
	covered := map[string]int{}
	for _, o := range op.All() {
		t.Run(ir.OpName(o), func(t *testing.T) {
			samples := o.(ir.Sampler).Samples()
			switch o.(type) {
			case op.Relu, op.Abs: // at the kink
				samples = append(samples, ir.Sample{Op: o, In: []ir.Tensor{{Type: ir.T(ir.F32, 4), F: []float64{0, math.Copysign(0, -1), 1, -1}}}})
			}
			for i, s := range samples {
				if s.Err == "" && len(s.In) > 0 && finite(s) && compare(t, fmt.Sprintf("sample %d, %s", i, ir.FormatOp(s.Op)), s) {
					covered[ir.OpName(o)]++
				}
			}
		})
	}
	if got := slices.Sorted(maps.Keys(covered)); !slices.Equal(got, want) {
		t.Errorf("covered are %v, want %v", got, want)
	}
	t.Log(covered)
}

// finite tells whether a sample's operands are numbers.
func finite(s ir.Sample) bool {
	for _, x := range s.In {
		for _, v := range x.F {
			if math.IsNaN(v) || math.IsInf(v, 0) {
				return false
			}
		}
	}
	return true
}

// compare tells whether the sample is covered.
func compare(t *testing.T, what string, s ir.Sample) bool {
	if c, ok := s.Op.(op.Cast); ok && c.To.IsFloat() {
		s.Op = op.Cast{To: ir.F64}
	}
	types := make([]ir.Type, len(s.In))
	for i := range s.In {
		types[i] = operands(s)[fmt.Sprint(i)].Type
	}
	if _, err := s.Op.Infer(types); err != nil {
		return false // an op that insists on a narrow type
	}
	forward, both, inputs, params := graphs(s)
	if len(forward.Results) == 0 || both == nil {
		return false
	}
	loss, _, err := ref.Run(forward, inputs, params)
	if err != nil {
		t.Fatal(err)
	}
	x := loss["loss"].F[0]
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return false
	}
	got, err := Differentiate(forward, "loss", inputs, params)
	if ir.KindOf(err) == ir.Unsupported && err != nil || err != nil && strings.Contains(err.Error(), "empty") {
		return false
	}
	if err != nil {
		t.Errorf("%s: %v", what, err)
		return false
	}
	ours, _, err := ref.Run(both, inputs, params)
	if err != nil {
		t.Fatal(err)
	}
	if !near(got.Loss, x, math.Abs(x)) {
		t.Errorf("%s: the value is %v in Gorgonia, ours %v", what, got.Loss, x)
	}
	for name, x := range ours {
		largest := 0.0
		for _, v := range x.F {
			largest = max(largest, math.Abs(v))
		}
		for i, v := range x.F {
			if g := got.Grads[name].F[i]; !near(g, v, largest) {
				t.Errorf("%s: gradient to operand %s is %v at %d in Gorgonia, ours %v", what, name, g, i, v)
				break
			}
		}
	}
	return true
}

func near(a, b, scale float64) bool { return math.Abs(a-b) <= 1e-12*max(scale, 1) }

// What is not covered is listed, all of it, with the node; other bad input is refused as such.
func TestRefusals(t *testing.T) {
	g := ir.NewGraph("net")
	b := &ir.Builder{G: g, Origin: ir.Origin{Node: "here"}}
	w := g.AddParam("w", ir.T(ir.F32, 2, 3))
	w.Trainable = true
	y := b.Add(op.Floor{}, b.Add(op.Erf{}, b.Add(op.Exp{}, w.Value)))
	b.Add(op.Gelu{}, w.Value) // the loss does not need it
	g.Results = []ir.Result{{Name: "loss", Value: b.Add(op.ReduceSum{Axes: []int64{0, 1}}, y)}, {Name: "y", Value: y}}
	content := map[string]ir.Tensor{"w": ir.NewTensor(w.Type)}
	for _, c := range []struct {
		loss    string
		params  map[string]ir.Tensor
		kind    ir.Kind
		want    []string
		without string
	}{
		{"loss", content, ir.Unsupported, []string{"Erf is not covered", "Floor is not covered", "here"}, "Gelu"},
		{"loss", nil, ir.Usage, []string{`parameter "w" has no tensor of type f32[2,3]`}, "Erf"},
		{"y", content, ir.Usage, []string{`no result "y" of one element`}, "Erf"},
		{"none", content, ir.Usage, []string{`no result "none"`}, "Erf"},
	} {
		_, err := Differentiate(g, c.loss, nil, c.params)
		if err == nil || ir.KindOf(err) != c.kind {
			t.Fatalf("%s: %v", c.loss, err)
		}
		for _, want := range c.want {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%v does not say %q", err, want)
			}
		}
		if strings.Contains(err.Error(), c.without) {
			t.Errorf("%v speaks of %s", err, c.without)
		}
	}
}
