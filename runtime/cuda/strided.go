//go:build cuda && linux

package cuda

import (
	"fmt"
	"math"
	"slices"

	"aitk/ir"
	"aitk/runtime"
)

// maxAxes is how many axes a kernel walks over, maxPieces how many launches an instruction may need because it has more, or more elements than
// an index of 32 bits counts.
const (
	maxAxes   = 6
	maxPieces = 4096
	pieceMost = math.MaxInt32
)

// piece is a stretch of a walk over several tensors that one launch does: extents, outermost first, and for each tensor the element at the
// first index and what a step along each axis means.
type piece struct {
	n       int64
	dims    [maxAxes]uint32
	first   []int64
	strides [][maxAxes]int64
}

// args are the extents and the strides of all lists, as kernels take them.
func (p *piece) args() []any {
	var out []any
	for _, d := range p.dims {
		out = append(out, d)
	}
	for _, list := range p.strides {
		for _, s := range list {
			out = append(out, s)
		}
	}
	return out
}

// pieces cuts a walk over a shape into launches. Each list has one stride an axis; first has the element of each list at the first index. Axes
// that lie in all lists as one are merged, so that most walks have one or two.
func pieces(shape ir.Shape, first []int64, lists ...[]int64) ([]piece, error) {
	if shape.Elems() == 0 {
		return nil, nil
	}
	var dims []int64
	strides := make([][]int64, len(lists))
	for a, d := range shape {
		if d == 1 {
			continue
		}
		last := len(dims) - 1
		merge := last >= 0
		for k, list := range lists {
			merge = merge && strides[k][last] == list[a]*d
		}
		if merge {
			dims[last] *= d
			for k, list := range lists {
				strides[k][last] = list[a]
			}
			continue
		}
		dims = append(dims, d)
		for k, list := range lists {
			strides[k] = append(strides[k], list[a])
		}
	}
	var out []piece
	err := cut(&out, dims, first, strides)
	return out, err
}

// cut appends the pieces of a walk, taking the outermost axis apart where the walk is too much for one.
func cut(out *[]piece, dims, first []int64, strides [][]int64) error {
	n := ir.Shape(dims).Elems()
	if len(dims) <= maxAxes && n <= pieceMost {
		p := piece{n: n, first: slices.Clone(first), strides: make([][maxAxes]int64, len(strides))}
		for i := range p.dims {
			p.dims[i] = 1
		}
		lead := maxAxes - len(dims)
		for a, d := range dims {
			p.dims[lead+a] = uint32(d)
			for k := range strides {
				p.strides[k][lead+a] = strides[k][a]
			}
		}
		*out = append(*out, p)
		if len(*out) > maxPieces {
			return fmt.Errorf("a walk over %d axes needs more than %d launches", len(dims), maxPieces)
		}
		return nil
	}
	each := int64(1)
	if len(dims) <= maxAxes {
		each = max(1, pieceMost/(n/dims[0]))
	}
	for lo := int64(0); lo < dims[0]; lo += each {
		count := min(each, dims[0]-lo)
		at := slices.Clone(first)
		for k := range at {
			at[k] += lo * strides[k][0]
		}
		inner, steps := slices.Clone(dims), make([][]int64, len(strides))
		inner[0] = count
		for k := range steps {
			steps[k] = strides[k]
		}
		if count == 1 {
			inner = inner[1:]
			for k := range steps {
				steps[k] = steps[k][1:]
			}
		}
		if err := cut(out, inner, at, steps); err != nil {
			return err
		}
	}
	return nil
}

// rowMajor is, for each axis, how many elements lie between neighbours along it.
func rowMajor(s ir.Shape) []int64 {
	out := make([]int64, len(s))
	step := int64(1)
	for a := len(s) - 1; a >= 0; a-- {
		out[a] = step
		step *= s[a]
	}
	return out
}

// stretched is rowMajor of s as seen from the shape to which it broadcasts: 0 along axes that are new or stretched.
func stretched(s, to ir.Shape) []int64 {
	own, out := rowMajor(s), make([]int64, len(to))
	lead := len(to) - len(s)
	for a := range s {
		if s[a] == to[lead+a] && s[a] != 1 {
			out[lead+a] = own[a]
		}
	}
	return out
}

// around splits a shape at an axis: the element with index j along it in block o at place i is (o*n+j)*inner + i.
func around(s ir.Shape, axis int64) (outer, n, inner int64) {
	return s[:axis].Elems(), s[axis], s[axis+1:].Elems()
}

// from is a slice without its first elements of a width.
func from(s runtime.Slice, elems, width int64) runtime.Slice {
	s.Offset += elems * width
	s.Bytes -= elems * width
	return s
}

// broadcast adds the launches of a function of operands that broadcast to output 0: NAME where each is as long as the output or one element,
// NAME_wide else. The arguments of the first are output, operands, elements, a step an operand, then more and tail; of the second output, operands,
// elements, more, the walk, tail.
func (b *builder) broadcast(module, name, suffix string, operands []int, more, tail []any) (*kernel, error) {
	out := b.outType(0)
	lists := [][]int64{rowMajor(out.Shape)}
	flat := true
	args := []any{b.out[0]}
	var steps []any
	for _, i := range operands {
		s := b.inType(i).Shape
		lists = append(lists, stretched(s, out.Shape))
		args = append(args, b.in[i])
		switch s.Elems() {
		case out.Elems():
			steps = append(steps, int64(1))
		case 1:
			steps = append(steps, int64(0))
		default:
			flat = false
		}
	}
	n := out.Elems()
	if flat {
		args = append(append(append(append(args, n), steps...), more...), tail...)
		return b.k, b.launch(module, name+suffix, b.dev.blocksFor(n), threads, 0, args...)
	}
	all, err := pieces(out.Shape, make([]int64, len(lists)), lists...)
	if err != nil {
		return nil, err
	}
	for _, p := range all {
		args := []any{from(b.out[0], p.first[0], out.DType.Bits()/8)}
		for k, i := range operands {
			args = append(args, from(b.in[i], p.first[k+1], b.inType(i).DType.Bits()/8))
		}
		p.strides = p.strides[1:] // the output is walked over in order
		args = append(append(append(append(args, p.n), more...), p.args()...), tail...)
		if err := b.launch(module, name+"_wide"+suffix, b.dev.blocksFor(p.n), threads, 0, args...); err != nil {
			return nil, err
		}
	}
	return b.k, nil
}
