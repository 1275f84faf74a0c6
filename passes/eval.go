package passes

import (
	"aitk/ir"
	"aitk/ir/op"
)

// eval splits a forward graph with its loss into two programs: "step", which goes on to training and gives only the loss, and "eval",
// which gives the model's outputs and the loss and changes nothing. Both know the parameters by the same names.
//
// Evaluation is not training without gradients: Dropout passes its operand on, BatchNorm with running statistics normalises by them
// instead of the batch's, and no parameter has new content. With Options.MaskEval the loss counts only the first "$valid" samples, so that a
// last, padded batch can be judged; a loss that the model computes itself cannot be masked.
func eval() Pass {
	return Pass{
		Name:      "eval",
		Doc:       "make program eval, and leave the training step the loss alone",
		Needs:     HasLoss,
		Gives:     Split,
		Preserves: Changes,
		Required:  true,
		Run: func(ctx *Context, g *ir.Graph) error {
			if !ctx.Options.NoEval {
				e, err := EvalGraph(g, &ctx.Options)
				if err != nil {
					return err
				}
				ctx.Programs = append(ctx.Programs, e)
			}
			g.Name = "step"
			g.Results = []ir.Result{{Name: "loss", Value: g.Result("loss")}}
			removeDead(g)
			return nil
		},
	}
}

// EvalGraph derives program eval from a forward graph with a result "loss"; g stays as it is. o gives the loss, for masking.
func EvalGraph(g *ir.Graph, o *Options) (*ir.Graph, error) {
	e := g.Clone()
	e.Name = "eval"
	if o.MaskEval && o.Loss.Name != "output" {
		dropLoss(e)
		if err := appendLoss(e, o, true); err != nil {
			return nil, err
		}
	}
	evaluate(e)
	for _, p := range e.Params {
		p.Next = nil
	}
	removeDead(e)
	e.Renumber()
	return e, nil
}

// dropLoss undoes appendLoss.
func dropLoss(g *ir.Graph) {
	results := g.Results[:0:0]
	for _, r := range g.Results {
		if r.Name != "loss" {
			results = append(results, r)
		}
	}
	g.Results = results
	removeDead(g)
	inputs := g.Inputs[:0:0]
	for _, v := range g.Inputs {
		if v.Name != "target" {
			inputs = append(inputs, v)
		}
	}
	g.Inputs = inputs
}

// evaluate replaces what behaves otherwise in training.
func evaluate(g *ir.Graph) {
	running := runningStatistics(g)
	sub := make([]*ir.Value, g.NumValues())
	nodes := make([]*ir.Node, 0, len(g.Nodes))
	for _, n := range g.Nodes {
		nodes = append(nodes, n)
		switch o := n.Op.(type) {
		case op.Dropout:
			sub[n.Out[0].ID] = n.In[0]
		case op.BatchNorm:
			stat := running[n]
			if stat[0] == nil || stat[1] == nil {
				continue // the model keeps no statistics: the batch's are all there is
			}
			m, err := g.NewNode(op.BatchNormInference(o), n.In[0], n.In[1], n.In[2], stat[0], stat[1])
			if err != nil {
				panic(ir.Bugf("eval: %v", err))
			}
			m.Phase, m.Origin = n.Phase, n.Origin
			sub[n.Out[0].ID] = m.Out[0]
			nodes = append(nodes, m) // the old one is left to removeDead
		}
	}
	g.Nodes = nodes
	g.Replace(sub)
}

// runningStatistics finds, for each BatchNorm, the parameters that average its mean and variance.
func runningStatistics(g *ir.Graph) map[*ir.Node][2]*ir.Value {
	running := map[*ir.Node][2]*ir.Value{}
	for _, p := range g.Params {
		if p.Next == nil || p.Next.Def == nil {
			continue
		}
		if _, ok := p.Next.Def.Op.(op.MovingAverage); !ok || p.Next.Def.In[0] != p.Value {
			continue
		}
		v := batchStatistic(p.Next.Def.In[1])
		if v == nil {
			continue
		}
		s := running[v.Def]
		s[v.Index-1] = p.Value
		running[v.Def] = s
	}
	return running
}

// batchStatistic follows v back to the mean or variance of a BatchNorm, through what importers put between (the unbiased factor).
func batchStatistic(v *ir.Value) *ir.Value {
	for v.Def != nil {
		switch v.Def.Op.(type) {
		case op.BatchNorm:
			if v.Index == 0 {
				return nil
			}
			return v
		case op.Mul, op.Div, op.Cast, op.Reshape:
			v = v.Def.In[0]
		default:
			return nil
		}
	}
	return nil
}
