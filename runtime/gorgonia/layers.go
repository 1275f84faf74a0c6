package gorgonia

import (
	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"aitk/ir"
	"aitk/ir/op"
)

// matMul multiplies matrices. A stack of matrices times one matrix is one tall product; other stacks are not covered.
func matMul(n *ir.Node, o op.MatMul) (rule, error) {
	a, w := n.In[0].Type.Shape, n.In[1].Type.Shape
	if len(w) != 2 || len(a) != 2 && o.TransA {
		return refuse(" for stacks of matrices %v and %v", a, w)
	}
	out := matrix(n.Out[0].Type.Shape)
	return func(in []*G.Node) (*G.Node, error) {
		x, y := in[0], in[1]
		var err error
		if len(a) > 2 {
			last := len(a) - 1
			if x, err = reshape(x, matrix(ir.Shape{a[:last].Elems(), a[last]})); err != nil {
				return nil, err
			}
		}
		if o.TransA {
			if x, err = G.Transpose(x, 1, 0); err != nil {
				return nil, err
			}
		}
		if o.TransB {
			if y, err = G.Transpose(y, 1, 0); err != nil {
				return nil, err
			}
		}
		if x, err = G.Mul(x, y); err != nil {
			return nil, err
		}
		return reshape(x, out)
	}, nil
}

// conv is Gorgonia's Conv2d, which pads both ends of an axis alike.
func conv(n *ir.Node, o op.Conv) (rule, error) {
	w := n.In[1].Type.Shape
	switch {
	case len(w) != 4:
		return refuse(" for %d spatial axes", len(w)-2)
	case o.Group != 1:
		return refuse(" for %d groups", o.Group)
	case !alike(o.Pads):
		return refuse(" for pads %v", o.Pads)
	}
	return func(in []*G.Node) (*G.Node, error) {
		return G.Conv2d(in[0], in[1], tensor.Shape{int(w[2]), int(w[3])}, ints(o.Pads[:2]), ints(o.Strides), ints(o.Dilations))
	}, nil
}

// maxPool is Gorgonia's MaxPool2D. It takes cells of the padding for zeros where ours never win, so pads are not covered.
func maxPool(_ *ir.Node, o op.MaxPool) (rule, error) {
	switch {
	case len(o.Kernel) != 2:
		return refuse(" for %d spatial axes", len(o.Kernel))
	case o.Dilations[0] != 1 || o.Dilations[1] != 1:
		return refuse(" for dilations %v", o.Dilations)
	}
	for _, p := range o.Pads {
		if p != 0 {
			return refuse(" for pads %v", o.Pads)
		}
	}
	return func(in []*G.Node) (*G.Node, error) {
		return G.MaxPool2D(in[0], tensor.Shape{int(o.Kernel[0]), int(o.Kernel[1])}, []int{0, 0}, ints(o.Strides))
	}, nil
}

// alike tells whether both ends of each of two axes are padded by the same.
func alike(pads []int64) bool { return pads[0] == pads[2] && pads[1] == pads[3] }

func ints(xs []int64) []int {
	out := make([]int, len(xs))
	for i, x := range xs {
		out[i] = int(x)
	}
	return out
}
