//go:build cuda && linux

package cuda

import (
	"slices"

	"aitk/ir"
	"aitk/ir/op"
	"aitk/runtime"
)

// matmulKernel serves MatMul.
func matmulKernel(b *builder) (*kernel, error) {
	o, ok := b.x.Op.(op.MatMul)
	if !ok {
		return nil, nil
	}
	t := b.outType(0)
	module, tail, ok := floatVariant("matmul", t.DType)
	if !ok {
		return nil, b.noKernel(t)
	}
	g, err := newProduct(o, b.inType(0).Shape, b.inType(1).Shape, t.Shape)
	if err != nil {
		return nil, err
	}
	return b.matmul(o, g, module, tail, epilogue{})
}

// epilogue is what a fused kernel does besides (fuse.go). The zero value is nothing.
type epilogue struct {
	fused, coded bool
	args         []any // of EPILOGUE, and of GROUPS and SCALE where b holds codes
	add          int   // which of args is the other tensor of an Add of all elements; -1: there is none
}

// suffix is what the kernel's name ends with.
func (e epilogue) suffix() string {
	switch {
	case e.coded:
		return "_coded"
	case e.fused:
		return "_fused"
	}
	return ""
}

// at is args for the matrices from number first on.
func (e epilogue) at(first, elems, width int64) []any {
	if !e.fused || e.add < 0 || first == 0 {
		return e.args
	}
	out := slices.Clone(e.args)
	out[e.add] = from(out[e.add].(runtime.Slice), first*elems, width)
	return out
}

func (b *builder) matmul(o op.MatMul, g *product, module string, tail []any, e epilogue) (*kernel, error) {
	if b.tensorCores(o, g) {
		return b.matmulMMA(o, g, e)
	}
	bytes := b.outType(0).DType.Bits() / 8
	for _, p := range g.batches {
		grid := [3]int{int((g.m + tileSide - 1) / tileSide), int((g.n + tileSide - 1) / tileSide), int(p.n)}
		args := []any{from(b.out[0], p.first[0]*g.m*g.n, bytes), from(b.in[0], p.first[1], bytes), from(b.in[1], p.first[2], bytes), g.m, g.n, g.k, g.am, g.ak, g.bk, g.bn}
		args = append(append(append(args, p.batchArgs()...), e.at(p.first[0], g.m*g.n, bytes)...), tail...)
		if err := b.launch(module, "matmul"+e.suffix(), grid, threads, 0, args...); err != nil {
			return nil, err
		}
	}
	return b.k, nil
}

// product is the geometry of a batch of matrix products: extents, distances between neighbours, and the walk over the batch in pieces that fit a grid.
type product struct {
	m, n, k        int64
	am, ak, bk, bn int64
	batches        []piece // lists: number of the result, element of a, element of b
}

// maxBatch is how many matrices one launch takes: the extent of a grid along z.
const maxBatch = 65535

func newProduct(o op.MatMul, a, b, y ir.Shape) (*product, error) {
	if len(b) == 2 && len(a) > 2 && !o.TransA { // one matrix for all: their rows make one tall matrix
		k := a[len(a)-1]
		a, y = ir.Shape{a[:len(a)-1].Elems(), k}, ir.Shape{a[:len(a)-1].Elems(), y[len(y)-1]}
	}
	p := &product{m: y[len(y)-2], n: y[len(y)-1], k: a[len(a)-1]}
	p.am, p.ak = a[len(a)-1], 1
	if o.TransA {
		p.k = a[len(a)-2]
		p.am, p.ak = 1, a[len(a)-1]
	}
	p.bk, p.bn = b[len(b)-1], 1
	if o.TransB {
		p.bk, p.bn = 1, b[len(b)-1]
	}
	batch := y[:len(y)-2]
	walk := func(s ir.Shape) []int64 {
		strides := stretched(s[:len(s)-2], batch)
		for i := range strides {
			strides[i] *= s[len(s)-2] * s[len(s)-1]
		}
		return strides
	}
	all, err := pieces(batch, []int64{0, 0, 0}, rowMajor(batch), walk(a), walk(b))
	if err != nil {
		return nil, err
	}
	for _, q := range all {
		if err := p.cut(q); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// cut takes a piece of the batch apart until it has at most four axes and fits a grid.
func (p *product) cut(q piece) error {
	outer := -1
	for a, d := range q.dims {
		if d > 1 {
			outer = a
			break
		}
	}
	if q.n <= maxBatch && (outer < 0 || outer >= maxAxes-4) {
		p.batches = append(p.batches, q)
		return nil
	}
	each := max(1, maxBatch/(q.n/int64(q.dims[outer])))
	if outer < maxAxes-4 {
		each = 1
	}
	for lo := int64(0); lo < int64(q.dims[outer]); lo += each {
		r := q
		count := min(each, int64(q.dims[outer])-lo)
		r.dims[outer] = uint32(count)
		r.n = q.n / int64(q.dims[outer]) * count
		r.first = append([]int64{}, q.first...)
		for k := range r.first {
			r.first[k] += lo * q.strides[k][outer]
		}
		if err := p.cut(r); err != nil {
			return err
		}
	}
	return nil
}

// batchArgs are the extents of three axes and the strides of four, for both operands.
func (p *piece) batchArgs() []any {
	var out []any
	for _, d := range p.dims[maxAxes-3:] {
		out = append(out, d)
	}
	for _, list := range p.strides[1:] {
		for _, s := range list[maxAxes-4:] {
			out = append(out, s)
		}
	}
	return out
}

// The tiles of matmulmma.c, and the least extents for which they pay.
const (
	mmaSide  = 128
	mmaLeast = 32
	mmaPiece = 8 // elements of a copy of 16 bytes
)

// multiplies tells whether the device has tensor cores for a type: bf16 came with compute capability 8.0.
func (d *Device) multiplies(t ir.DType) bool {
	return t == ir.F16 && d.arch >= 75 || t == ir.BF16 && d.arch >= 80
}

// mmaModule is the text with the kernels of a family for tensor cores.
func mmaModule(family string, d ir.DType) string {
	if d == ir.BF16 {
		return family + "_bf16"
	}
	return family + "_f16"
}

// tensorCores tells whether a product of halves can be made of copies of 16 bytes on a device that has the instructions.
func (b *builder) tensorCores(o op.MatMul, g *product) bool {
	d := b.outType(0).DType
	if !b.dev.multiplies(d) || min(g.m, g.n, g.k) < mmaLeast {
		return false
	}
	for i := range 2 {
		s := b.inType(i).Shape
		if s[len(s)-1]%mmaPiece != 0 || addressOf(b.in[i])%16 != 0 {
			return false
		}
	}
	return true
}

func (b *builder) matmulMMA(o op.MatMul, g *product, e epilogue) (*kernel, error) {
	module, name := mmaModule("matmulmma", b.outType(0).DType), "matmul_"
	leadA, leadB := g.k, g.k // rows of k
	if o.TransA {
		name, leadA = name+"t", g.m
	} else {
		name += "n"
	}
	if o.TransB {
		name += "n"
	} else {
		name, leadB = name+"t", g.n
	}
	for _, p := range g.batches {
		grid := [3]int{int((g.m + mmaSide - 1) / mmaSide), int((g.n + mmaSide - 1) / mmaSide), int(p.n)}
		args := []any{from(b.out[0], p.first[0]*g.m*g.n, 2), from(b.in[0], p.first[1], 2), from(b.in[1], p.first[2], 2), g.m, g.n, g.k, leadA, leadB}
		args = append(append(args, p.batchArgs()...), e.at(p.first[0], g.m*g.n, 2)...)
		if err := b.launch(module, name+e.suffix(), grid, threads, 0, args...); err != nil {
			return nil, err
		}
	}
	return b.k, nil
}
