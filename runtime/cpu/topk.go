package cpu

import (
	"math"

	"aitk/ir"
	"aitk/ir/op"
	"aitk/runtime"
)

// topkKernel serves TopK.
func topkKernel(b *builder) (runtime.Kernel, error) {
	o, ok := b.x.Op.(op.TopK)
	if !ok {
		return nil, nil
	}
	if b.inType(0).DType.IsFloat() {
		x, err := b.floatIn(0)
		if err != nil {
			return nil, err
		}
		y, err := b.floatOut(0)
		if err != nil {
			return nil, err
		}
		return topk(b, o, &x, &y, func(v, best float64) bool { return v > best || v != v && best == best }), nil
	}
	x, err := b.intIn(0)
	if err != nil {
		return nil, err
	}
	y, err := b.intOut(0)
	if err != nil {
		return nil, err
	}
	greater := func(v, best int64) bool { return v > best }
	if b.inType(0).DType == ir.U64 { // held by its bits
		greater = func(v, best int64) bool { return v^math.MinInt64 > best^math.MinInt64 }
	}
	return topk(b, o, &x, &y, greater), nil
}

// topk keeps, for each line, the K best elements seen so far as a heap of indices in the place of the result, the worst of them on top, and
// sorts it in place at the end. So it needs no memory but the result's.
func topk[A float64 | int64](b *builder, o op.TopK, x, y elements[A], greater func(v, best A) bool) runtime.Kernel {
	l, k := linesAlong(b.inType(0).Shape, o.Axis), int(o.K)
	to := linesAlong(b.outType(0).Shape, o.Axis)
	indices := view[int64](b.out[1])
	return l.over(b, func(_ *worker, line int) error {
		if k == 0 {
			return nil
		}
		h := heap[A]{x: x, first: l.first(line), step: l.inner, greater: greater, least: o.Smallest, index: indices, at: to.first(line)}
		for j := range l.n {
			switch {
			case j < k:
				h.index[h.at+j*h.step] = int64(j)
				h.up(j)
			case h.before(int64(j), h.get(0)):
				h.set(0, int64(j))
				h.down(0, k)
			}
		}
		for n := k - 1; n > 0; n-- { // the worst goes to the end
			worst := h.get(0)
			h.set(0, h.get(n))
			h.set(n, worst)
			h.down(0, n)
		}
		for j := range k {
			y.set(h.at+j*h.step, x.at(h.first+int(h.get(j))*h.step))
		}
		return nil
	})
}

// heap orders indices of one line, the one that comes last on top.
type heap[A float64 | int64] struct {
	x           elements[A]
	first, step int
	greater     func(v, best A) bool
	least       bool
	index       []int64
	at          int // of the heap's first entry in index; entries lie step apart
}

func (h *heap[A]) get(i int) int64    { return h.index[h.at+i*h.step] }
func (h *heap[A]) set(i int, j int64) { h.index[h.at+i*h.step] = j }

// before tells whether element i comes before element j in the result: by value, then by index.
func (h *heap[A]) before(i, j int64) bool {
	a, b := h.x.at(h.first+int(i)*h.step), h.x.at(h.first+int(j)*h.step)
	if h.least {
		a, b = b, a
	}
	switch {
	case h.greater(a, b):
		return true
	case h.greater(b, a):
		return false
	}
	return i < j
}

func (h *heap[A]) up(i int) {
	for i > 0 {
		parent := (i - 1) / 2
		a, b := h.get(i), h.get(parent)
		if !h.before(b, a) {
			return
		}
		h.set(i, b)
		h.set(parent, a)
		i = parent
	}
}

func (h *heap[A]) down(i, n int) {
	for {
		last := i
		for c := 2*i + 1; c <= 2*i+2 && c < n; c++ {
			if h.before(h.get(last), h.get(c)) {
				last = c
			}
		}
		if last == i {
			return
		}
		a, b := h.get(i), h.get(last)
		h.set(i, b)
		h.set(last, a)
		i = last
	}
}
