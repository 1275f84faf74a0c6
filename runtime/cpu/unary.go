package cpu

import (
	"math"

	"aitk/ir"
	"aitk/ir/op"
	"aitk/runtime"
)

// unaryKernel serves the functions of one operand that keep its type.
func unaryKernel(b *builder) (runtime.Kernel, error) {
	switch o := b.x.Op.(type) {
	case op.Neg:
		return unaryNumber(b, negBlock[float32], negBlock[float64], negBlock[int64])
	case op.Abs:
		return unaryNumber(b, absF32, absBlock, absInts)
	case op.Sign:
		return unaryNumber(b, nil, signBlock, signInts)
	case op.Floor:
		return unaryFloat(b, nil, mapped(math.Floor))
	case op.Ceil:
		return unaryFloat(b, nil, mapped(math.Ceil))
	case op.Round:
		return unaryFloat(b, nil, mapped(math.RoundToEven))
	case op.Exp:
		return unaryFloat(b, nil, mapped(math.Exp))
	case op.Log:
		return unaryFloat(b, nil, mapped(math.Log))
	case op.Sqrt:
		return unaryFloat(b, nil, sqrtBlock)
	case op.Rsqrt:
		return unaryFloat(b, nil, rsqrtBlock)
	case op.Reciprocal:
		return unaryFloat(b, nil, reciprocalBlock)
	case op.Sin:
		return unaryFloat(b, nil, mapped(math.Sin))
	case op.Atan:
		return unaryFloat(b, nil, mapped(math.Atan))
	case op.RoundFloat:
		return unaryFloat(b, nil, mapped(o.Function()))
	case op.Cos:
		return unaryFloat(b, nil, mapped(math.Cos))
	}
	return nil, nil
}

// unaryFloat applies f to every element, computing in float64 whatever the dtype; f32 takes the shorter way of narrow where there is one.
// dst and src may be the same block.
func unaryFloat(b *builder, narrow func(dst, src []float32), f func(dst, src []float64)) (runtime.Kernel, error) {
	n := int(b.outType(0).Elems())
	if narrow != nil && b.inType(0).DType == ir.F32 {
		x, y := view[float32](b.in[0]), view[float32](b.out[0])
		return b.ranges(n, rangeElems, func(_ *worker, lo, hi int) error {
			narrow(y[lo:hi], x[lo:hi])
			return nil
		}), nil
	}
	x, err := b.floatIn(0)
	if err != nil {
		return nil, err
	}
	y, err := b.floatOut(0)
	if err != nil {
		return nil, err
	}
	return b.ranges(n, rangeElems, func(w *worker, lo, hi int) error {
		for i := lo; i < hi; i += blockElems {
			block := w.f64(0)[:min(blockElems, hi-i)]
			x.load(block, i)
			f(block, block)
			y.store(i, block)
		}
		return nil
	}), nil
}

// unaryNumber is unaryFloat for ops that take integers too.
func unaryNumber(b *builder, narrow func(dst, src []float32), f func(dst, src []float64), g func(dst, src []int64)) (runtime.Kernel, error) {
	if b.inType(0).DType.IsFloat() {
		return unaryFloat(b, narrow, f)
	}
	x, err := b.intIn(0)
	if err != nil {
		return nil, err
	}
	y, err := b.intOut(0)
	if err != nil {
		return nil, err
	}
	return b.ranges(int(b.outType(0).Elems()), rangeElems, func(w *worker, lo, hi int) error {
		for i := lo; i < hi; i += blockElems {
			block := w.i64(0)[:min(blockElems, hi-i)]
			x.load(block, i)
			g(block, block)
			y.store(i, block)
		}
		return nil
	}), nil
}

// mapped is the block function of a function of one element that is too dear for the call to matter.
func mapped(f func(float64) float64) func(dst, src []float64) {
	return func(dst, src []float64) {
		for i, x := range src {
			dst[i] = f(x)
		}
	}
}

func negBlock[T float32 | float64 | int64](dst, src []T) {
	for i, x := range src {
		dst[i] = -x
	}
}

func absF32(dst, src []float32) {
	for i, x := range src {
		dst[i] = math.Float32frombits(math.Float32bits(x) &^ (1 << 31))
	}
}

func absBlock(dst, src []float64) {
	for i, x := range src {
		dst[i] = math.Abs(x)
	}
}

func absInts(dst, src []int64) {
	for i, x := range src {
		dst[i] = max(x, -x)
	}
}

func signBlock(dst, src []float64) {
	for i, x := range src {
		switch {
		case x > 0:
			x = 1
		case x < 0:
			x = -1
		case x == 0:
			x = 0 // of either sign
		}
		dst[i] = x
	}
}

func signInts(dst, src []int64) {
	for i, x := range src {
		dst[i] = max(-1, min(x, 1))
	}
}

func sqrtBlock(dst, src []float64) {
	for i, x := range src {
		dst[i] = math.Sqrt(x)
	}
}

func rsqrtBlock(dst, src []float64) {
	for i, x := range src {
		dst[i] = 1 / math.Sqrt(x)
	}
}

func reciprocalBlock(dst, src []float64) {
	for i, x := range src {
		dst[i] = 1 / x
	}
}
