package op_test

import (
	"fmt"

	"aitk/ir"
)

// run computes an op on tensors, by Eval or else by Decompose, without rounding floats. It is the whole evaluator that these tests
// judge with; it shares nothing with runtime/ref.
func run(o ir.Op, in []ir.Tensor) []ir.Tensor {
	e, ok := o.(ir.Evaluator)
	if !ok {
		return runDecomposed(o.(ir.Decomposer), in)
	}
	types, err := o.Infer(typesOf(in))
	if err != nil {
		panic(fmt.Sprintf("%s: %v", ir.OpName(o), err))
	}
	out := make([]ir.Tensor, len(types))
	for i, t := range types {
		out[i] = ir.NewTensor(t)
	}
	e.Eval(in, out)
	for _, t := range out {
		if !t.Type.DType.IsFloat() {
			t.Round()
		}
	}
	return out
}

// runDecomposed computes an op by the ops it is made of.
func runDecomposed(o ir.Decomposer, in []ir.Tensor) []ir.Tensor {
	g := ir.NewGraph("decomposed")
	values := make(map[*ir.Value]ir.Tensor)
	var operands []*ir.Value
	for i, t := range in {
		v := g.AddInput(fmt.Sprint(i), t.Type)
		operands = append(operands, v)
		values[v] = t
	}
	outs := o.Decompose(&ir.Builder{G: g}, operands)
	runGraph(g, values)
	var out []ir.Tensor
	for _, v := range outs {
		out = append(out, values[v])
	}
	return out
}

// runGraph adds the values of constants and nodes to those of the inputs.
func runGraph(g *ir.Graph, values map[*ir.Value]ir.Tensor) {
	for _, c := range g.Consts {
		t, err := ir.DecodeTensor(c.Type, c.Data)
		if err != nil {
			panic(err)
		}
		values[c.Value] = t
	}
	for _, n := range g.Nodes {
		var in []ir.Tensor
		for _, v := range n.In {
			in = append(in, values[v])
		}
		for i, t := range run(n.Op, in) {
			values[n.Out[i]] = t
		}
	}
}

func typesOf(in []ir.Tensor) []ir.Type {
	var types []ir.Type
	for _, t := range in {
		types = append(types, t.Type)
	}
	return types
}

func cloneTensors(in []ir.Tensor) []ir.Tensor {
	var out []ir.Tensor
	for _, t := range in {
		c := ir.NewTensor(t.Type)
		copy(c.F, t.F)
		copy(c.I, t.I)
		out = append(out, c)
	}
	return out
}
