package onnxgo

import (
	"errors"
	"fmt"

	"gorgonia.org/tensor"

	"aitk/importer"
	"aitk/ir"
)

// Run computes every node that no operation reads and puts its tensor there. Tensors that have content, inputs among them, are taken as they are. It
// evaluates by the ops' own definition, in float64 with each result rounded to its type: for tests and examples, not for work.
func (g *Graph) Run() error {
	raw, err := g.encode(nil, nil)
	if err != nil {
		return err
	}
	known := map[string]ir.Tensor{}
	for _, n := range g.nodes {
		if n.value == nil || n.made || n.name == "" {
			continue
		}
		if known[n.name], err = decoded(n.value); err != nil {
			return fmt.Errorf("tensor %q: %w", n.name, err)
		}
	}
	m, err := importer.ImportBytes("onnx-go", raw, importer.Options{Inputs: known})
	if err != nil {
		return err
	}
	values, err := evaluate(m.Graph)
	if err != nil {
		return err
	}
	results := g.results(nil)
	for i, r := range m.Graph.Results {
		if results[i].value, err = encoded(values[r.Value.ID]); err != nil {
			return fmt.Errorf("output %q: %w", r.Name, err)
		}
	}
	return nil
}

// evaluate runs what the importer left of a graph whose inputs are all known.
func evaluate(g *ir.Graph) ([]ir.Tensor, error) {
	values := make([]ir.Tensor, g.NumValues())
	for _, c := range g.Consts {
		x, err := ir.DecodeTensor(c.Type, c.Data)
		if err != nil {
			return nil, err
		}
		values[c.ID] = x
	}
	for _, p := range g.Params {
		if p.Init.Kind != ir.InitLiteral {
			return nil, fmt.Errorf("parameter %q has no content", p.Name)
		}
		x, err := ir.DecodeTensor(p.Type, p.Init.Literal)
		if err != nil {
			return nil, err
		}
		values[p.ID] = x
	}
	if len(g.Inputs) > 0 {
		return nil, errors.New("random numbers and dropout in training are not for Run")
	}
	for _, n := range g.Nodes {
		e, ok := n.Op.(ir.Evaluator)
		if !ok {
			return nil, fmt.Errorf("%s cannot be evaluated", ir.OpName(n.Op))
		}
		in, out := make([]ir.Tensor, len(n.In)), make([]ir.Tensor, len(n.Out))
		for i, v := range n.In {
			in[i] = values[v.ID]
			in[i].Type = v.Type
		}
		for i, v := range n.Out {
			out[i] = ir.NewTensor(v.Type)
		}
		e.Eval(in, out)
		for i, v := range n.Out {
			out[i].Round()
			values[v.ID] = out[i]
		}
	}
	return values, nil
}

// decoded copies a tensor of Gorgonia's into one of ours.
func decoded(t tensor.Tensor) (ir.Tensor, error) {
	shape := ir.Shape{}
	for _, d := range t.Shape() {
		shape = append(shape, int64(d))
	}
	var x ir.Tensor
	switch v := listOf(t.Data()).(type) {
	case []float32:
		x = ir.NewTensor(ir.Type{DType: ir.F32, Shape: shape})
		for i, e := range v {
			x.F[i] = float64(e)
		}
	case []float64:
		x = ir.NewTensor(ir.Type{DType: ir.F64, Shape: shape})
		copy(x.F, v)
	case []int64:
		x = ir.NewTensor(ir.Type{DType: ir.I64, Shape: shape})
		copy(x.I, v)
	case []int32:
		x = ir.NewTensor(ir.Type{DType: ir.I32, Shape: shape})
		for i, e := range v {
			x.I[i] = int64(e)
		}
	case []bool:
		x = ir.NewTensor(ir.Type{DType: ir.Bool, Shape: shape})
		for i, e := range v {
			if e {
				x.I[i] = 1
			}
		}
	default:
		return x, fmt.Errorf("element type %v is not supported", t.Dtype())
	}
	return x, nil
}

// encoded is the inverse of decoded.
func encoded(x ir.Tensor) (tensor.Tensor, error) {
	shape := make(tensor.Shape, len(x.Type.Shape))
	for i, d := range x.Type.Shape {
		shape[i] = int(d)
	}
	var data any
	switch x.Type.DType {
	case ir.F32:
		data = converted(x.F, func(v float64) float32 { return float32(v) })
	case ir.F64:
		data = x.F
	case ir.I64:
		data = x.I
	case ir.I32:
		data = converted(x.I, func(v int64) int32 { return int32(v) })
	case ir.Bool:
		data = converted(x.I, func(v int64) bool { return v != 0 })
	default:
		return nil, fmt.Errorf("%v is not supported", x.Type)
	}
	if x.Type.Elems() == 0 {
		return nil, errors.New("a tensor without elements is not supported")
	}
	return tensor.New(tensor.WithShape(shape...), tensor.WithBacking(data)), nil
}

func converted[A, B any](list []A, f func(A) B) []B {
	out := make([]B, len(list))
	for i, x := range list {
		out[i] = f(x)
	}
	return out
}
