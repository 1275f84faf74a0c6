package cpu

import (
	"math"

	"aitk/ir/op"
	"aitk/runtime"
)

// softmaxKernel serves Softmax, LogSoftmax and their gradients.
func softmaxKernel(b *builder) (runtime.Kernel, error) {
	switch o := b.x.Op.(type) {
	case op.Softmax:
		return softmax(b, o.Axis, false)
	case op.LogSoftmax:
		return softmax(b, o.Axis, true)
	case op.SoftmaxGrad:
		return softmaxGrad(b, o.Axis, false)
	case op.LogSoftmaxGrad:
		return softmaxGrad(b, o.Axis, true)
	}
	return nil, nil
}

func softmax(b *builder, axis int64, log bool) (runtime.Kernel, error) {
	in, out, err := b.floatsAt(0)
	if err != nil {
		return nil, err
	}
	x, y := in[0], out[0]
	l := linesAlong(b.inType(0).Shape, axis)
	return l.over(b, func(w *worker, line int) error {
		first := l.first(line)
		largest, sum := l.expSum(w, &x, first)
		if log {
			largest += math.Log(sum)
		}
		inv := 1 / sum
		for lo := 0; lo < l.n; lo += lineChunk {
			buf := w.panelA[:min(lineChunk, l.n-lo)]
			at := first + lo*l.inner
			switch {
			case log:
				x.loadStep(buf, at, l.inner)
				for k, v := range buf {
					buf[k] = v - largest
				}
			case l.n <= lineChunk: // the exponentials are still there
				for k, v := range buf {
					buf[k] = v * inv
				}
			default:
				x.loadStep(buf, at, l.inner)
				for k, v := range buf {
					buf[k] = math.Exp(v-largest) * inv
				}
			}
			y.storeStep(at, l.inner, buf)
		}
		return nil
	}), nil
}

// expSum is the largest element of the line that starts at first, and the sum of exp(x - largest) in index order. It leaves the
// exponentials in panelA where the line is no longer than lineChunk.
func (l lines) expSum(w *worker, x *floats, first int) (largest, sum float64) {
	largest = math.Inf(-1)
	for lo := 0; lo < l.n; lo += lineChunk {
		buf := w.panelA[:min(lineChunk, l.n-lo)]
		x.loadStep(buf, first+lo*l.inner, l.inner)
		for _, v := range buf {
			if v > largest || v != v {
				largest = v
			}
		}
	}
	for lo := 0; lo < l.n; lo += lineChunk {
		buf := w.panelA[:min(lineChunk, l.n-lo)]
		if l.n > lineChunk {
			x.loadStep(buf, first+lo*l.inner, l.inner)
		}
		for k, v := range buf {
			e := math.Exp(v - largest)
			buf[k] = e
			sum += e
		}
	}
	return largest, sum
}

// softmaxGrad is y*(dy - sum(y*dy)) or, for the logarithm, dy - exp(y)*sum(dy).
func softmaxGrad(b *builder, axis int64, log bool) (runtime.Kernel, error) {
	in, out, err := b.floatsAt(0, 1)
	if err != nil {
		return nil, err
	}
	y, dy, dx := in[0], in[1], out[0]
	l := linesAlong(b.inType(0).Shape, axis)
	return l.over(b, func(w *worker, line int) error {
		first := l.first(line)
		var sum float64
		for lo := 0; lo < l.n; lo += lineChunk {
			ys, gs := l.chunkPair(w, &y, &dy, first, lo)
			for k, g := range gs {
				if log {
					sum += g
				} else {
					sum += float64(ys[k] * g)
				}
			}
		}
		for lo := 0; lo < l.n; lo += lineChunk {
			ys, gs := w.panelA[:min(lineChunk, l.n-lo)], w.panelB[:min(lineChunk, l.n-lo)]
			if l.n > lineChunk {
				ys, gs = l.chunkPair(w, &y, &dy, first, lo)
			}
			for k, g := range gs {
				if log {
					ys[k] = g - float64(math.Exp(ys[k])*sum)
				} else {
					ys[k] *= g - sum
				}
			}
			dx.storeStep(first+lo*l.inner, l.inner, ys)
		}
		return nil
	}), nil
}

// chunkPair loads the same stretch of a line of two tensors into panelA and panelB.
func (l lines) chunkPair(w *worker, x, y *floats, first, lo int) (xs, ys []float64) {
	n := min(lineChunk, l.n-lo)
	xs, ys = w.panelA[:n], w.panelB[:n]
	x.loadStep(xs, first+lo*l.inner, l.inner)
	y.loadStep(ys, first+lo*l.inner, l.inner)
	return xs, ys
}
