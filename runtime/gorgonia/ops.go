package gorgonia

import (
	"errors"
	"fmt"

	G "gorgonia.org/gorgonia"

	"aitk/ir"
	"aitk/ir/op"
)

// rule builds a node from its operands; integers among them are nil.
type rule func(in []*G.Node) (*G.Node, error)

// all builds every needed node, in order. What is not covered is found from the types alone, before anything is built, and listed at once.
func (b *builder) all(g *ir.Graph) error {
	var problems []error
	rules := make([]rule, g.NumNodes())
	for _, n := range g.Nodes {
		if !b.needsNode(n) {
			continue
		}
		r, err := b.rule(n)
		if err != nil {
			problems = append(problems, fmt.Errorf("%s is not covered%w (at %s)", ir.OpName(n.Op), err, n.Line()))
		}
		rules[n.ID] = r
	}
	if len(problems) > 0 {
		return &ir.Error{Kind: ir.Unsupported, Cause: fmt.Errorf("gorgonia, graph %q: %w", g.Name, errors.Join(problems...))}
	}
	for _, n := range g.Nodes {
		r := rules[n.ID]
		if r == nil {
			continue
		}
		in := make([]*G.Node, len(n.In))
		for i, v := range n.In {
			in[i] = b.nodes[v.ID]
		}
		y, err := r(in)
		if err != nil {
			return &ir.Error{Origin: n.Origin, Cause: fmt.Errorf("gorgonia, building %s: %w", n.Line(), err)}
		}
		if y == nil {
			continue
		}
		if want := matrix(n.Out[0].Type.Shape); !y.Shape().Eq(want) {
			return &ir.Error{Origin: n.Origin, Cause: fmt.Errorf("gorgonia gives %v for %s", y.Shape(), n.Line())}
		}
		b.nodes[n.Out[0].ID] = y
	}
	return nil
}

func (b *builder) needsNode(n *ir.Node) bool {
	for _, v := range n.Out {
		if b.needed[v.ID] {
			return true
		}
	}
	return false
}

// refuse says why something is not covered; the caller names the op.
func refuse(format string, args ...any) (rule, error) { return nil, fmt.Errorf(format, args...) }

// rule finds how to build n, or says why it is not covered.
func (b *builder) rule(n *ir.Node) (rule, error) {
	out := n.Out[0].Type
	for _, v := range append(n.Out[:len(n.Out):len(n.Out)], n.In...) {
		if v.Type.Elems() == 0 {
			return refuse(" without elements")
		}
	}
	if o, ok := n.Op.(op.Reshape); ok && !out.DType.IsFloat() {
		return func([]*G.Node) (*G.Node, error) {
			b.data[n.Out[0].ID] = ir.Tensor{Type: ir.T(out.DType, o.Shape...), I: b.data[n.In[0].ID].I}
			return nil, nil
		}, nil
	}
	if d := out.DType; d != ir.F32 && d != ir.F64 {
		return refuse(" with a result of %v", d)
	}
	if f := unary(n.Op); f != nil {
		return func(in []*G.Node) (*G.Node, error) { return f(in[0]) }, nil
	}
	if _, ok := n.Op.(op.Relu); ok { // the gradient of Rectify at 0 is 1
		return func(in []*G.Node) (*G.Node, error) {
			above, err := G.Gt(in[0], b.filled(out.Shape, 0), true)
			if err != nil {
				return nil, err
			}
			return G.HadamardProd(in[0], above)
		}, nil
	}
	if f := binary(n.Op); f != nil {
		return func(in []*G.Node) (*G.Node, error) {
			x, err := b.expand(in[0], n.In[0].Type.Shape, out.Shape)
			if err != nil {
				return nil, err
			}
			y, err := b.expand(in[1], n.In[1].Type.Shape, out.Shape)
			if err != nil {
				return nil, err
			}
			return f(x, y)
		}, nil
	}
	switch o := n.Op.(type) {
	case op.Cast:
		if !n.In[0].Type.DType.IsFloat() {
			return refuse(" from integers")
		}
		return func(in []*G.Node) (*G.Node, error) { return in[0], nil }, nil
	case op.Fill:
		return func([]*G.Node) (*G.Node, error) { return b.filled(out.Shape, o.Value), nil }, nil
	case op.Reshape:
		return func(in []*G.Node) (*G.Node, error) { return reshape(in[0], matrix(out.Shape)) }, nil
	case op.Expand:
		return func(in []*G.Node) (*G.Node, error) { return b.expand(in[0], n.In[0].Type.Shape, out.Shape) }, nil
	case op.ReduceSum:
		return b.reduction(n, o.Axes, 1), nil
	case op.ReduceMean:
		return b.reduction(n, o.Axes, float64(out.Elems())/float64(n.In[0].Type.Elems())), nil
	case op.MatMul:
		return matMul(n, o)
	case op.Conv:
		return conv(n, o)
	case op.MaxPool:
		return maxPool(n, o)
	case op.Softmax:
		return b.softmax(n, o.Axis, false), nil
	case op.LogSoftmax:
		return b.softmax(n, o.Axis, true), nil
	case op.SoftmaxCrossEntropy:
		return b.crossEntropy(n, o), nil
	}
	return refuse("")
}

// unary is a function that Gorgonia has as it is, or nil.
func unary(o ir.Op) func(*G.Node) (*G.Node, error) {
	switch o.(type) {
	case op.Neg:
		return G.Neg
	case op.Abs:
		return G.Abs
	case op.Exp:
		return G.Exp
	case op.Log:
		return G.Log
	case op.Sqrt:
		return G.Sqrt
	case op.Rsqrt: // the gradient of InverseSqrt is wrong in Gorgonia v0.9.18
		return func(x *G.Node) (*G.Node, error) {
			y, err := G.Sqrt(x)
			if err != nil {
				return nil, err
			}
			return G.Inverse(y)
		}
	case op.Reciprocal:
		return G.Inverse
	case op.Sin:
		return G.Sin
	case op.Cos:
		return G.Cos
	case op.Tanh:
		return G.Tanh
	case op.Sigmoid:
		return G.Sigmoid
	case op.Softplus:
		return G.Softplus
	}
	return nil
}

// binary is a function of two operands of one shape, or nil.
func binary(o ir.Op) func(a, b *G.Node) (*G.Node, error) {
	switch o.(type) {
	case op.Add:
		return G.Add
	case op.Sub:
		return G.Sub
	case op.Mul:
		return G.HadamardProd
	case op.Div:
		return G.HadamardDiv
	}
	return nil
}
