package importer

import (
	"aitk/ir"
	"aitk/ir/op"
)

// lowerLSTM has the gates input, output, forget and cell, in this order:
//
//	i = f(x*Wi + h*Ri + Pi.c + bi)    o = f(x*Wo + h*Ro + Po.C + bo)
//	f = f(x*Wf + h*Rf + Pf.c + bf)    g = g(x*Wc + h*Rc + bc)
//	C = f.c + i.g                     H = o.h(C)
//
// P are peepholes, one weight an element of the cell; input_forget couples the gates: f = 1 - i.
func lowerLSTM(c *call) []*operand {
	r := c.newRNN(4, "Sigmoid", "Tanh", "Tanh")
	r.initC, r.peephole = c.optional(6), c.optional(7)
	coupled := c.flag("input_forget", false)
	if r.peephole != nil && !r.peephole.typ.Shape.Equal(ir.Shape{r.directions, 3 * r.hidden}) {
		c.invalid("peepholes %v", r.peephole.typ)
	}
	for d := range r.reverse {
		x := r.direction(d)
		if x.wb != nil {
			x.inputs = c.emit(op.Add{}, x.inputs, c.emit(op.Add{}, x.wb, x.ub))
		}
		var peep [3]*operand // input, output, forget
		if r.peephole != nil {
			p := c.part(r.peephole, int64(d))
			for k := range peep {
				peep[k] = c.slice(p, 0, int64(k)*r.hidden, int64(k+1)*r.hidden, 1)
			}
		}
		look := func(a *operand, k int, cell *operand) *operand {
			if peep[k] == nil {
				return a
			}
			return c.emit(op.Add{}, a, c.emit(op.Mul{}, peep[k], cell))
		}
		x.run([]*operand{x.start(r.initialH), x.start(r.initC)}, func(xt *operand, s []*operand) []*operand {
			all := c.emit(op.Add{}, xt, c.emit(op.MatMul{TransB: true}, s[0], x.u))
			old := s[1]
			in := r.gate(d, 0, look(r.block(all, 0), 0, old))
			var forget *operand
			if coupled {
				forget = c.emit(op.Sub{}, scalar(in.typ.DType, 1), in)
			} else {
				forget = r.gate(d, 0, look(r.block(all, 2), 2, old))
			}
			cell := c.emit(op.Add{}, c.emit(op.Mul{}, forget, old), c.emit(op.Mul{}, in, r.gate(d, 1, r.block(all, 3))))
			out := r.gate(d, 0, look(r.block(all, 1), 1, cell))
			return []*operand{c.emit(op.Mul{}, out, r.gate(d, 2, cell)), cell}
		})
	}
	return r.outputs()
}

// lowerGRU has the gates update, reset and hidden, in this order:
//
//	z = f(x*Wz + h*Rz + bz)    r = f(x*Wr + h*Rr + br)
//	n = g(x*Wh + (r.h)*Rh + bh), or with linear_before_reset g(x*Wh + wbh + r.(h*Rh + rbh))
//	H = (1-z).n + z.h
func lowerGRU(c *call) []*operand {
	r := c.newRNN(3, "Sigmoid", "Tanh")
	linear := c.flag("linear_before_reset", false)
	n := r.hidden
	for d := range r.reverse {
		x := r.direction(d)
		if x.wb != nil {
			x.inputs = c.emit(op.Add{}, x.inputs, x.wb)
		}
		uzr, uh := c.slice(x.u, 0, 0, 2*n, 1), c.slice(x.u, 0, 2*n, 3*n, 1)
		var bzr, bh *operand
		if x.ub != nil {
			bzr, bh = c.slice(x.ub, 0, 0, 2*n, 1), c.slice(x.ub, 0, 2*n, 3*n, 1)
		}
		times := func(h, u, b *operand) *operand {
			y := c.emit(op.MatMul{TransB: true}, h, u)
			if b != nil {
				y = c.emit(op.Add{}, y, b)
			}
			return y
		}
		x.run([]*operand{x.start(r.initialH)}, func(xt *operand, s []*operand) []*operand {
			h := s[0]
			zr := c.emit(op.Add{}, c.slice(xt, 1, 0, 2*n, 1), times(h, uzr, bzr))
			z, reset := r.gate(d, 0, r.block(zr, 0)), r.gate(d, 0, r.block(zr, 1))
			var inner *operand
			if linear {
				inner = c.emit(op.Mul{}, reset, times(h, uh, bh))
			} else {
				inner = times(c.emit(op.Mul{}, reset, h), uh, bh)
			}
			fresh := r.gate(d, 1, c.emit(op.Add{}, r.block(xt, 2), inner))
			keep := c.emit(op.Mul{}, z, h)
			return []*operand{c.emit(op.Add{}, c.emit(op.Mul{}, c.emit(op.Sub{}, scalar(z.typ.DType, 1), z), fresh), keep)}
		})
	}
	return r.outputs()
}
