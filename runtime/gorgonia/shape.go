package gorgonia

import (
	"fmt"
	"slices"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"

	"aitk/ir"
)

// maxOnes bounds the matrices of zeros and ones that stretch and sum, in elements.
const maxOnes = 1 << 24

func reshape(x *G.Node, to tensor.Shape) (*G.Node, error) {
	if x.Shape().Eq(to) {
		return x, nil
	}
	return G.Reshape(x, to)
}

// expand broadcasts x of shape from to the shape to, one run of axes at a time:
//
//	[1,C,1,1] -> [N,C,1,1]   as  ones[N,1] x [1,C]
//	          -> [N,C,H,W]   as  [N*C,1] x ones[1,H*W]
func (b *builder) expand(x *G.Node, from, to ir.Shape) (*G.Node, error) {
	s := slices.Clone(to)
	for i := range s {
		s[i] = 1
	}
	copy(s[len(to)-len(from):], from)
	for i := 0; i < len(s); i++ {
		j := i
		for j < len(s) && s[j] == 1 && to[j] != 1 {
			j++
		}
		if j == i {
			continue
		}
		var err error
		if x, err = b.stretch(x, s[:i].Elems(), to[i:j].Elems(), s[j:].Elems()); err != nil {
			return nil, err
		}
		copy(s[i:j], to[i:j])
	}
	return reshape(x, matrix(to))
}

// stretch repeats each block of c elements of x [a,c] n times: [a,n,c].
func (b *builder) stretch(x *G.Node, a, n, c int64) (*G.Node, error) {
	if a == 1 {
		return product(b.filled(ir.Shape{n, 1}, 1), ir.Shape{n, 1}, x, ir.Shape{1, c})
	}
	tile, err := b.tile(n, c, false)
	if err != nil {
		return nil, err
	}
	return product(x, ir.Shape{a, c}, tile, ir.Shape{c, n * c})
}

// sum adds up the n blocks of c elements in each of the a parts of x [a,n,c]: [a,c].
func (b *builder) sum(x *G.Node, a, n, c int64) (*G.Node, error) {
	if a == 1 {
		return product(b.filled(ir.Shape{1, n}, 1), ir.Shape{1, n}, x, ir.Shape{n, c})
	}
	tile, err := b.tile(n, c, true)
	if err != nil {
		return nil, err
	}
	return product(x, ir.Shape{a, n * c}, tile, ir.Shape{n * c, c})
}

// product reshapes two operands to matrices and multiplies them.
func product(x *G.Node, xs ir.Shape, y *G.Node, ys ir.Shape) (*G.Node, error) {
	x, err := reshape(x, matrix(xs))
	if err != nil {
		return nil, err
	}
	if y, err = reshape(y, matrix(ys)); err != nil {
		return nil, err
	}
	return G.Mul(x, y)
}

// tile is n identities of extent c side by side, [c,n*c], or one over the other.
func (b *builder) tile(n, c int64, over bool) (*G.Node, error) {
	if n*c*c > maxOnes {
		return nil, fmt.Errorf("repeating blocks of %d elements %d times takes a matrix of more than %d", c, n, int64(maxOnes))
	}
	x := make([]float64, n*c*c)
	for i := range n {
		for j := range c {
			if over {
				x[(i*c+j)*c+j] = 1
			} else {
				x[j*n*c+i*c+j] = 1
			}
		}
	}
	if over {
		return b.constant(ir.Shape{n * c, c}, x), nil
	}
	return b.constant(ir.Shape{c, n * c}, x), nil
}

// reduction sums over axes, one run of them at a time, and multiplies by scale.
func (b *builder) reduction(n *ir.Node, axes []int64, scale float64) rule {
	return func(in []*G.Node) (*G.Node, error) {
		x, s := in[0], n.In[0].Type.Shape.Clone()
		for i := 0; i < len(s); i++ {
			j := i
			for j < len(s) && slices.Contains(axes, int64(j)) && s[j] > 1 {
				j++
			}
			if j == i {
				continue
			}
			var err error
			if x, err = b.sum(x, s[:i].Elems(), s[i:j].Elems(), s[j:].Elems()); err != nil {
				return nil, err
			}
			for k := i; k < j; k++ {
				s[k] = 1
			}
		}
		out := n.Out[0].Type.Shape
		x, err := reshape(x, matrix(out))
		if err != nil || scale == 1 {
			return x, err
		}
		return G.HadamardProd(x, b.filled(out, scale))
	}
}
