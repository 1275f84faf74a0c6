package cpu

import (
	"aitk/ir"
	"aitk/ir/op"
	"aitk/runtime"
)

// sgdKernel serves SGD.
func sgdKernel(b *builder) (runtime.Kernel, error) {
	o, ok := b.x.Op.(op.SGD)
	if !ok {
		return nil, nil
	}
	states := 0
	if o.Momentum != 0 {
		states = 1
	}
	u, err := newUpdate(b, states)
	if err != nil {
		return nil, err
	}
	return u.kernel(b, func(w *worker, n int) {
		lr, first := u.lr.at(0), u.step.at(0) == 0
		p, g := w.f64(0)[:n], w.f64(1)[:n]
		if o.WeightDecay != 0 {
			for k, v := range p {
				g[k] += float64(o.WeightDecay * v)
			}
		}
		if o.Momentum != 0 {
			buf := w.f64(2)[:n]
			for k, v := range g {
				if first {
					buf[k] = v
				} else {
					buf[k] = float64(o.Momentum*buf[k]) + float64((1-o.Dampening)*v)
				}
				if o.Nesterov {
					g[k] = v + float64(o.Momentum*buf[k])
				} else {
					g[k] = buf[k]
				}
			}
		}
		for k, v := range g {
			p[k] -= float64(lr * v)
		}
	}), nil
}

// update is what optimizers share: the parameter and its state, which are written over or beside their operands, and the gradient.
type update struct {
	in, out []floats // p, g, state...; p', state'...
	lr      floats
	step    ints
	ok      ints
	raw     [][2][]byte // the bytes of each output and of the operand that it equals where the flag has fallen
	elem    int         // bytes of an element
	n       int
}

func newUpdate(b *builder, states int) (*update, error) {
	ins := []int{0, 1, 2, 3}[:2+states]
	u := &update{n: int(b.outType(0).Elems()), elem: int(b.outType(0).DType.Bits() / 8)}
	var err error
	if u.in, u.out, err = b.floatsAt(ins...); err != nil {
		return nil, err
	}
	if u.lr, err = b.floatIn(2 + states); err != nil {
		return nil, err
	}
	if u.step, err = b.intIn(3 + states); err != nil {
		return nil, err
	}
	if u.ok, err = b.intIn(4 + states); err != nil {
		return nil, err
	}
	for _, a := range ir.AliasesOf(b.x.Op) {
		u.raw = append(u.raw, [2][]byte{view[byte](b.out[a.Out]), view[byte](b.in[a.In])})
	}
	return u, nil
}

// kernel makes the kernel that hands n elements of p, g and the state to formula in the worker's blocks 0, 1, 2 ..., where it leaves p and
// the state updated; or that copies where the flag has fallen.
func (u *update) kernel(b *builder, formula func(w *worker, n int)) runtime.Kernel {
	return b.ranges(u.n, rangeElems, func(w *worker, lo, hi int) error {
		if u.ok.at(0) == 0 {
			for _, r := range u.raw {
				copy(r[0][lo*u.elem:hi*u.elem], r[1][lo*u.elem:hi*u.elem])
			}
			return nil
		}
		for i := lo; i < hi; i += blockElems {
			n := min(blockElems, hi-i)
			for t := range u.in {
				u.in[t].load(w.f64(t)[:n], i)
			}
			formula(w, n)
			u.out[0].store(i, w.f64(0)[:n])
			for t := range u.out[1:] {
				u.out[1+t].store(i, w.f64(2 + t)[:n])
			}
		}
		return nil
	})
}
