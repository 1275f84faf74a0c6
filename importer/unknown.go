package importer

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"aitk/ir"
)

// unknownOp is an op without a lowering, and the needed nodes that ask for it.
type unknownOp struct {
	op    string // with its domain in front where it is not ai.onnx
	nodes []int
}

// unknownNodes lists the ops of needed nodes that have no lowering, in file order of their first nodes.
func (l *lowering) unknownNodes(results []string) []unknownOp {
	nodes := map[string][]int{}
	var visit func(i int)
	visit = func(i int) {
		n := l.src.graph.Node[i]
		if lowererOf(domainOf(n.GetDomain()), n.GetOpType()) == nil {
			key := l.src.origin(i).OpType
			nodes[key] = append(nodes[key], i)
		}
		if n.GetOpType() == "If" {
			return // a branch that is not taken may hold anything
		}
		for _, g := range bodiesOf(n) {
			for _, id := range l.src.bodies[g] {
				visit(id)
			}
		}
	}
	for i, ok := range l.src.needed(results) {
		if ok {
			visit(i)
		}
	}
	var list []unknownOp
	for name := range nodes {
		list = append(list, unknownOp{name, nodes[name]})
	}
	slices.SortFunc(list, func(a, b unknownOp) int { return cmp.Compare(a.nodes[0], b.nodes[0]) })
	return list
}

// unknownOps is unknownNodes as an error: one line an op, with its first nodes.
func (l *lowering) unknownOps(results []string) error {
	const named = 5 // nodes named for each op
	list := l.unknownNodes(results)
	if len(list) == 0 {
		return nil
	}
	var text strings.Builder
	fmt.Fprintf(&text, "%d ops are not supported:", len(list))
	for _, u := range list {
		fmt.Fprintf(&text, "\n  %s (%d nodes):", u.op, len(u.nodes))
		for k, i := range u.nodes {
			if k == named {
				fmt.Fprintf(&text, " and %d more", len(u.nodes)-named)
				break
			}
			n := l.src.graph.Node[i]
			fmt.Fprintf(&text, " %q", cmp.Or(n.GetName(), strings.Join(n.Output, ",")))
		}
	}
	return &ir.Error{Origin: ir.Origin{File: l.src.file.path}, Kind: ir.Unsupported, Cause: errors.New(text.String())}
}
