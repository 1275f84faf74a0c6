package importer

import (
	"errors"
	"fmt"
	"slices"

	"aitk/importer/onnxpb"
	"aitk/ir"
)

// source is the graph of the file with everything that can be known before dimensions are bound: constants, who defines and who
// reads each name, and what the exporter wrote about it.
type source struct {
	file    *file
	graph   *onnxpb.GraphProto
	opsets  map[string]int64 // by domain; "" is ai.onnx
	meta    *metadata
	tensors map[string]*tensor // initializers, values of Constant nodes, tensors of ConstantOfShape
	order   []string           // names of tensors, initializers first, each in file order
	def     map[string]int     // name -> index of the node that makes it
	uses    map[string][]use
	inputs  []*onnxpb.ValueInfoProto // graph inputs that are no initializers
}

// use is one operand position of one node.
type use struct{ node, operand int }

const minOpset = 7

// readSource checks the structure of the graph: unique names, operands before use, no control flow without a name to go with it.
func readSource(f *file) (*source, error) {
	s := &source{file: f, graph: f.model.Graph, opsets: map[string]int64{}, tensors: map[string]*tensor{}, def: map[string]int{}, uses: map[string][]use{}}
	for _, o := range f.model.OpsetImport {
		d := domainOf(o.GetDomain())
		s.opsets[d] = max(s.opsets[d], o.GetVersion())
	}
	if v := s.opsets[""]; v < minOpset {
		return nil, &ir.Error{Origin: ir.Origin{File: f.path}, Kind: ir.Unsupported, Cause: fmt.Errorf("opset %d is older than %d", v, minOpset), Remedy: remedyConvert}
	}
	s.meta = readMetadata(s.graph)
	return s, errors.Join(s.readTensors(), s.readNodes())
}

// domainOf makes "ai.onnx" and "" one.
func domainOf(d string) string {
	if d == "ai.onnx" {
		return ""
	}
	return d
}

func (s *source) fail(kind ir.Kind, format string, args ...any) error {
	return ir.Errorf(kind, ir.Origin{File: s.file.path}, format, args...)
}

// readTensors collects initializers and the tensors of Constant nodes, and the inputs that are left.
func (s *source) readTensors() error {
	var errs []error
	add := func(p *onnxpb.TensorProto, name, what string) {
		t, err := s.file.tensor(p)
		if err != nil {
			errs = append(errs, s.fail(ir.KindOf(err), "%s %q: %w", what, name, err))
			return
		}
		if _, twice := s.tensors[name]; twice || name == "" {
			errs = append(errs, s.fail(ir.Failed, "%s %q is defined twice or has no name", what, name))
			return
		}
		t.name = name
		s.tensors[name] = t
		s.order = append(s.order, name)
	}
	for _, p := range s.graph.Initializer {
		add(p, p.GetName(), "initializer")
	}
	if len(s.graph.SparseInitializer) > 0 {
		errs = append(errs, s.fail(ir.Unsupported, "sparse initializers are not supported"))
	}
	for _, n := range s.graph.Node {
		if domainOf(n.GetDomain()) != "" || len(n.Output) != 1 {
			continue
		}
		switch n.GetOpType() {
		case "Constant":
			for _, a := range n.Attribute {
				if a.GetName() == "value" && a.T != nil {
					add(a.T, n.Output[0], "constant")
				}
			}
		case "ConstantOfShape":
			s.addFilled(n)
		}
	}
	seen := map[string]bool{}
	for _, in := range s.graph.Input {
		name := in.GetName()
		if seen[name] || name == "" {
			errs = append(errs, s.fail(ir.Failed, "input %q has no name or a name used twice", name))
		}
		seen[name] = true
		// Before IR version 4 every initializer had to be listed as an input too; it is a constant or a weight all the same.
		if s.tensors[name] == nil {
			s.inputs = append(s.inputs, in)
		}
	}
	return errors.Join(errs...)
}

// addFilled notes a tensor of equal floats: old exporters write the weights of an untrained model so. What is not plain is left to
// the lowering.
func (s *source) addFilled(n *onnxpb.NodeProto) {
	if len(n.Input) != 1 || s.tensors[n.Input[0]] == nil || s.tensors[n.Output[0]] != nil {
		return
	}
	dims := s.tensors[n.Input[0]]
	t := &tensor{name: n.Output[0], typ: ir.Type{DType: ir.F32}, init: ir.Init{Kind: ir.InitFill}}
	for _, a := range n.Attribute {
		if a.GetName() != "value" || a.T == nil {
			continue
		}
		value, err := s.file.tensor(a.T)
		if err != nil || value.typ.Elems() != 1 || !value.typ.DType.IsFloat() || value.elem != 0 {
			return
		}
		raw, err := s.file.bytes(value.init)
		if err != nil {
			return
		}
		x, err := ir.DecodeTensor(value.typ, raw)
		if err != nil {
			return
		}
		t.typ.DType, t.init.Fill = value.typ.DType, x.F[0]
	}
	if dims.typ.DType != ir.I64 || len(dims.typ.Shape) != 1 || dims.typ.Shape[0] > 16 {
		return
	}
	raw, err := s.file.bytes(dims.init)
	if err != nil {
		return
	}
	x, err := ir.DecodeTensor(dims.typ, raw)
	if t.typ.Shape = x.I; err != nil || t.typ.Shape.Check() != nil {
		return
	}
	s.tensors[t.name] = t
	s.order = append(s.order, t.name)
}

// readNodes fills def and uses, and refuses what is no directed acyclic graph in order.
func (s *source) readNodes() error {
	var errs []error
	defined := map[string]bool{}
	for _, in := range s.inputs {
		defined[in.GetName()] = true
	}
	for _, p := range s.graph.Initializer {
		defined[p.GetName()] = true
	}
	for i, n := range s.graph.Node {
		for k, name := range n.Input {
			if name == "" {
				continue
			}
			if !defined[name] {
				errs = append(errs, s.errorAt(i, ir.Failed, "operand %q is defined nowhere before it: nodes out of order, a cycle, or a missing tensor", name))
			}
			s.uses[name] = append(s.uses[name], use{i, k})
		}
		for _, name := range n.Output {
			if name == "" {
				continue
			}
			if defined[name] {
				errs = append(errs, s.errorAt(i, ir.Failed, "output %q is defined twice", name))
			}
			defined[name] = true
			s.def[name] = i
		}
		if len(errs) >= maxErrors {
			break
		}
	}
	names := map[string]bool{}
	for _, out := range s.graph.Output {
		if out.GetName() == "" || !defined[out.GetName()] || names[out.GetName()] {
			errs = append(errs, s.fail(ir.Failed, "output %q of the graph is not computed, or listed twice", out.GetName()))
		}
		names[out.GetName()] = true
	}
	return errors.Join(errs...)
}

// maxErrors bounds how many findings of one kind are listed.
const maxErrors = 20

// origin describes node i for messages and for the graph.
func (s *source) origin(i int) ir.Origin {
	n := s.graph.Node[i]
	d := domainOf(n.GetDomain())
	o := ir.Origin{File: s.file.path, Node: n.GetName(), OpType: n.GetOpType(), Opset: s.opsets[d], Index: int32(i), Scope: scopeOf(n).module}
	if d != "" {
		o.OpType = d + "." + o.OpType
	}
	return o
}

func (s *source) errorAt(i int, kind ir.Kind, format string, args ...any) error {
	return ir.Errorf(kind, s.origin(i), format, args...)
}

// needed marks the nodes that the given names depend on.
func (s *source) needed(names []string) []bool {
	need := make([]bool, len(s.graph.Node))
	stack := slices.Clone(names)
	for len(stack) > 0 {
		name := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		i, ok := s.def[name]
		if !ok || need[i] {
			continue
		}
		need[i] = true
		stack = append(stack, s.graph.Node[i].Input...)
	}
	return need
}
