package op

import (
	"math"

	"aitk/ir"
)

// head is one head of an attention under evaluation.
type head struct {
	AttentionDims
	scale   float64
	b, h    int64
	q, k, v []float64 // of this head and its group
	mask    func(i, j int64) float64
}

// eachHead visits the heads of an attention. mask is the operand's position; beyond the operands where there is none.
func eachHead(in []ir.Tensor, mask int, scale float64, visit func(x head)) {
	types := make([]ir.Type, len(in))
	for i, t := range in {
		types[i] = t.Type
	}
	d := AttentionDimsOf(types)
	at, step := func(int64, int64, int64) int64 { return 0 }, int64(0)
	if mask < len(in) {
		at, step = d.MaskAt(in[mask].Type.Shape)
	}
	for b := range d.Batch {
		for h := range d.Heads {
			g := b*d.Groups + h/(d.Heads/d.Groups)
			x := head{AttentionDims: d, scale: scale, b: b, h: h}
			x.q = in[0].F[(b*d.Heads+h)*d.Queries*d.Size:]
			x.k, x.v = in[1].F[g*d.Keys*d.Size:], in[2].F[g*d.Keys*d.Width:]
			x.mask = func(i, j int64) float64 {
				if mask >= len(in) {
					return 0
				}
				return in[mask].F[at(b, h, i)+j*step]
			}
			visit(x)
		}
	}
}

// scores are those of query i.
func (x *head) scores(i int64) []float64 {
	s := make([]float64, x.Keys)
	for j := range s {
		for c := range x.Size {
			s[j] += x.q[i*x.Size+c] * x.k[int64(j)*x.Size+c]
		}
		s[j] = s[j]*x.scale + x.mask(i, int64(j))
	}
	return s
}

// rowLSE is log(sum(exp(s))); of a row of -inf, NaN or with guard -inf.
func rowLSE(s []float64, guard bool) float64 {
	largest, log := logSumExp(s, line{0, int64(len(s)), 1})
	if math.IsInf(largest, -1) {
		if guard {
			return largest
		}
		return math.NaN()
	}
	return largest + log
}

// weights makes the softmax of scores, in place.
func weights(s []float64, lse float64) []float64 {
	for j := range s {
		if math.IsInf(lse, -1) {
			s[j] = 0
		} else {
			s[j] = math.Exp(s[j] - lse)
		}
	}
	return s
}

// Eval takes query by query.
func (o Attention) Eval(in, out []ir.Tensor) {
	eachHead(in, 3, o.Scale, func(x head) {
		row := (x.b*x.Heads + x.h) * x.Queries
		for i := range x.Queries {
			s := x.scores(i)
			lse := rowLSE(s, o.Guard)
			out[1].F[row+i] = lse
			y := out[0].F[(row+i)*x.Width:]
			for j, p := range weights(s, lse) {
				for c := range x.Width {
					y[c] += p * x.v[int64(j)*x.Width+c]
				}
			}
		}
	})
}

// scoreGrad is the softmax of query i and the gradient of its scores: p * (dy·v - dy·y).
func (x *head) scoreGrad(in []ir.Tensor, i int64) (p, ds []float64) {
	row := (x.b*x.Heads+x.h)*x.Queries + i
	p = weights(x.scores(i), in[4].F[row])
	y, dy := in[3].F[row*x.Width:], in[5].F[row*x.Width:]
	var delta float64
	for c := range x.Width {
		delta += y[c] * dy[c]
	}
	ds = make([]float64, x.Keys)
	for j := range ds {
		for c := range x.Width {
			ds[j] += dy[c] * x.v[int64(j)*x.Width+c]
		}
		ds[j] = p[j] * (ds[j] - delta)
	}
	return p, ds
}

// Eval takes query by query.
func (o AttentionGrad) Eval(in, out []ir.Tensor) {
	eachHead(in, 6, o.Scale, func(x head) {
		g := x.b*x.Groups + x.h/(x.Heads/x.Groups)
		dk, dv := out[1].F[g*x.Keys*x.Size:], out[2].F[g*x.Keys*x.Width:]
		for i := range x.Queries {
			row := (x.b*x.Heads+x.h)*x.Queries + i
			dq, dy := out[0].F[row*x.Size:], in[5].F[row*x.Width:]
			p, ds := x.scoreGrad(in, i)
			for j := range p {
				for c := range x.Size {
					dq[c] += o.Scale * ds[j] * x.k[int64(j)*x.Size+c]
					dk[int64(j)*x.Size+c] += o.Scale * ds[j] * x.q[i*x.Size+c]
				}
				for c := range x.Width {
					dv[int64(j)*x.Width+c] += p[j] * dy[c]
				}
			}
		}
	})
}

// Eval adds up the heads that share a mask, in their order.
func (o AttentionMaskGrad) Eval(in, out []ir.Tensor) {
	s := out[0].Type.Shape
	eachHead(in, 6, o.Scale, func(x head) {
		at := (x.b%s[0]*s[1] + x.h%s[1]) * x.Queries * x.Keys
		for i := range x.Queries {
			_, ds := x.scoreGrad(in, i)
			for j, d := range ds {
				out[0].F[at+i*x.Keys+int64(j)] += d
			}
		}
	})
}
