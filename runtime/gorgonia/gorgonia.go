// Package gorgonia is an oracle for gradients: it rebuilds the forward half of an ir.Graph as an expression graph of gorgonia.org/gorgonia,
// and Gorgonia differentiates and runs it, in float64. It shares no arithmetic with ops, passes and devices: of an op it takes the attributes, never Eval,
// Decompose or Grad. For tests only; nothing of the product imports it, and it knows neither passes nor plans.
//
// It builds what a multi-layer perceptron and a convolutional network need, from few of Gorgonia's primitives: element-wise functions, products of
// matrices, Conv2d, MaxPool2D and Reshape. Broadcasts and reductions are products with matrices of ones, so that Gorgonia's broadcasting, whose
// gradients do not cover every shape, is not used.
//
// Invariants: a value of rank 0 or 1 is a matrix with leading extents of 1 there, since Gorgonia treats scalars and vectors as kinds of their own; an
// op or a geometry that is not covered is an error that names the node, never a wrong number.
//
//	want, err := gorgonia.Differentiate(graph, "loss", inputs, params)
//	want.Grads["fc1.weight"].F // the gradient, float64
package gorgonia

import (
	"errors"
	"fmt"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"aitk/ir"
)

// Gradients is what Gorgonia says about one evaluation of a graph.
type Gradients struct {
	Loss  float64
	Grads map[string]ir.Tensor // by parameter: the trainable ones on which the loss depends
}

// Differentiate evaluates the result called loss, which has one element, and its gradients. Of g it reads only the nodes that the loss depends on.
// inputs and params need a tensor of the declared type for each leaf among them; floats are taken as they are, in float64. Errors are
// *ir.Error; all ops that are not covered are listed at once.
func Differentiate(g *ir.Graph, loss string, inputs, params map[string]ir.Tensor) (*Gradients, error) {
	v := g.Result(loss)
	if v == nil || v.Type.Elems() != 1 {
		return nil, &ir.Error{Kind: ir.Usage, Cause: fmt.Errorf("graph %q has no result %q of one element", g.Name, loss)}
	}
	b := newBuilder(g, v)
	if err := b.leaves(g, inputs, params); err != nil {
		return nil, err
	}
	if err := b.all(g); err != nil {
		return nil, err
	}
	return b.run(g, v)
}

// run lets Gorgonia differentiate and evaluate.
func (b *builder) run(g *ir.Graph, loss *ir.Value) (*Gradients, error) {
	fail := func(what string, err error) (*Gradients, error) {
		return nil, &ir.Error{Kind: ir.Failed, Cause: fmt.Errorf("gorgonia, %s graph %q: %w", what, g.Name, err)}
	}
	cost, err := G.Sum(b.nodes[loss.ID])
	if err != nil {
		return fail("summing the loss of", err)
	}
	var wrt []*ir.Param
	var leaves G.Nodes
	for _, p := range g.Params {
		if p.Trainable && b.needed[p.ID] {
			wrt = append(wrt, p)
			leaves = append(leaves, b.nodes[p.ID])
		}
	}
	out := &Gradients{Grads: map[string]ir.Tensor{}}
	grads := G.Nodes{}
	if len(leaves) > 0 {
		if grads, err = G.Grad(cost, leaves...); err != nil {
			return fail("differentiating", err)
		}
	}
	values := make([]G.Value, len(grads)+1)
	G.Read(cost, &values[0]) // registers of the machine are used again; what is read is kept
	for i, n := range grads {
		G.Read(n, &values[i+1])
	}
	machine := G.NewTapeMachine(b.g)
	if err := errors.Join(machine.RunAll(), machine.Close()); err != nil {
		return fail("running", err)
	}
	if out.Loss, err = scalar(values[0]); err != nil {
		return fail("reading the loss of", err)
	}
	for i, p := range wrt {
		x, ok := values[i+1].Data().([]float64)
		if !ok && p.Type.Elems() == 1 {
			var one float64
			one, err = scalar(values[i+1])
			x, ok = []float64{one}, err == nil
		}
		if !ok || int64(len(x)) != p.Type.Elems() {
			return fail("reading the gradients of", fmt.Errorf("that of %q is %v", p.Name, values[i+1].Shape()))
		}
		out.Grads[p.Name] = ir.Tensor{Type: p.Type, F: append([]float64{}, x...)}
	}
	return out, nil
}

func scalar(v G.Value) (float64, error) {
	switch x := v.Data().(type) {
	case float64:
		return x, nil
	case []float64:
		if len(x) == 1 {
			return x[0], nil
		}
	}
	return 0, fmt.Errorf("it is a %T of shape %v", v.Data(), v.Shape())
}

// builder makes the expression graph.
type builder struct {
	g      *G.ExprGraph
	needed []bool      // by value ID: the loss depends on it
	nodes  []*G.Node   // by value ID: floats
	data   []ir.Tensor // by value ID: integers, which carry no gradient and are known while the graph is built
	leaf   int         // number of the next unnamed leaf
}

func newBuilder(g *ir.Graph, loss *ir.Value) *builder {
	n := g.NumValues()
	b := &builder{g: G.NewGraph(), needed: make([]bool, n), nodes: make([]*G.Node, n), data: make([]ir.Tensor, n)}
	b.needed[loss.ID] = true
	for i := len(g.Nodes) - 1; i >= 0; i-- {
		for _, v := range g.Nodes[i].Out {
			if b.needed[v.ID] {
				for _, x := range g.Nodes[i].In {
					b.needed[x.ID] = true
				}
			}
		}
	}
	return b
}

// leaves makes a leaf of every input, parameter and literal that is needed.
func (b *builder) leaves(g *ir.Graph, inputs, params map[string]ir.Tensor) error {
	var problems []error
	add := func(what string, v *ir.Value, t ir.Tensor, ok bool) {
		switch {
		case !b.needed[v.ID]:
		case !ok || !t.Type.Equal(v.Type) || int64(len(t.F)+len(t.I)) != v.Type.Elems():
			problems = append(problems, fmt.Errorf("%s %q has no tensor of type %v", what, v.Name, v.Type))
		case v.Type.Elems() == 0:
			problems = append(problems, fmt.Errorf("%s %q is empty, which Gorgonia does not know", what, v.Name))
		case t.F == nil:
			b.data[v.ID] = t
		default:
			b.nodes[v.ID] = b.constant(v.Type.Shape, t.F)
		}
	}
	for _, v := range g.Inputs {
		t, ok := inputs[v.Name]
		add("input", v, t, ok)
	}
	for _, p := range g.Params {
		t, ok := params[p.Name]
		add("parameter", p.Value, t, ok)
	}
	for _, c := range g.Consts {
		t, err := ir.DecodeTensor(c.Type, c.Data)
		add("literal", c.Value, t, err == nil)
	}
	if len(problems) == 0 {
		return nil
	}
	return &ir.Error{Kind: ir.Usage, Cause: fmt.Errorf("graph %q: %w", g.Name, errors.Join(problems...))}
}

// matrix is the shape that a value has in Gorgonia: rank 2 at least.
func matrix(s ir.Shape) tensor.Shape {
	var out tensor.Shape
	for range 2 - len(s) {
		out = append(out, 1)
	}
	for _, d := range s {
		out = append(out, int(d))
	}
	return out
}

// constant is a leaf with content.
func (b *builder) constant(s ir.Shape, x []float64) *G.Node {
	shape := matrix(s)
	b.leaf++
	return G.NewTensor(b.g, tensor.Float64, len(shape), G.WithShape(shape...), G.WithName(fmt.Sprint("leaf", b.leaf)),
		G.WithValue(tensor.New(tensor.WithShape(shape...), tensor.WithBacking(append([]float64{}, x...)))))
}

// filled is a constant of one number.
func (b *builder) filled(s ir.Shape, x float64) *G.Node {
	all := make([]float64, s.Elems())
	for i := range all {
		all[i] = x
	}
	return b.constant(s, all)
}
