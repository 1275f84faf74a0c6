package gen

import (
	"fmt"
	"math/rand/v2"

	"aitk/ir"
)

// contentSpan bounds what content gives. Indices between -2 and 1 are in range along every axis of extent 2 or more.
func contentSpan(d ir.DType) span {
	switch {
	case d.IsFloat():
		return span{-1, 1}
	case d == ir.Bool || d == ir.U8:
		return span{0, 1}
	}
	return span{-2, 1}
}

// content is a random tensor: floats are multiples of 1/64, which every float type holds.
func content(r *rand.Rand, t ir.Type) ir.Tensor {
	x := ir.NewTensor(t)
	s := contentSpan(t.DType)
	for i := range x.F {
		x.F[i] = float64(r.IntN(129)-64) / 64
	}
	for i := range x.I {
		x.I[i] = int64(s.lo) + r.Int64N(int64(s.hi-s.lo)+1)
	}
	return x
}

// Inputs makes random content for the inputs of a generated graph. The reserved ones get: $seed the seed, $step and $micro 0, $lr 0.125.
func Inputs(g *ir.Graph, seed uint64) map[string]ir.Tensor {
	r := rand.New(rand.NewPCG(seed, 0x696e))
	all := make(map[string]ir.Tensor, len(g.Inputs))
	for _, v := range g.Inputs {
		t := ir.NewTensor(v.Type)
		switch v.Name {
		case "$seed":
			t.I[0] = int64(seed)
		case "$step", "$micro":
		case "$lr":
			t.F[0] = 0.125
		default:
			t = content(r, v.Type)
		}
		all[v.Name] = t
	}
	return all
}

// Params is the first content of the parameters of a generated graph, or of any whose parameters are zero, filled or literal; others are an
// error.
func Params(g *ir.Graph) (map[string]ir.Tensor, error) {
	all := make(map[string]ir.Tensor, len(g.Params))
	for _, p := range g.Params {
		t := ir.NewTensor(p.Type)
		switch p.Init.Kind {
		case ir.InitZero:
		case ir.InitFill:
			for i := range t.F {
				t.F[i] = p.Init.Fill
			}
			for i := range t.I {
				t.I[i] = int64(p.Init.Fill)
			}
			t.Round()
		case ir.InitLiteral:
			var err error
			if t, err = ir.DecodeTensor(p.Type, p.Init.Literal); err != nil {
				return nil, fmt.Errorf("parameter %q: %w", p.Name, err)
			}
		default:
			return nil, fmt.Errorf("parameter %q: its content is not in the graph", p.Name)
		}
		all[p.Name] = t
	}
	return all, nil
}
