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
}

type functionKey struct{ domain, name, overload string }

// Bounds on what a small file may grow into.
const (
	maxFunctionDepth = 64
	maxFlatNodes     = 1 << 21
	maxFlatBytes     = 256 << 20 // of the nodes that function calls copy
)

// flatten never changes the model that was read.
func flatten(m *onnxpb.ModelProto) (*flat, error) {
	g := m.Graph
	f := &flat{
		graph: &onnxpb.GraphProto{Name: g.Name, Initializer: slices.Clone(g.Initializer), SparseInitializer: g.SparseInitializer, Input: g.Input, Output: g.Output,
			ValueInfo: g.ValueInfo, MetadataProps: g.MetadataProps, QuantizationAnnotation: g.QuantizationAnnotation},
		bodies: map[*onnxpb.GraphProto][]int{}, owner: map[string]int{}, versions: map[*onnxpb.NodeProto]map[string]int64{},
		outside: map[*onnxpb.NodeProto][]string{}, known: map[string]bool{}, calls: map[functionKey]*onnxpb.FunctionProto{},
	}
	for _, fn := range m.Functions {
		f.calls[functionKey{domainOf(fn.GetDomain()), fn.GetName(), fn.GetOverload()}] = fn
	}
	nodes := g.Node
	if len(f.calls) > 0 {
		x := &expander{flat: f}
		f.names(g)
		var err error
		if nodes, err = x.nodes(g.Node, nil, 0); err != nil {
			return nil, err
		}
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
		n = f.copied(n)
		f.graph.Node[i] = n
		if err := f.node(i, n, map[string]string{}, 0); err != nil {
			return nil, err
		}
	}
	return f, nil
}

// copied is a node that may be changed.
func (f *flat) copied(n *onnxpb.NodeProto) *onnxpb.NodeProto {
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
	for k := 1; f.known[out]; k++ {
		out = fmt.Sprintf("%s~%d", name, k)
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

// expander replaces calls of functions.
type expander struct {
	*flat
	bytes int
}

// nodes returns a list of nodes with the calls in it expanded. It copies only what it changes. outer is the stack of functions being expanded.
func (x *expander) nodes(list []*onnxpb.NodeProto, outer []functionKey, depth int) ([]*onnxpb.NodeProto, error) {
	var out []*onnxpb.NodeProto
	for _, n := range list {
		key := functionKey{domainOf(n.GetDomain()), n.GetOpType(), n.GetOverload()}
		fn := x.calls[key]
		if fn == nil || lowererOf(key.domain, key.name) != nil {
			if hasBody(n) {
				n = x.copied(n)
				for _, g := range bodiesOf(n) {
					inner, err := x.nodes(g.Node, outer, depth+1)
					if err != nil {
						return nil, err
					}
					g.Node = inner
				}
			}
			out = append(out, n)
			continue
		}
		if slices.Contains(outer, key) || len(outer) >= maxFunctionDepth || depth > 2*maxFunctionDepth {
			return nil, &ir.Error{Cause: fmt.Errorf("function %s.%s calls itself, or calls nest deeper than %d", key.domain, key.name, maxFunctionDepth)}
		}
		body, err := x.call(n, fn)
		if err != nil {
			return nil, err
		}
		if body, err = x.nodes(body, append(slices.Clone(outer), key), depth+1); err != nil {
			return nil, err
		}
		if out = append(out, body...); len(out) > maxFlatNodes {
			return nil, &ir.Error{Kind: ir.Unsupported, Cause: fmt.Errorf("functions expand to more than %d nodes", maxFlatNodes)}
		}
	}
	return out, nil
}

// call is the body of a function for one call: names are the caller's or new, attributes are what the caller gives.
func (x *expander) call(n *onnxpb.NodeProto, fn *onnxpb.FunctionProto) ([]*onnxpb.NodeProto, error) {
	rename := map[string]string{}
	for k, name := range fn.Input {
		rename[name] = ""
		if k < len(n.Input) {
			rename[name] = n.Input[k]
		}
	}
	for k, name := range fn.Output {
		if k < len(n.Output) && n.Output[k] != "" && !slices.Contains(fn.Input, name) {
			rename[name] = n.Output[k]
		}
	}
	given := map[string]*onnxpb.AttributeProto{}
	for _, a := range fn.AttributeProto {
		given[a.GetName()] = a
	}
	for _, a := range n.Attribute {
		given[a.GetName()] = a
	}
	imports := map[string]int64{}
	for _, o := range fn.OpsetImport {
		d := domainOf(o.GetDomain())
		imports[d] = max(imports[d], o.GetVersion())
	}
	var out []*onnxpb.NodeProto
	for _, inner := range fn.Node {
		c := proto.Clone(inner).(*onnxpb.NodeProto)
		if x.bytes += proto.Size(c); x.bytes > maxFlatBytes {
			return nil, &ir.Error{Kind: ir.Unsupported, Cause: fmt.Errorf("functions expand to more than %d bytes of nodes", maxFlatBytes)}
		}
		x.inside(c, n, imports, rename, given)
		out = append(out, c)
	}
	// An output that the body passes through from an input needs a node to define it.
	for k, name := range fn.Output {
		if k < len(n.Output) && n.Output[k] != "" && slices.Contains(fn.Input, name) {
			id := &onnxpb.NodeProto{OpType: proto.String("Identity"), Input: []string{n.Input[slices.Index(fn.Input, name)]}, Output: []string{n.Output[k]}}
			x.versions[id] = imports
			out = append(out, id)
		}
	}
	return out, nil
}

// inside adapts a node of a body, and the nodes of its own bodies, to a call.
func (x *expander) inside(c, caller *onnxpb.NodeProto, versions map[string]int64, rename map[string]string, given map[string]*onnxpb.AttributeProto) {
	x.versions[c] = versions
	if c.GetName() != "" && caller.GetName() != "" {
		c.Name = proto.String(caller.GetName() + "/" + c.GetName())
	} else if c.GetName() == "" {
		c.Name = caller.Name
	}
	if len(c.MetadataProps) == 0 {
		c.MetadataProps = caller.MetadataProps
	}
	for k, name := range c.Input {
		if now, ok := rename[name]; ok {
			c.Input[k] = now
		}
	}
	attrs := c.Attribute[:0]
	for _, a := range c.Attribute {
		if ref := a.GetRefAttrName(); ref != "" {
			value := given[ref]
			if value == nil {
				continue // not given and without a default: the op's own default holds
			}
			name := a.GetName()
			a = proto.Clone(value).(*onnxpb.AttributeProto)
			a.Name, a.RefAttrName = proto.String(name), nil
		}
		for _, g := range append(a.Graphs, a.G) {
			if g != nil {
				x.insideGraph(g, caller, versions, rename, given)
			}
		}
		attrs = append(attrs, a)
	}
	c.Attribute = attrs
	for k, name := range c.Output {
		if name == "" {
			continue
		}
		if _, ok := rename[name]; !ok {
			rename[name] = x.unique(name)
		}
		c.Output[k] = rename[name]
	}
}

// insideGraph does it for a graph in a function: its own names hide those of the function.
func (x *expander) insideGraph(g *onnxpb.GraphProto, caller *onnxpb.NodeProto, versions map[string]int64, outer map[string]string, given map[string]*onnxpb.AttributeProto) {
	rename := make(map[string]string, len(outer))
	for k, v := range outer {
		rename[k] = v
	}
	for _, in := range g.Input {
		rename[in.GetName()] = in.GetName()
	}
	for _, t := range g.Initializer {
		rename[t.GetName()] = t.GetName()
	}
	for _, n := range g.Node {
		for _, o := range n.Output {
			rename[o] = o
		}
	}
	for _, n := range g.Node {
		x.inside(n, caller, versions, rename, given)
	}
	for _, out := range g.Output {
		if now, ok := rename[out.GetName()]; ok && now != "" {
			out.Name = proto.String(now)
		}
	}
}
