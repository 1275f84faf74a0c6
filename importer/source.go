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
	*flat   // the graph, without functions
	file    *file
	opsets  map[string]int64 // by domain; "" is ai.onnx
	meta    *metadata
	tensors map[string]*tensor // initializers, values of Constant nodes, tensors of ConstantOfShape
	order   []string           // names of tensors, initializers first, each in file order
	def     map[string]int     // name -> index of the node that makes it, in the main graph or in a body
	uses    map[string][]use
	inputs  []*onnxpb.ValueInfoProto // graph inputs that are no initializers
}

// use is one operand position of one node.
type use struct{ node, operand int }

const minOpset = 7

// readSource checks the structure of the graph: unique names, operands before use, no control flow without a name to go with it.
func readSource(f *file) (*source, error) {
	flat, err := flatten(f.model)
	if err != nil {
		return nil, &ir.Error{Origin: ir.Origin{File: f.path}, Kind: ir.KindOf(err), Cause: err}
	}
	s := &source{flat: flat, file: f, opsets: map[string]int64{}, tensors: map[string]*tensor{}, def: map[string]int{}, uses: map[string][]use{}}
	for _, o := range f.model.OpsetImport {
		d := domainOf(o.GetDomain())
		s.opsets[d] = max(s.opsets[d], o.GetVersion())
	}
	plain := slices.ContainsFunc(s.graph.Node, func(n *onnxpb.NodeProto) bool { return domainOf(n.GetDomain()) == "" && s.versions[n] == nil })
	if v := s.opsets[""]; v < minOpset && (v > 0 || plain) {
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
	file := func(t *tensor, err error, name, what string) {
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
	add := func(p *onnxpb.TensorProto, name, what string) {
		t, err := s.file.tensor(p)
		file(t, err, name, what)
	}
	for _, p := range s.graph.Initializer {
		add(p, p.GetName(), "initializer")
	}
	for _, p := range s.graph.SparseInitializer {
		t, err := s.file.sparse(p)
		file(t, err, p.Values.GetName(), "sparse initializer")
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
	for _, p := range s.graph.SparseInitializer {
		defined[p.Values.GetName()] = true
	}
	for i := range s.main {
		errs = append(errs, s.readNode(i, defined)...)
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

// readNode does it for one node and the nodes of its bodies, whose names are known only there.
func (s *source) readNode(i int, defined map[string]bool) (errs []error) {
	n := s.graph.Node[i]
	for k, name := range n.Input {
		if name == "" {
			continue
		}
		if !defined[name] {
			errs = append(errs, s.errorAt(i, ir.Failed, "operand %q is defined nowhere before it: nodes out of order, a cycle, or a missing tensor", name))
		}
		s.uses[name] = append(s.uses[name], use{i, k})
	}
	for _, g := range bodiesOf(n) {
		var inner []string
		for _, in := range g.Input {
			inner = append(inner, in.GetName())
			defined[in.GetName()] = true
		}
		for _, id := range s.bodies[g] {
			errs = append(errs, s.readNode(id, defined)...)
			inner = append(inner, s.graph.Node[id].Output...)
		}
		for _, out := range g.Output {
			if !defined[out.GetName()] {
				errs = append(errs, s.errorAt(i, ir.Failed, "output %q of its body is not computed", out.GetName()))
			}
		}
		for _, name := range inner {
			delete(defined, name)
		}
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
	return errs
}

// reads lists the names that a node reads: its operands, and what its bodies read from outside.
func (s *source) reads(i int) []string {
	n := s.graph.Node[i]
	if out := s.outside[n]; out != nil {
		return slices.Concat(n.Input, out)
	}
	return n.Input
}

// version is the opset of a domain that a node means.
func (s *source) version(i int, domain string) int64 {
	if v, ok := s.versions[s.graph.Node[i]]; ok {
		return v[domain]
	}
	return s.opsets[domain]
}

// maxErrors bounds how many findings of one kind are listed.
const maxErrors = 20

// origin describes node i for messages and for the graph.
func (s *source) origin(i int) ir.Origin {
	n := s.graph.Node[i]
	d := domainOf(n.GetDomain())
	o := ir.Origin{File: s.file.path, Node: n.GetName(), OpType: n.GetOpType(), Opset: s.version(i, d), Index: int32(i), Scope: scopeOf(n).module}
	if d != "" {
		o.OpType = d + "." + o.OpType
	}
	return o
}

func (s *source) errorAt(i int, kind ir.Kind, format string, args ...any) error {
	return ir.Errorf(kind, s.origin(i), format, args...)
}

// needed marks the nodes of the main graph that the given names depend on.
func (s *source) needed(names []string) []bool {
	need := make([]bool, len(s.graph.Node))
	stack := slices.Clone(names)
	for len(stack) > 0 {
		name := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		i, ok := s.def[name]
		if !ok || i >= s.main || need[i] {
			continue
		}
		need[i] = true
		stack = append(stack, s.reads(i)...)
	}
	return need
}
