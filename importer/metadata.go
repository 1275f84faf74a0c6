package importer

import (
	"path"
	"strings"

	"aitk/importer/onnxpb"
)

// metadata is what exporters write beside the graph about the module it came from. All of it is text that others wrote: it is used
// to name things and never trusted to be complete.
//
// PyTorch's exporter writes
//   - on the graph its signature: "p_fc1_weight: PARAMETER target='fc1.weight'", one line an input of the exported program;
//   - on the value info of an initializer its kind (PARAMETER, BUFFER, CONSTANT_TENSOR) or, where its optimizer made the tensor, the
//     names it was folded from;
//   - on each node the modules it ran in, outermost first, and the call it stands for.
type metadata struct {
	order      []string          // targets of the signature, in the module's order
	kind       map[string]string // of a target or initializer: PARAMETER, BUFFER, CONSTANT_TENSOR
	input      map[string]string // target -> name in the exported program ("p_fc1_weight")
	foldedFrom map[string][]string
}

const (
	keySignature = "pkg.torch.export.ExportedProgram.graph_signature"
	keyKind      = "pkg.torch.export.graph_signature.InputSpec.kind"
	keyFolded    = "pkg.onnxscript.optimizer.folded_from"
	keyNamespace = "namespace"
	keyScopes    = "pkg.torch.onnx.name_scopes"
	keyCall      = "pkg.torch.onnx.fx_node"
	keyRule      = "pkg.onnxscript.rewriter.rule_name"
)

func prop(props []*onnxpb.StringStringEntryProto, key string) string {
	for _, p := range props {
		if p.GetKey() == key {
			return p.GetValue()
		}
	}
	return ""
}

func readMetadata(g *onnxpb.GraphProto) *metadata {
	m := &metadata{kind: map[string]string{}, input: map[string]string{}, foldedFrom: map[string][]string{}}
	for line := range strings.Lines(prop(g.MetadataProps, keySignature)) {
		name, rest, ok := strings.Cut(strings.TrimSpace(line), ": ")
		kind, target, hasTarget := strings.Cut(rest, " target='")
		if !ok || !hasTarget {
			continue
		}
		target, _, _ = strings.Cut(target, "'")
		if _, twice := m.kind[target]; twice {
			continue
		}
		m.order = append(m.order, target)
		m.kind[target], m.input[target] = kind, name
	}
	for _, v := range g.ValueInfo {
		if k := prop(v.MetadataProps, keyKind); k != "" {
			m.kind[v.GetName()] = k
		}
		if l := pythonList(prop(v.MetadataProps, keyFolded)); l != nil {
			m.foldedFrom[v.GetName()] = l
		}
	}
	return m
}

// known tells whether the exporter said which tensors are parameters.
func (m *metadata) known() bool { return len(m.order) > 0 }

// parameters keeps those names that are parameters.
func (m *metadata) parameters(names []string) []string {
	var out []string
	for _, n := range names {
		if m.kind[n] == "PARAMETER" {
			out = append(out, n)
		}
	}
	return out
}

// pythonList reads a list of strings as Python prints it; nil if s is none.
func pythonList(s string) []string {
	s, ok := strings.CutPrefix(s, "[")
	if !ok || !strings.HasSuffix(s, "]") {
		return nil
	}
	out := []string{}
	for len(s) > 1 && (s[0] == '\'' || s[0] == '"') {
		end := strings.IndexByte(s[1:], s[0])
		if end < 0 {
			return nil
		}
		out = append(out, s[1:1+end])
		s = strings.TrimPrefix(s[end+2:], ", ")
	}
	return out
}

// scope is where a node ran: the path of its innermost module, that module's class, and the framework's op. Each may be empty.
type scope struct{ module, class, call string }

// scopeOf reads a node's scope from its metadata, or from the path that older exporters make of its name:
// "/layer1/layer1.0/conv1/Conv" ran in module layer1.0.conv1.
func scopeOf(n *onnxpb.NodeProto) scope {
	if ns := prop(n.MetadataProps, keyNamespace); ns != "" {
		parts := strings.Split(ns, "/")
		_, call, _ := strings.Cut(parts[len(parts)-1], ": ")
		s := scope{call: call}
		if len(parts) > 1 {
			s.module, s.class, _ = strings.Cut(parts[len(parts)-2], ": ")
		}
		return s
	}
	if l := pythonList(prop(n.MetadataProps, keyScopes)); len(l) > 1 {
		return scope{module: l[len(l)-2]}
	}
	name, ok := strings.CutPrefix(n.GetName(), "/")
	if !ok {
		return scope{}
	}
	dir, base := path.Split(name)
	module, last := "", ""
	for part := range strings.SplitSeq(strings.TrimSuffix(dir, "/"), "/") {
		if last != "" && strings.HasPrefix(part, last+".") { // the part repeats its parent: layer1/layer1.0
			module = strings.TrimSuffix(module, last)
		} else if module != "" {
			module += "."
		}
		module += part
		last = part
	}
	return scope{module: module, call: base}
}

// mentions tells whether the call that a node stands for names an input of the exported program.
func mentions(n *onnxpb.NodeProto, input string) bool {
	call := prop(n.MetadataProps, keyCall)
	for input != "" {
		_, after, ok := strings.Cut(call, "%"+input)
		if !ok {
			return false
		}
		if after == "" || !strings.ContainsRune("_.", rune(after[0])) && !isWord(after[0]) {
			return true
		}
		call = after
	}
	return false
}

func isWord(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}
