package importer

import (
	"cmp"
	"fmt"
	"strings"

	"aitk/ir"
)

// gradients follows the gradient of an output back through the graph and lists the nodes at which it ends although a trainable weight
// lies behind them. Each op is asked for its gradient, so what is found is what training will find; what the ops build is thrown away.
//
// Needs: g is not used afterwards.
func (l *linter) gradients(g *ir.Graph) {
	seed := g.Result(l.opt.Output)
	if seed == nil {
		for _, r := range g.Results {
			if seed == nil && r.Value.Type.DType.IsFloat() {
				seed = r.Value
			}
		}
	}
	trainable := 0
	for _, p := range g.Params {
		if p.Trainable {
			trainable++
		}
	}
	switch {
	case trainable == 0:
		l.add(Finding{Code: NotDifferentiable, Severity: LintError, Message: "the graph has no trainable weight", Remedy: "`aitk inspect` says why each tensor is none; --train NAME makes one of a float tensor"})
		return
	case seed == nil || !seed.Type.DType.IsFloat():
		name := cmp.Or(l.opt.Output, first(g.Results).Name)
		l.add(Finding{Code: InferenceOnly, Severity: LintError, Message: fmt.Sprintf("output %q holds no floats: no loss can be computed from it", name), Remedy: "name a tensor before the decision: --output NAME"})
		return
	}
	nodes := g.Nodes
	has := make([]bool, g.NumValues()) // a gradient arrives
	stops := map[*ir.Node]string{}
	has[seed.ID] = true
	l.backward(g, nodes, has, stops)
	l.cutOff(g, nodes, has, stops)
}

// backward asks the nodes, last first. stops gets each node that passes no gradient to some float operand, with the reason.
func (l *linter) backward(g *ir.Graph, nodes []*ir.Node, has []bool, stops map[*ir.Node]string) {
	b := &ir.Builder{G: g, Phase: ir.Backward}
	for i := len(nodes) - 1; i >= 0; i-- {
		n := nodes[i]
		dOut := make([]*ir.Value, len(n.Out))
		any := false
		for k, v := range n.Out {
			if int(v.ID) < len(has) && has[v.ID] && v.Type.DType.IsFloat() {
				dOut[k] = g.NewValue("", v.Type)
				any = true
			}
		}
		if !any {
			continue
		}
		d, ok := n.Op.(ir.Differentiable)
		if !ok {
			reason := "has no gradient"
			if r, says := n.Op.(ir.NoGrad); says {
				reason = r.NoGradReason()
			}
			stops[n] = reason
			continue
		}
		for k, dx := range d.Grad(b, n, dOut) {
			if dx != nil {
				has[n.In[k].ID] = true
			} else if n.In[k].Type.DType.IsFloat() {
				stops[n] = "passes no gradient to that operand"
			}
		}
		g.Nodes = nodes
	}
}

// cutOff lists trainable weights without a gradient that influence the output, by the node at which it ends.
func (l *linter) cutOff(g *ir.Graph, nodes []*ir.Node, has []bool, stops map[*ir.Node]string) {
	reached := 0
	behind := make([]map[string]bool, len(has)) // by value: trainable weights without a gradient that it depends on, kept small
	for _, p := range g.Params {
		switch {
		case !p.Trainable:
		case has[p.ID]:
			reached++
		default:
			behind[p.ID] = map[string]bool{p.Name: true}
		}
	}
	severity := LintWarning
	if reached == 0 {
		severity = LintError
	}
	const most = 8 // weights named at a node
	for _, n := range nodes {
		var names []string
		set := map[string]bool{}
		for _, v := range n.In {
			for name := range behind[v.ID] {
				set[name] = true
			}
		}
		for _, p := range g.Params { // in their order
			if len(set) > 0 && set[p.Name] && len(names) < most {
				names = append(names, p.Name)
			}
		}
		if len(names) == 0 {
			continue
		}
		keep := map[string]bool{}
		for _, name := range names {
			keep[name] = true
		}
		reason, stop := stops[n]
		for _, v := range n.Out {
			if !stop {
				behind[v.ID] = keep
			}
		}
		if stop {
			l.add(Finding{Code: NotDifferentiable, Severity: severity, Node: cmp.Or(n.Origin.Node, n.Out[0].Name), Parameter: names[0],
				Message: fmt.Sprintf("%s ends the gradient (%s): no gradient reaches %s", cmp.Or(n.Origin.OpType, ir.OpName(n.Op)), reason, strings.Join(names, ", ")),
				Remedy:  "these weights stay as they are; feed the loss from before the node (--output NAME) if they should train"})
		}
	}
	if reached == 0 && !hasCode(l.out, NotDifferentiable) {
		l.add(Finding{Code: NotDifferentiable, Severity: LintError, Message: "no trainable weight influences the output that feeds the loss", Remedy: "name another output: --output NAME"})
	}
}

func hasCode(list []Finding, code string) bool {
	for _, f := range list {
		if f.Code == code {
			return true
		}
	}
	return false
}
