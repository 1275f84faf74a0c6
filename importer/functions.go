package importer

import (
	"fmt"
	"slices"

	"google.golang.org/protobuf/proto"

	"aitk/importer/onnxpb"
	"aitk/ir"
)

// expander replaces calls of functions.
type expander struct {
	*flat
	sizes map[functionKey]*grown
}

// grown is what a call becomes. A function that is being measured has none yet.
type grown struct {
	nodes, bytes int
	depth        int
	done         bool
}

// called is the function that a node calls, nil for an op.
func (x *expander) called(n *onnxpb.NodeProto) (functionKey, *onnxpb.FunctionProto) {
	key := functionKey{domainOf(n.GetDomain()), n.GetOpType(), n.GetOverload()}
	fn := x.calls[key]
	if fn != nil && lowererOf(key.domain, key.name) != nil {
		fn = nil
	}
	return key, fn
}

// check measures what calls will become before anything is copied: a small file can ask for exponentially much, or call in a circle.
func (x *expander) check(nodes []*onnxpb.NodeProto) error {
	_, err := x.measure(nodes)
	return err
}

func (x *expander) measure(nodes []*onnxpb.NodeProto) (g grown, err error) {
	for _, n := range nodes {
		part := grown{nodes: 1}
		key, fn := x.called(n)
		switch of := x.sizes[key]; {
		case fn == nil:
			for _, b := range bodiesOf(n) {
				inner, err := x.measure(b.Node)
				if err != nil {
					return g, err
				}
				part = grown{nodes: part.nodes + inner.nodes, bytes: part.bytes + inner.bytes, depth: max(part.depth, inner.depth)}
			}
		case of == nil:
			of = &grown{}
			x.sizes[key] = of
			if *of, err = x.measure(fn.Node); err != nil {
				return g, err
			}
			for _, n := range fn.Node {
				of.bytes += proto.Size(n)
			}
			of.depth++
			of.done = true
			part = *of
		case !of.done:
			return g, &ir.Error{Cause: fmt.Errorf("function %s.%s calls itself", key.domain, key.name)}
		default:
			part = *of
		}
		g.nodes, g.bytes, g.depth = g.nodes+part.nodes, g.bytes+part.bytes, max(g.depth, part.depth)
		if g.nodes > maxFlatNodes || g.bytes > maxFlatBytes || g.depth > maxFunctionDepth {
			return g, &ir.Error{Kind: ir.Unsupported, Cause: fmt.Errorf("functions expand to more than %d nodes or %d bytes, or nest deeper than %d", maxFlatNodes, maxFlatBytes, maxFunctionDepth)}
		}
	}
	return g, nil
}

// nodes returns a list of nodes with the calls in it expanded. It copies only what it changes.
func (x *expander) nodes(list []*onnxpb.NodeProto) []*onnxpb.NodeProto {
	var out []*onnxpb.NodeProto
	for _, n := range list {
		if _, fn := x.called(n); fn != nil {
			out = append(out, x.nodes(x.call(n, fn))...)
			continue
		}
		if hasBody(n) {
			n = x.private(n)
			for _, g := range bodiesOf(n) {
				g.Node = x.nodes(g.Node)
			}
		}
		out = append(out, n)
	}
	return out
}

// call is the body of a function for one call: names are the caller's or new, attributes are what the caller gives.
func (x *expander) call(n *onnxpb.NodeProto, fn *onnxpb.FunctionProto) []*onnxpb.NodeProto {
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
	return out
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
