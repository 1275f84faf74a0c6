package importer

import (
	"errors"
	"fmt"
	"slices"

	"google.golang.org/protobuf/proto"

	"aitk/importer/onnxpb"
	"aitk/ir"
)

// flat is a model's graph without functions, every name defined once: what the rest of the importer reads.
//
// A call of a model-local function becomes the nodes of its body. The graphs inside If, Loop and Scan stay attributes of their nodes, but their nodes
// are listed behind the main graph's, their names are made unique and their initializers become the main graph's: so a weight in a branch is a
// weight like any other, and who reads it is known. Which of them run, and how often, is decided while lowering (lower_control.go).
type flat struct {
	graph    *onnxpb.GraphProto
	main     int                                    // nodes of the main graph; those behind it stand in the bodies of control flow
	bodies   map[*onnxpb.GraphProto][]int           // nodes of a body, as indices of graph.Node
	owner    map[string]int                         // input of a body -> the node that the body belongs to
	versions map[*onnxpb.NodeProto]map[string]int64 // of nodes that came out of functions
	outside  map[*onnxpb.NodeProto][]string         // names from outside that the bodies of a node read
	known    map[string]bool                        // every name in use
	calls    map[functionKey]*onnxpb.FunctionProto
	copies   map[string]int // of a name, made so far
}

type functionKey struct{ domain, name, overload string }

// Bounds on what a small file may grow into.
const (
	maxFunctionDepth = 64
	maxFlatNodes     = 1 << 20
	maxFlatBytes     = 128 << 20 // of the nodes that function calls copy
)

// flatten never changes the model that was read.
func flatten(m *onnxpb.ModelProto) (*flat, error) {
	g := m.Graph
	f := &flat{
		graph: &onnxpb.GraphProto{Name: g.Name, Initializer: slices.Clone(g.Initializer), SparseInitializer: g.SparseInitializer, Input: g.Input, Output: g.Output,
			ValueInfo: g.ValueInfo, MetadataProps: g.MetadataProps, QuantizationAnnotation: g.QuantizationAnnotation},
		bodies: map[*onnxpb.GraphProto][]int{}, owner: map[string]int{}, versions: map[*onnxpb.NodeProto]map[string]int64{},
		outside: map[*onnxpb.NodeProto][]string{}, known: map[string]bool{}, calls: map[functionKey]*onnxpb.FunctionProto{}, copies: map[string]int{},
	}
	for _, fn := range m.Functions {
		f.calls[functionKey{domainOf(fn.GetDomain()), fn.GetName(), fn.GetOverload()}] = fn
	}
	nodes := g.Node
	if len(f.calls) > 0 {
		x := &expander{flat: f, sizes: map[functionKey]*grown{}}
		if err := x.check(g.Node); err != nil {
			return nil, err
		}
		f.names(g)
		nodes = x.nodes(g.Node)
	}
	f.graph.Node = slices.Clone(nodes)
	f.main = len(nodes)
	if !slices.ContainsFunc(nodes, hasBody) {
		return f, nil
	}
	f.known = map[string]bool{}
	f.names(&onnxpb.GraphProto{Node: nodes, Input: g.Input, Initializer: g.Initializer})
	for i, n := range nodes {
		if !hasBody(n) {
			continue
		}
		n = f.private(n)
		f.graph.Node[i] = n
		if err := f.node(i, n, map[string]string{}, 0); err != nil {
			return nil, err
		}
	}
	return f, nil
}

// private is a node that may be changed.
func (f *flat) private(n *onnxpb.NodeProto) *onnxpb.NodeProto {
	c := proto.Clone(n).(*onnxpb.NodeProto)
	if v, ok := f.versions[n]; ok {
		f.versions[c] = v
	}
	return c
}

// names notes all names that a graph defines outside bodies.
func (f *flat) names(g *onnxpb.GraphProto) {
	for _, in := range g.Input {
		f.known[in.GetName()] = true
	}
	for _, t := range g.Initializer {
		f.known[t.GetName()] = true
	}
	for _, n := range g.Node {
		for _, o := range n.Output {
			f.known[o] = true
		}
	}
}

func hasBody(n *onnxpb.NodeProto) bool {
	return slices.ContainsFunc(n.Attribute, func(a *onnxpb.AttributeProto) bool { return a.G != nil || len(a.Graphs) > 0 })
}

func bodiesOf(n *onnxpb.NodeProto) []*onnxpb.GraphProto {
	var out []*onnxpb.GraphProto
	for _, a := range n.Attribute {
		if a.G != nil {
			out = append(out, a.G)
		}
		out = append(out, a.Graphs...)
	}
	return out
}

// unique is a name that nothing has yet, like the one wanted.
func (f *flat) unique(name string) string {
	out := name
	for f.known[out] {
		f.copies[name]++ // names of a body that many calls have would else be tried from 1 each time
		out = fmt.Sprintf("%s~%d", name, f.copies[name])
	}
	f.known[out] = true
	return out
}

// node takes the bodies of node i apart. rename maps names of the enclosing bodies to what they are called now; names from outside all bodies keep theirs.
func (f *flat) node(i int, n *onnxpb.NodeProto, rename map[string]string, depth int) error {
	if depth > maxFunctionDepth {
		return &ir.Error{Cause: fmt.Errorf("control flow nests deeper than %d", maxFunctionDepth)}
	}
	seen := map[string]bool{}
	for _, g := range bodiesOf(n) {
		if err := f.body(i, n, g, rename, depth, seen); err != nil {
			return err
		}
	}
	return nil
}

func (f *flat) body(i int, owner *onnxpb.NodeProto, g *onnxpb.GraphProto, outer map[string]string, depth int, seen map[string]bool) error {
	rename := make(map[string]string, len(outer))
	for k, v := range outer {
		rename[k] = v
	}
	inner := map[string]bool{} // names that the body defines, as they are now
	define := func(name string) string {
		if name == "" {
			return ""
		}
		rename[name] = f.unique(name)
		inner[rename[name]] = true
		return rename[name]
	}
	read := func(name string) string {
		now, ok := rename[name]
		if !ok {
			now = name
		}
		if now != "" && !inner[now] && !seen[now] {
			seen[now] = true
			f.outside[owner] = append(f.outside[owner], now)
		}
		return now
	}
	if len(g.SparseInitializer) > 0 {
		return &ir.Error{Kind: ir.Unsupported, Cause: errors.New("sparse initializers in a body of control flow are not supported")}
	}
	for k, t := range g.Initializer {
		t = proto.Clone(t).(*onnxpb.TensorProto)
		t.Name = proto.String(define(t.GetName()))
		g.Initializer[k] = t
		f.graph.Initializer = append(f.graph.Initializer, t)
		delete(inner, t.GetName()) // the main graph's by now: nothing to release, and no harm in being read
	}
	for _, in := range g.Input {
		in.Name = proto.String(define(in.GetName()))
		f.owner[in.GetName()] = i
	}
	ids := make([]int, 0, len(g.Node))
	for _, n := range g.Node {
		if len(f.graph.Node) > maxFlatNodes {
			return &ir.Error{Kind: ir.Unsupported, Cause: fmt.Errorf("more than %d nodes", maxFlatNodes)}
		}
		id := len(f.graph.Node)
		ids = append(ids, id)
		if v, ok := f.versions[owner]; ok {
			f.versions[n] = v
		}
		f.graph.Node = append(f.graph.Node, n)
		for k, name := range n.Input {
			n.Input[k] = read(name)
		}
		if hasBody(n) {
			if err := f.node(id, n, rename, depth+1); err != nil {
				return err
			}
			for _, name := range f.outside[n] {
				if !inner[name] && !seen[name] {
					seen[name] = true
					f.outside[owner] = append(f.outside[owner], name)
				}
			}
		}
		for k, name := range n.Output {
			n.Output[k] = define(name)
		}
	}
	for _, out := range g.Output {
		out.Name = proto.String(read(out.GetName()))
	}
	f.bodies[g] = ids
	return nil
}
