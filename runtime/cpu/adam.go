package cpu

import (
	"math"

	"aitk/ir/op"
	"aitk/runtime"
)

// adamKernel serves Adam.
func adamKernel(b *builder) (runtime.Kernel, error) {
	o, ok := b.x.Op.(op.Adam)
	if !ok {
		return nil, nil
	}
	u, err := newUpdate(b, 2)
	if err != nil {
		return nil, err
	}
	return u.kernel(b, func(w *worker, n int) {
		lr, t := u.lr.at(0), float64(u.step.at(0))+1
		rate := lr / (1 - math.Pow(o.Beta1, t))
		inv := 1 / math.Sqrt(1-math.Pow(o.Beta2, t))
		shrink := 1 - float64(lr*o.WeightDecay)
		p, g, m, v := w.f64(0)[:n], w.f64(1)[:n], w.f64(2)[:n], w.f64(3)[:n]
		switch {
		case o.WeightDecay == 0:
		case o.Decoupled:
			for k := range p {
				p[k] *= shrink
			}
		default:
			for k, x := range p {
				g[k] += float64(o.WeightDecay * x)
			}
		}
		for k, x := range g {
			mk := float64(o.Beta1*m[k]) + float64((1-o.Beta1)*x)
			vk := float64(o.Beta2*v[k]) + float64((1-o.Beta2)*x*x)
			m[k], v[k] = mk, vk
			p[k] -= rate * mk / (float64(math.Sqrt(vk)*inv) + o.Eps)
		}
	}), nil
}
