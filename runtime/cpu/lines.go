package cpu

import (
	"aitk/ir"
	"aitk/runtime"
)

// lines are the rows of a tensor along one axis, in row-major order of the other axes: count rows of n elements, inner apart.
type lines struct{ count, n, inner int }

// linesAlong cuts a shape.
func linesAlong(s ir.Shape, axis int64) lines {
	return lines{int(s[:axis].Elems() * s[axis+1:].Elems()), int(s[axis]), int(s[axis+1:].Elems())}
}

// rowsFrom cuts a shape into rows that hold all axes from axis on; they are contiguous.
func rowsFrom(s ir.Shape, axis int64) lines {
	return lines{int(s[:axis].Elems()), int(s[axis:].Elems()), 1}
}

// first is the element at which line i begins.
func (l lines) first(i int) int { return i/l.inner*l.n*l.inner + i%l.inner }

// lineChunk is how many elements of a line a worker holds at once; a longer line is read again in each pass.
const lineChunk = panelElems

// grain is how many lines a tile takes, so that it has about rangeElems elements.
func (l lines) grain() int { return max(1, rangeElems/max(1, l.n)) }

// over makes a kernel of which each tile runs body on some lines, one after the other.
func (l lines) over(b *builder, body func(w *worker, line int) error) runtime.Kernel {
	return b.ranges(l.count, l.grain(), func(w *worker, lo, hi int) error {
		for i := lo; i < hi; i++ {
			if err := body(w, i); err != nil {
				return err
			}
		}
		return nil
	})
}

// loadStep widens len(dst) elements that lie step apart.
func (v *floats) loadStep(dst []float64, i, step int) {
	if step == 1 {
		v.load(dst, i)
		return
	}
	for k := range dst {
		dst[k] = v.at(i + k*step)
	}
}

// storeStep rounds and writes len(src) elements that lie step apart.
func (v *floats) storeStep(i, step int, src []float64) {
	if step == 1 {
		v.store(i, src)
		return
	}
	for k, x := range src {
		v.set(i+k*step, x)
	}
}

// stretches cuts n indices into at most maxStretches runs of equal extent, for sums over a whole tensor: each is summed in index order, then
// the sums are added in order. It depends on n alone.
func stretches(n, atLeast int) (count, each int) {
	if n == 0 {
		return 0, 0
	}
	each = max(atLeast, (n+maxStretches-1)/maxStretches)
	return (n + each - 1) / each, each
}

const maxStretches = 64

// floatsAt views several operands, all of which must be float tensors: the given inputs, then all outputs.
func (b *builder) floatsAt(ins ...int) (in, out []floats, err error) {
	for _, i := range ins {
		v, err := b.floatIn(i)
		if err != nil {
			return nil, nil, err
		}
		in = append(in, v)
	}
	for i := range b.out {
		v, err := b.floatOut(i)
		if err != nil {
			return nil, nil, err
		}
		out = append(out, v)
	}
	return in, out, nil
}
