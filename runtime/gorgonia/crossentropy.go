package gorgonia

import (
	"fmt"

	G "gorgonia.org/gorgonia"

	"aitk/ir"
	"aitk/ir/op"
)

// softmax is exp(x)/sum(exp(x)) along an axis, or its logarithm x - log(sum(exp(x))). Nothing is subtracted from x first, which float64 bears for
// elements up to 700.
func (b *builder) softmax(n *ir.Node, axis int64, log bool) rule {
	s := n.In[0].Type.Shape
	return func(in []*G.Node) (*G.Node, error) { return b.softmaxOf(in[0], s, axis, log) }
}

func (b *builder) softmaxOf(x *G.Node, s ir.Shape, axis int64, log bool) (*G.Node, error) {
	e, err := G.Exp(x)
	if err != nil {
		return nil, err
	}
	total, err := b.sum(e, s[:axis].Elems(), s[axis], s[axis+1:].Elems())
	if err != nil {
		return nil, err
	}
	if log {
		if total, err = G.Log(total); err != nil {
			return nil, err
		}
	}
	if total, err = b.stretch(total, s[:axis].Elems(), s[axis], s[axis+1:].Elems()); err != nil {
		return nil, err
	}
	if total, err = reshape(total, matrix(s)); err != nil {
		return nil, err
	}
	if log {
		return G.Sub(x, total)
	}
	return G.HadamardDiv(e, total)
}

// crossEntropy is the sum of -weights*logp. The labels are known, so the weights are numbers:
// (1-smoothing) at the label plus smoothing/classes everywhere, divided by the number of labels for a mean, and 0 for what is ignored.
func (b *builder) crossEntropy(n *ir.Node, o op.SoftmaxCrossEntropy) rule {
	s := n.In[0].Type.Shape
	return func(in []*G.Node) (*G.Node, error) {
		labels := b.data[n.In[1].ID].I
		inner, classes := s[o.Axis+1:].Elems(), s[o.Axis]
		weights := make([]float64, s.Elems())
		kept := 0.0
		for i, label := range labels {
			if o.HasIgnore && label == o.IgnoreIndex {
				continue
			}
			if label < 0 || label >= classes {
				return nil, fmt.Errorf("label %d of %d classes", label, classes)
			}
			kept++
			first := int64(i)/inner*classes*inner + int64(i)%inner
			for c := range classes {
				weights[first+c*inner] = o.LabelSmoothing / float64(classes)
			}
			weights[first+label*inner] += 1 - o.LabelSmoothing
		}
		if o.Reduction == "mean" {
			if kept == 0 {
				return nil, fmt.Errorf("every label is ignored: the mean is not a number")
			}
			for i := range weights {
				weights[i] /= kept
			}
		}
		logp, err := b.softmaxOf(in[0], s, o.Axis, true)
		if err != nil {
			return nil, err
		}
		each, err := G.HadamardProd(logp, b.constant(s, weights))
		if err != nil {
			return nil, err
		}
		total, err := b.sum(each, 1, s.Elems(), 1)
		if err != nil {
			return nil, err
		}
		return G.Neg(total)
	}
}
