package cpu

import (
	"math"

	"aitk/ir"
	"aitk/ir/op"
	"aitk/runtime"
)

// arithmeticKernel serves the functions of two numbers, which broadcast.
func arithmeticKernel(b *builder) (runtime.Kernel, error) {
	switch o := b.x.Op.(type) {
	case op.Add:
		return binaryFast(b, addForms[float32](), addForms[float64](), func(x, y int64) int64 { return x + y })
	case op.Sub:
		return binaryFast(b, subForms[float32](), subForms[float64](), func(x, y int64) int64 { return x - y })
	case op.Mul:
		return binaryFast(b, mulForms[float32](), mulForms[float64](), func(x, y int64) int64 { return x * y })
	case op.Div:
		return binaryFast(b, divForms[float32](), divForms[float64](), divInt)
	case op.Max:
		return binaryFast(b, maxForms[float32](), maxForms[float64](), func(x, y int64) int64 { return max(x, y) })
	case op.Min:
		return binaryFast(b, minForms[float32](), minForms[float64](), func(x, y int64) int64 { return min(x, y) })
	case op.Pow:
		return binary(b, powBlock, powInt)
	case op.Mod:
		if o.Fmod {
			return binary(b, mapped2(math.Mod), remInt)
		}
		return binary(b, mapped2(floorMod), modInt)
	}
	return nil, nil
}

// forms are the loops of a function of two operands where both, or only one of them, change along the run.
type forms[T any] struct {
	vv func(dst, x, y []T)
	vs func(dst, x []T, y T)
	sv func(dst []T, x T, y []T)
}

// broadcast is the space of a result with list 0 the result and one list for each operand.
func (b *builder) broadcast() *space {
	shape := b.outType(0).Shape
	lists := [][]int{rowMajor(shape)}
	for i := range b.in {
		lists = append(lists, stretched(b.inType(i).Shape, shape))
	}
	return newSpace(shape, lists...)
}

// binaryFast is binary with loops of its own for f32 and f64, which are used in place: the float32 result of one +, -, *, / is the float64 result
// rounded.
func binaryFast(b *builder, narrow forms[float32], wide forms[float64], g func(x, y int64) int64) (runtime.Kernel, error) {
	switch b.outType(0).DType {
	case ir.F32:
		return inForms(b, narrow), nil
	case ir.F64:
		return inForms(b, wide), nil
	}
	return binary(b, wide.vv, g)
}

func inForms[T any](b *builder, f forms[T]) runtime.Kernel {
	s := b.broadcast()
	x, y, z := view[T](b.in[0]), view[T](b.in[1]), view[T](b.out[0])
	switch {
	case s.step[1] == 0:
		return s.over(b, func(_ *worker, n int, at [maxLists]int) {
			f.sv(z[at[0]:at[0]+n], x[at[1]], y[at[2]:][:max(1, n*s.step[2])])
		})
	case s.step[2] == 0:
		return s.over(b, func(_ *worker, n int, at [maxLists]int) { f.vs(z[at[0]:at[0]+n], x[at[1]:at[1]+n], y[at[2]]) })
	}
	return s.over(b, func(_ *worker, n int, at [maxLists]int) { f.vv(z[at[0]:at[0]+n], x[at[1]:at[1]+n], y[at[2]:at[2]+n]) })
}

// binary applies f to floats, computing in float64, or g to integers.
func binary(b *builder, f func(dst, x, y []float64), g func(x, y int64) int64) (runtime.Kernel, error) {
	s := b.broadcast()
	if b.outType(0).DType.IsFloat() {
		in, out, err := b.floatsAt(0, 1)
		if err != nil {
			return nil, err
		}
		x, y, z := in[0], in[1], out[0]
		return s.blocks(b, func(w *worker, n int, at [maxLists]int) {
			xs, ys := w.f64(0)[:n], w.f64(1)[:n]
			x.loadRun(xs, at[1], s.step[1])
			y.loadRun(ys, at[2], s.step[2])
			f(xs, xs, ys)
			z.store(at[0], xs)
		}), nil
	}
	x, err := b.intIn(0)
	if err != nil {
		return nil, err
	}
	y, err := b.intIn(1)
	if err != nil {
		return nil, err
	}
	z, err := b.intOut(0)
	if err != nil {
		return nil, err
	}
	return s.blocks(b, func(w *worker, n int, at [maxLists]int) {
		xs, ys := w.i64(0)[:n], w.i64(1)[:n]
		x.loadRun(xs, at[1], s.step[1])
		y.loadRun(ys, at[2], s.step[2])
		for i, v := range xs {
			xs[i] = g(v, ys[i])
		}
		z.store(at[0], xs)
	}), nil
}

// loadRun widens elements that follow one another, or the same element again and again where step is 0.
func (v *floats) loadRun(dst []float64, i, step int) {
	if step == 0 {
		fillWords(dst, v.at(i))
		return
	}
	v.load(dst, i)
}

func (v *ints) loadRun(dst []int64, i, step int) {
	if step == 0 {
		fillWords(dst, v.at(i))
		return
	}
	v.load(dst, i)
}

func mapped2(f func(x, y float64) float64) func(dst, x, y []float64) {
	return func(dst, x, y []float64) {
		for i, v := range x {
			dst[i] = f(v, y[i])
		}
	}
}

// powBlock takes the short way for the exponents that models use; each gives what math.Pow gives.
func powBlock(dst, x, y []float64) {
	for i, v := range x {
		switch e := y[i]; {
		case e == 2:
			dst[i] = v * v
		case e == 1:
			dst[i] = v
		case e == 0.5 && v > 0:
			dst[i] = math.Sqrt(v)
		default:
			dst[i] = math.Pow(v, e)
		}
	}
}

func divInt(x, y int64) int64 {
	if y == 0 {
		return 0
	}
	return x / y
}

func remInt(x, y int64) int64 {
	if y == 0 {
		return 0
	}
	return x % y
}

func modInt(x, y int64) int64 {
	r := remInt(x, y)
	if r != 0 && r < 0 != (y < 0) {
		r += y
	}
	return r
}

func floorMod(x, y float64) float64 {
	r := math.Mod(x, y)
	if r != 0 && r < 0 != (y < 0) {
		r += y
	}
	return r
}

// powInt takes a negative exponent for a truncated quotient.
func powInt(x, y int64) int64 {
	switch {
	case x == 1 || y == 0:
		return 1
	case x == -1:
		return 1 - 2*(y&1)
	case y < 0:
		return 0
	}
	p := int64(1)
	for ; y > 0; y >>= 1 {
		if y&1 == 1 {
			p *= x
		}
		x *= x
	}
	return p
}
