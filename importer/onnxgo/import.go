package onnxgo

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/owulveryck/onnx-go"
	"google.golang.org/protobuf/proto"
	"gorgonia.org/tensor"

	"aitk/importer"
	"aitk/importer/onnxpb"
	"aitk/ir"
)

// Import makes a graph of what onnx-go decoded: the model's inputs are its inputs, in their order; every tensor with content is a parameter or a constant
// by the importer's rules. Inputs must have fixed shapes: onnx-go does not hand on symbolic dimensions, so an input that has some gets a tensor of the
// wanted shape first (model.SetInput).
func (g *Graph) Import(model *onnx.Model, opt importer.Options) (*importer.Model, error) {
	raw, err := g.encode(model.Input, model.Output)
	if err != nil {
		return nil, err
	}
	return importer.ImportBytes("onnx-go", raw, opt)
}

// encode writes an ONNX model; the node without a name stands for operands that are left out. Without inputs and outputs (nil) every tensor with content is an input, and every node that nobody reads an output.
func (g *Graph) encode(inputs, outputs []int64) ([]byte, error) {
	p := &onnxpb.GraphProto{Name: proto.String("onnx-go")}
	opset := g.Opset
	if opset == 0 {
		opset = DefaultOpset
	}
	var errs []error
	isInput := map[int64]bool{}
	for _, id := range inputs {
		isInput[id] = true
	}
	for _, n := range g.nodes {
		if n.made || n.name == "" || n.value == nil || slices.Contains(outputs, n.id) {
			continue
		}
		t, err := encodeTensor(n.name, n.value)
		if err != nil {
			errs = append(errs, fmt.Errorf("tensor %q: %w", n.name, err))
			continue
		}
		if inputs == nil || isInput[n.id] {
			p.Input = append(p.Input, valueInfo(n.name, t))
		} else if g.read(n) {
			p.Initializer = append(p.Initializer, t)
		}
	}
	for i, c := range g.calls {
		node := &onnxpb.NodeProto{OpType: proto.String(c.op.Name), Name: proto.String(fmt.Sprintf("%s_%d", c.op.Name, i))}
		for _, n := range c.in {
			node.Input = append(node.Input, n.name)
		}
		for len(node.Input) > 0 && node.Input[len(node.Input)-1] == "" {
			node.Input = node.Input[:len(node.Input)-1]
		}
		for _, n := range c.out {
			node.Output = append(node.Output, n.name)
		}
		for _, name := range slices.Sorted(maps.Keys(c.op.Attributes)) {
			a, err := encodeAttribute(name, c.op.Attributes[name])
			if err != nil {
				errs = append(errs, fmt.Errorf("operation %s: %w", c.op.Name, err))
				continue
			}
			node.Attribute = append(node.Attribute, a)
		}
		p.Node = append(p.Node, node)
	}
	for _, n := range g.results(outputs) {
		p.Output = append(p.Output, &onnxpb.ValueInfoProto{Name: proto.String(n.name)})
	}
	if len(errs) > 0 {
		return nil, &ir.Error{Kind: ir.Unsupported, Cause: errors.Join(errs...)}
	}
	return proto.MarshalOptions{Deterministic: true}.Marshal(&onnxpb.ModelProto{IrVersion: proto.Int64(4), ProducerName: proto.String("onnx-go"), Graph: p,
		OpsetImport: []*onnxpb.OperatorSetIdProto{{Version: proto.Int64(opset)}}})
}

// read tells whether an operation reads a node.
func (g *Graph) read(n *Node) bool {
	return slices.ContainsFunc(g.calls, func(c call) bool { return slices.Contains(c.in, n) })
}

// results lists the named outputs, or what is made and not read.
func (g *Graph) results(ids []int64) []*Node {
	var list []*Node
	for _, id := range ids {
		list = append(list, g.nodes[id])
	}
	for _, c := range g.calls {
		for _, n := range c.out {
			if ids == nil && n.name != "" && !g.read(n) {
				list = append(list, n)
			}
		}
	}
	return list
}

func valueInfo(name string, t *onnxpb.TensorProto) *onnxpb.ValueInfoProto {
	shape := &onnxpb.TensorShapeProto{}
	for _, d := range t.Dims {
		shape.Dim = append(shape.Dim, &onnxpb.TensorShapeProto_Dimension{Value: &onnxpb.TensorShapeProto_Dimension_DimValue{DimValue: d}})
	}
	return &onnxpb.ValueInfoProto{Name: proto.String(name), Type: &onnxpb.TypeProto{Value: &onnxpb.TypeProto_TensorType{
		TensorType: &onnxpb.TypeProto_Tensor{ElemType: t.DataType, Shape: shape}}}}
}

// encodeTensor copies a tensor of Gorgonia's into the schema's.
func encodeTensor(name string, t tensor.Tensor) (*onnxpb.TensorProto, error) {
	p := &onnxpb.TensorProto{Name: proto.String(name)}
	for _, d := range t.Shape() {
		p.Dims = append(p.Dims, int64(d))
	}
	set := func(d onnxpb.TensorProto_DataType) { p.DataType = proto.Int32(int32(d)) }
	switch x := listOf(t.Data()).(type) {
	case []float32:
		set(onnxpb.TensorProto_FLOAT)
		p.FloatData = x
	case []float64:
		set(onnxpb.TensorProto_DOUBLE)
		p.DoubleData = x
	case []int64:
		set(onnxpb.TensorProto_INT64)
		p.Int64Data = x
	case []int32:
		set(onnxpb.TensorProto_INT32)
		p.Int32Data = x
	case []bool:
		set(onnxpb.TensorProto_BOOL)
		for _, b := range x {
			v := int32(0)
			if b {
				v = 1
			}
			p.Int32Data = append(p.Int32Data, v)
		}
	default:
		return nil, fmt.Errorf("element type %v is not supported", t.Dtype())
	}
	return p, nil
}

// listOf makes a list of a scalar.
func listOf(x any) any {
	switch x := x.(type) {
	case float32:
		return []float32{x}
	case float64:
		return []float64{x}
	case int64:
		return []int64{x}
	case int32:
		return []int32{x}
	case bool:
		return []bool{x}
	}
	return x
}

// encodeAttribute is the inverse of what onnx-go does to attributes.
func encodeAttribute(name string, value any) (*onnxpb.AttributeProto, error) {
	a := &onnxpb.AttributeProto{Name: proto.String(name)}
	switch v := value.(type) {
	case float32:
		a.Type, a.F = onnxpb.AttributeProto_FLOAT.Enum(), proto.Float32(v)
	case int64:
		a.Type, a.I = onnxpb.AttributeProto_INT.Enum(), proto.Int64(v)
	case string:
		a.Type, a.S = onnxpb.AttributeProto_STRING.Enum(), []byte(v)
	case []float32:
		a.Type, a.Floats = onnxpb.AttributeProto_FLOATS.Enum(), v
	case []int64:
		a.Type, a.Ints = onnxpb.AttributeProto_INTS.Enum(), v
	case []string:
		a.Type = onnxpb.AttributeProto_STRINGS.Enum()
		for _, s := range v {
			a.Strings = append(a.Strings, []byte(s))
		}
	case tensor.Tensor:
		t, err := encodeTensor("", v)
		if err != nil {
			return nil, fmt.Errorf("attribute %q: %w", name, err)
		}
		a.Type, a.T = onnxpb.AttributeProto_TENSOR.Enum(), t
	default:
		return nil, fmt.Errorf("attribute %q of type %T is not supported", name, value)
	}
	return a, nil
}
