// Package ref is the reference interpreter: it evaluates an ir.Graph node by node with the ops' own Eval, and is the oracle for devices,
// passes and gradients. It knows no plan, no arena and no device, and it is slow.
//
// Meaning of numbers: floats are float64 throughout. Values of f32 are not rounded, so that a graph of f32 gives the float64 results that a
// device's are judged by; f16 and bf16 are rounded after each node, since their range and precision are part of what a model does; integers
// wrap at their width. Recomputes run like any node, swaps copy: where a pass put them must not change a bit.
//
// Invariants: a tensor is never changed once it is made, so results and parameters may share memory with inputs; a failed run changes
// no parameter.
package ref

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"aitk/ir"
	"aitk/ir/op"
)

// Interpreter keeps parameters from one run to the next, by name. The programs of one model (step, update, eval) run on one Interpreter.
type Interpreter struct {
	params map[string]ir.Tensor
}

// New starts with these parameters. The map is copied, the tensors are not.
func New(params map[string]ir.Tensor) *Interpreter {
	return &Interpreter{params: maps.Clone(params)}
}

// Params is a copy of the map of all parameters as they are now.
func (x *Interpreter) Params() map[string]ir.Tensor { return maps.Clone(x.params) }

// Run evaluates g once: it returns the results and keeps the new contents of parameters. inputs needs a tensor of the declared type for every input of g, and may
// hold more. Errors are *ir.Error and name the node; what is missing is listed all at once.
func (x *Interpreter) Run(g *ir.Graph, inputs map[string]ir.Tensor) (map[string]ir.Tensor, error) {
	results, changed, err := Run(g, inputs, x.params)
	if err != nil {
		return nil, err
	}
	if x.params == nil {
		x.params = map[string]ir.Tensor{}
	}
	maps.Copy(x.params, changed)
	return results, nil
}

// Run evaluates g once. newParams holds the parameters that the graph updates, and those alone.
func Run(g *ir.Graph, inputs, params map[string]ir.Tensor) (results, newParams map[string]ir.Tensor, err error) {
	values := make([]ir.Tensor, g.NumValues())
	var problems []error
	leaf := func(what string, v *ir.Value, given map[string]ir.Tensor) {
		t, ok := given[v.Name]
		switch {
		case !ok:
			problems = append(problems, fmt.Errorf("%s %q is missing", what, v.Name))
		case !t.Type.Equal(v.Type):
			problems = append(problems, fmt.Errorf("%s %q is %v, the graph wants %v", what, v.Name, t.Type, v.Type))
		case int64(len(t.F)+len(t.I)) != v.Type.Elems():
			problems = append(problems, fmt.Errorf("%s %q has %d elements, %v needs %d", what, v.Name, len(t.F)+len(t.I), v.Type, v.Type.Elems()))
		}
		values[v.ID] = t
	}
	for _, v := range g.Inputs {
		leaf("input", v, inputs)
	}
	for _, p := range g.Params {
		leaf("parameter", p.Value, params)
	}
	for _, c := range g.Consts {
		t, err := ir.DecodeTensor(c.Type, c.Data)
		if err != nil {
			problems = append(problems, fmt.Errorf("constant %%%d: %w", c.ID, err))
		}
		values[c.ID] = t
	}
	if len(problems) != 0 {
		return nil, nil, &ir.Error{Cause: fmt.Errorf("graph %q: %w", g.Name, errors.Join(problems...))}
	}
	if err := nodes(g, values); err != nil {
		return nil, nil, err
	}
	results, newParams = map[string]ir.Tensor{}, map[string]ir.Tensor{}
	for _, r := range g.Results {
		results[r.Name] = values[r.Value.ID]
	}
	for _, p := range g.Params {
		if p.Next != nil {
			newParams[p.Name] = values[p.Next.ID]
		}
	}
	return results, newParams, nil
}

// nodes runs all nodes in order. Values that nothing needs any more are let go, so that a training step of a real model fits in memory.
func nodes(g *ir.Graph, values []ir.Tensor) error {
	left := make([]int, g.NumValues())
	for id, users := range g.Users() {
		left[id] = len(users)
	}
	for id, kept := range g.Kept() {
		if kept {
			left[id]++
		}
	}
	for _, n := range g.Nodes {
		in := make([]ir.Tensor, len(n.In))
		for i, v := range n.In {
			in[i] = values[v.ID]
		}
		out := make([]ir.Tensor, len(n.Out))
		for i, v := range n.Out {
			out[i] = ir.NewTensor(v.Type)
		}
		if err := eval(n, in, out); err != nil {
			return err
		}
		for i, v := range n.Out {
			if left[v.ID] > 0 {
				values[v.ID] = out[i]
			}
		}
		for _, v := range n.In {
			if left[v.ID]--; left[v.ID] == 0 {
				values[v.ID] = ir.Tensor{}
			}
		}
	}
	return nil
}

// eval runs one node and rounds what it made.
func eval(n *ir.Node, in, out []ir.Tensor) error {
	defer func() {
		// Our bug, not the user's: say at which node, and go on falling.
		if r := recover(); r != nil {
			panic(ir.Bugf("evaluating %s: %v", n.Line(), r))
		}
	}()
	if err := op.CheckData(n.Op, in); err != nil {
		return located(n, err)
	}
	switch o := n.Op.(type) {
	case ir.Evaluator:
		o.Eval(in, out)
	case ir.Decomposer:
		if err := decomposed(o, in, out); err != nil {
			return located(n, err)
		}
	default:
		return located(n, fmt.Errorf("%s has neither a meaning of its own nor simpler ops to be made of", ir.OpName(n.Op)))
	}
	for _, t := range out {
		if t.Type.DType != ir.F32 {
			t.Round()
		}
	}
	return nil
}

// located names the node: where the model's file has it, and its line.
func located(n *ir.Node, err error) error {
	return &ir.Error{Origin: n.Origin, Kind: ir.KindOf(err), Cause: fmt.Errorf("%w (at %s)", err, n.Line())}
}

// decomposed evaluates an op by the simpler ones it stands for.
func decomposed(o ir.Decomposer, in, out []ir.Tensor) error {
	g := ir.NewGraph(ir.OpName(o))
	inputs := map[string]ir.Tensor{}
	var vs []*ir.Value
	for i, t := range in {
		name := fmt.Sprint(i)
		vs = append(vs, g.AddInput(name, t.Type))
		inputs[name] = t
	}
	for i, v := range o.Decompose(&ir.Builder{G: g}, vs) {
		g.Results = append(g.Results, ir.Result{Name: fmt.Sprint(i), Value: v})
	}
	results, _, err := Run(g, inputs, nil)
	if err != nil {
		return err
	}
	for i := range out {
		r := results[fmt.Sprint(i)]
		if !r.Type.Equal(out[i].Type) {
			panic(ir.Bugf("%s decomposes to %v, its shape rule says %v", ir.FormatOp(o), r.Type, out[i].Type))
		}
		out[i].F, out[i].I = slices.Clone(r.F), slices.Clone(r.I)
	}
	return nil
}
