package passes

import (
	"errors"
	"fmt"

	"aitk/ir"
	"aitk/ir/op"
)

// autodiff appends the backward half: it walks the nodes from the loss to the parameters and lets each op build its gradient.
//
//	%3 = MatMul %0 %1                  %1 a trainable parameter
//	%4 = Relu %3
//	%5 = ReduceSum{axes=[0,1]} %4
//	result "loss" %5
//
// appends
//
//	%7 =b Expand{shape=[32,10]} 1      ; grad of %5
//	%8 =b ReluGrad %4 %7
//	%9 =b MatMul{transA=true} %0 %8    the gradient of %1
//
// Activity is known both ways: a node is differentiated only if a gradient arrives and one of its operands depends on a trainable
// parameter through floats. Contributions to one value are added as they arrive, so that one sum is alive at a time and its order is that
// of the walk: the last reader first. Tied weights are one parameter with several readers and need nothing special. What a gradient builds
// for operands that nobody asked for is removed again before the pass ends.
//
// Ops without a gradient on the way are reported all at once, with their reasons.
func autodiff() Pass {
	return Pass{
		Name:      "autodiff",
		Doc:       "append gradients of the loss to all trainable parameters",
		Needs:     HasLoss,
		Gives:     Differentiated,
		Preserves: Extends,
		Required:  true,
		Run: func(ctx *Context, g *ir.Graph) error {
			grads, err := differentiate(g, g.Result("loss"))
			if err != nil {
				return err
			}
			ctx.Grads = make(map[string]*ir.Value, len(grads))
			var without []string
			for _, p := range g.Params {
				if !p.Trainable {
					continue
				}
				v := grads[p.ID]
				if v == nil {
					without = append(without, p.Name)
					continue
				}
				ctx.Grads[p.Name] = v
				if ctx.Options.GradResult {
					g.Results = append(g.Results, ir.Result{Name: "grad/" + p.Name, Value: v})
				}
			}
			if len(ctx.Grads) == 0 {
				return noPathError(g)
			}
			ctx.Count("parameters with a gradient", int64(len(ctx.Grads)))
			if len(without) > 0 {
				ctx.Note(fmt.Sprintf("%d trainable parameters do not influence the loss and stay as they are: %s", len(without), listNames(without, 8)))
			}
			return nil
		},
	}
}

// listNames joins at most most names and counts the rest.
func listNames(names []string, most int) string {
	s := ""
	for i, n := range names {
		if i == most {
			return fmt.Sprintf("%s and %d more", s, len(names)-most)
		}
		if i > 0 {
			s += ", "
		}
		s += n
	}
	return s
}

// differentiate appends the backward half and returns, by value ID, the gradients of the trainable parameters.
func differentiate(g *ir.Graph, loss *ir.Value) (map[ir.ID]*ir.Value, error) {
	varied := variedBy(g)
	if !varied[loss.ID] {
		return nil, noPathError(g)
	}
	d := &differ{
		g: g, varied: varied,
		grads:   make([]*ir.Value, g.NumValues()),
		pretend: make([]bool, g.NumValues()),
	}
	forward := g.Nodes
	d.b = &ir.Builder{G: g, Phase: ir.Backward, Origin: ir.Origin{Node: "grad of loss"}}
	d.grads[loss.ID] = d.b.Scalar(loss.Type.DType, 1)
	for i := len(forward) - 1; i >= 0; i-- {
		d.node(forward[i])
	}
	if len(d.missing) > 0 {
		return nil, errors.Join(d.missing...)
	}
	params := make(map[ir.ID]*ir.Value)
	for _, p := range g.Params {
		if v := d.grads[p.ID]; v != nil && p.Trainable {
			params[p.ID] = v
		}
	}
	d.prune(forward, params)
	return params, nil
}

// variedBy marks, by value ID, the floats that change when a trainable parameter does.
func variedBy(g *ir.Graph) []bool {
	varied := make([]bool, g.NumValues())
	for _, p := range g.Params {
		varied[p.ID] = p.Trainable && p.Type.DType.IsFloat()
	}
	for _, n := range g.Nodes {
		for _, x := range n.In {
			if !varied[x.ID] {
				continue
			}
			for _, y := range n.Out {
				varied[y.ID] = y.Type.DType.IsFloat()
			}
			break
		}
	}
	return varied
}

func noPathError(g *ir.Graph) error {
	for _, p := range g.Params {
		if p.Trainable {
			return ir.Errorf(ir.Usage, ir.Origin{}, "the loss depends on no trainable parameter: choose another output with --output, or other parameters with --train")
		}
	}
	return ir.Errorf(ir.Usage, ir.Origin{}, "no parameter is trainable: choose some with --train")
}

// differ is the state of the walk.
type differ struct {
	g       *ir.Graph
	b       *ir.Builder
	varied  []bool
	grads   []*ir.Value // by value ID: the sum of the contributions so far
	pretend []bool      // by value ID: a gradient would arrive here if ops without one had one; only to find more of these
	missing []error
}

// node differentiates one node if a gradient arrives at it and is wanted below it.
func (d *differ) node(n *ir.Node) {
	dOut := make([]*ir.Value, len(n.Out))
	arrives, pretended := false, false
	for i, v := range n.Out {
		dOut[i] = d.grads[v.ID]
		arrives = arrives || dOut[i] != nil
		pretended = pretended || d.pretend[v.ID]
	}
	wanted := false
	for _, v := range n.In {
		wanted = wanted || d.varied[v.ID]
	}
	if !wanted || !arrives && !pretended {
		return
	}
	f, ok := n.Op.(ir.Differentiable)
	if !ok {
		d.missing = append(d.missing, missingGradient(n))
	}
	if !ok || len(d.missing) > 0 {
		for _, v := range n.In {
			d.pretend[v.ID] = d.pretend[v.ID] || d.varied[v.ID]
		}
		return
	}
	d.b.Origin = n.Origin
	d.b.Origin.Node, d.b.Origin.OpType = "grad of "+nodeName(n), ""
	in := f.Grad(d.b, n, dOut)
	if len(in) != len(n.In) {
		panic(ir.Bugf("gradient of %s has %d entries for %d operands", ir.OpName(n.Op), len(in), len(n.In)))
	}
	for i, v := range n.In {
		if in[i] == nil || !d.varied[v.ID] {
			continue
		}
		if !in[i].Type.Equal(v.Type) {
			panic(ir.Bugf("gradient of %s to operand %d is %v, want %v", ir.OpName(n.Op), i, in[i].Type, v.Type))
		}
		if d.grads[v.ID] == nil {
			d.grads[v.ID] = in[i]
		} else {
			d.grads[v.ID] = d.b.Add(op.Add{}, d.grads[v.ID], in[i])
		}
	}
}

// nodeName is what messages call a node.
func nodeName(n *ir.Node) string {
	if n.Origin.Node != "" {
		return n.Origin.Node
	}
	return fmt.Sprintf("%s %%%d", ir.OpName(n.Op), n.Out[0].ID)
}

func missingGradient(n *ir.Node) error {
	reason := "no gradient is defined"
	if r, ok := n.Op.(ir.NoGrad); ok {
		reason = r.NoGradReason()
	}
	e := ir.Errorf(ir.Unsupported, n.Origin, "%s stands between the loss and trainable parameters but has no gradient: %s", ir.OpName(n.Op), reason)
	e.Remedy = "freeze the parameters before it with --freeze, or train on another output"
	return e
}

// prune removes backward nodes that no parameter's gradient needs.
func (d *differ) prune(forward []*ir.Node, params map[ir.ID]*ir.Value) {
	g := d.g
	needed := make([]bool, g.NumValues())
	for _, p := range g.Params {
		if v := params[p.ID]; v != nil {
			needed[v.ID] = true
		}
	}
	backward := g.Nodes[len(forward):]
	keep := make([]bool, len(backward))
	for i := len(backward) - 1; i >= 0; i-- {
		for _, v := range backward[i].Out {
			keep[i] = keep[i] || needed[v.ID]
		}
		if keep[i] {
			for _, v := range backward[i].In {
				needed[v.ID] = true
			}
		}
	}
	nodes := append([]*ir.Node{}, forward...)
	for i, n := range backward {
		if keep[i] {
			nodes = append(nodes, n)
		}
	}
	g.Nodes = nodes
}
