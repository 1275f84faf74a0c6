package cpu

import (
	"aitk/ir/op"
	"aitk/runtime"
)

// movingAverageKernel serves MovingAverage.
func movingAverageKernel(b *builder) (runtime.Kernel, error) {
	o, ok := b.x.Op.(op.MovingAverage)
	if !ok {
		return nil, nil
	}
	in, out, err := b.floatsAt(0, 1)
	if err != nil {
		return nil, err
	}
	running, batch, next := in[0], in[1], out[0]
	return b.ranges(int(b.outType(0).Elems()), rangeElems, func(w *worker, lo, hi int) error {
		for i := lo; i < hi; i += blockElems {
			n := min(blockElems, hi-i)
			old, now := w.f64(0)[:n], w.f64(1)[:n]
			running.load(old, i)
			batch.load(now, i)
			for k, v := range now {
				old[k] = float64(o.Momentum*old[k]) + float64((1-o.Momentum)*v)
			}
			next.store(i, old)
		}
		return nil
	}), nil
}
