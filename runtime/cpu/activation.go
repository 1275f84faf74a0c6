package cpu

import (
	"math"

	"aitk/ir"
	"aitk/ir/op"
	"aitk/runtime"
)

// activationKernel serves the activation functions and their gradients.
func activationKernel(b *builder) (runtime.Kernel, error) {
	switch o := b.x.Op.(type) {
	case op.Tanh:
		return unaryFloat(b, nil, mapped(math.Tanh))
	case op.Erf:
		return unaryFloat(b, nil, mapped(math.Erf))
	case op.Sigmoid:
		return unaryFloat(b, nil, sigmoidBlock)
	case op.Relu:
		return unaryNumber(b, reluBlock[float32], reluBlock[float64], reluBlock[int64])
	case op.Softplus:
		return unaryFloat(b, nil, softplusBlock)
	case op.Gelu:
		if o.Tanh {
			return unaryFloat(b, nil, geluTanhBlock)
		}
		return unaryFloat(b, nil, geluBlock)
	case op.Swish:
		return unaryFloat(b, nil, func(dst, src []float64) { swishBlock(dst, src, o.Alpha) })
	case op.LeakyRelu:
		return unaryFloat(b, nil, func(dst, src []float64) { leakyReluBlock(dst, src, o.Alpha) })
	case op.Clip:
		return clip(b, o)
	case op.ReluGrad:
		return pairFloat(b, reluGradBlock[float32], reluGradBlock[float64])
	case op.TanhGrad:
		return pairFloat(b, nil, tanhGradBlock)
	case op.ErfGrad:
		return pairFloat(b, nil, erfGradBlock)
	case op.SigmoidGrad:
		return pairFloat(b, nil, sigmoidGradBlock)
	case op.GeluGrad:
		if o.Tanh {
			return pairFloat(b, nil, geluTanhGradBlock)
		}
		return pairFloat(b, nil, geluGradBlock)
	case op.SwishGrad:
		return pairFloat(b, nil, func(dst, x, dy []float64) { swishGradBlock(dst, x, dy, o.Alpha) })
	}
	return nil, nil
}

// pairFloat applies f to two operands of one type, like unaryFloat.
func pairFloat(b *builder, narrow func(dst, x, y []float32), f func(dst, x, y []float64)) (runtime.Kernel, error) {
	n := int(b.outType(0).Elems())
	if narrow != nil && b.inType(0).DType == ir.F32 {
		x, y, z := view[float32](b.in[0]), view[float32](b.in[1]), view[float32](b.out[0])
		return b.ranges(n, rangeElems, func(_ *worker, lo, hi int) error {
			narrow(z[lo:hi], x[lo:hi], y[lo:hi])
			return nil
		}), nil
	}
	in, out, err := b.floatsAt(0, 1)
	if err != nil {
		return nil, err
	}
	x, y, z := in[0], in[1], out[0]
	return b.ranges(n, rangeElems, func(w *worker, lo, hi int) error {
		for i := lo; i < hi; i += blockElems {
			k := min(blockElems, hi-i)
			xs, ys := w.f64(0)[:k], w.f64(1)[:k]
			x.load(xs, i)
			y.load(ys, i)
			f(xs, xs, ys)
			z.store(i, xs)
		}
		return nil
	}), nil
}

// clip bounds integers by whole numbers: fractions move inward, as op.Clip says.
func clip(b *builder, o op.Clip) (runtime.Kernel, error) {
	lo32, hi32 := float32(o.Min), float32(o.Max)
	narrow := func(dst, src []float32) {
		for i, x := range src {
			dst[i] = min(max(x, lo32), hi32)
		}
	}
	if float64(lo32) != o.Min || float64(hi32) != o.Max {
		narrow = nil // between two float32: only the wide way rounds it right
	}
	lo, hi := o.IntBounds(b.inType(0).DType)
	return unaryNumber(b, narrow, func(dst, src []float64) {
		for i, x := range src {
			dst[i] = min(max(x, o.Min), o.Max)
		}
	}, func(dst, src []int64) {
		for i, x := range src {
			dst[i] = min(max(x, lo), hi)
		}
	})
}

// reluBlock lets NaN through, as every framework does: the comparison is written so that it is false for NaN.
func reluBlock[T float32 | float64 | int64](dst, src []T) {
	for i, x := range src {
		if x <= 0 {
			x = 0
		}
		dst[i] = x
	}
}

func reluGradBlock[T float32 | float64](dst, y, dy []T) {
	dy = dy[:len(y)]
	for i, v := range y {
		d := dy[i]
		if v <= 0 {
			d = 0
		}
		dst[i] = d
	}
}

func sigmoidBlock(dst, src []float64) {
	for i, x := range src {
		dst[i] = 1 / (1 + math.Exp(-x))
	}
}

func softplusBlock(dst, src []float64) {
	for i, x := range src {
		dst[i] = max(x, 0) + math.Log1p(math.Exp(-math.Abs(x)))
	}
}

func leakyReluBlock(dst, src []float64, alpha float64) {
	for i, x := range src {
		if x <= 0 {
			x *= alpha
		}
		dst[i] = x
	}
}

func geluBlock(dst, src []float64) {
	for i, x := range src {
		dst[i] = x / 2 * (1 + math.Erf(x/math.Sqrt2))
	}
}

const (
	geluScale = 0.79788456080286535587989211986876 // sqrt(2/pi), of the tanh approximation of gelu
	geluCubic = 0.044715
	normal    = 0.39894228040143267793994605993438 // 1/sqrt(2*pi)
)

func geluTanhBlock(dst, src []float64) {
	for i, x := range src {
		dst[i] = x / 2 * (1 + math.Tanh(geluScale*(x+float64(geluCubic*x*x*x))))
	}
}

func swishBlock(dst, src []float64, alpha float64) {
	for i, x := range src {
		dst[i] = x / (1 + math.Exp(-alpha*x))
	}
}

func swishGradBlock(dst, x, dy []float64, alpha float64) {
	for i, v := range x {
		s := 1 / (1 + math.Exp(-alpha*v))
		dst[i] = dy[i] * (s + float64(alpha*v*s*(1-s)))
	}
}

func tanhGradBlock(dst, y, dy []float64) {
	for i, v := range y {
		dst[i] = dy[i] * (1 - float64(v*v))
	}
}

func erfGradBlock(dst, x, dy []float64) {
	for i, v := range x {
		dst[i] = dy[i] * (2 * normal * math.Sqrt2) * math.Exp(-v*v)
	}
}

func sigmoidGradBlock(dst, y, dy []float64) {
	for i, v := range y {
		dst[i] = dy[i] * v * (1 - v)
	}
}

func geluGradBlock(dst, x, dy []float64) {
	for i, v := range x {
		slope := float64((1+math.Erf(v/math.Sqrt2))/2) + float64(v*math.Exp(-v*v/2)*normal)
		dst[i] = dy[i] * slope
	}
}

func geluTanhGradBlock(dst, x, dy []float64) {
	for i, v := range x {
		t := math.Tanh(geluScale * (v + float64(geluCubic*v*v*v)))
		slope := (1+t)/2 + float64(v/2*(1-float64(t*t))*geluScale*(1+float64(3*geluCubic*v*v)))
		dst[i] = dy[i] * slope
	}
}
