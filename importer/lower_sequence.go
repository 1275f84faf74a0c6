package importer

import (
	"slices"

	"aitk/ir"
)

// Sequences of tensors exist while lowering only: what makes one is followed until a constant index takes a tensor out.

func (c *call) sequence(k int) []*operand {
	if !c.has(k) || !c.in[k].isSeq {
		c.invalid("operand %d is no sequence", k)
	}
	return c.in[k].seq
}

// lowerSplitToSequence cuts into parts of a given size (a scalar, or 1), the last of them shorter, or of given sizes (a list).
// keepdims counts only for parts of size 1 that no operand asked for.
func lowerSplitToSequence(c *call) []*operand {
	c.args(1, 2)
	x := c.arg(0)
	axis := c.axis(c.int("axis", 0), len(x.typ.Shape))
	keep := c.flag("keepdims", true) || c.has(1)
	dim := x.typ.Shape[axis]
	size := int64(1)
	var parts []int64
	if c.has(1) {
		if s := c.constInts(1, "split"); len(c.arg(1).typ.Shape) == 1 {
			parts = s
		} else {
			size = c.constInt(1, "split")
		}
	}
	if parts == nil {
		if size < 1 || dim/size > 1<<16 {
			c.invalid("parts of %d along an axis of extent %d", size, dim)
		}
		for at := int64(0); at < dim; at += size {
			parts = append(parts, min(size, dim-at))
		}
	}
	seq := c.split(x, axis, parts)
	if !keep {
		for i, p := range seq {
			s := p.typ.Shape
			seq[i] = c.reshape(p, append(s[:axis:axis], s[axis+1:]...)...)
		}
	}
	return one(&operand{isSeq: true, seq: seq})
}

func lowerSequenceConstruct(c *call) []*operand {
	for k := range c.in {
		c.arg(k)
	}
	return one(&operand{isSeq: true, seq: c.in})
}

func lowerSequenceAt(c *call) []*operand {
	if len(c.in) != 2 {
		c.invalid("takes 2 operands")
	}
	seq := c.sequence(0)
	i := c.constInt(1, "position")
	if n := int64(len(seq)); i < -n || i >= n {
		c.invalid("position %d in a sequence of %d", i, n)
	} else if i < 0 {
		i += n
	}
	x := *seq[i]
	return one(&x)
}

func lowerSequenceLength(c *call) []*operand {
	return one(ints([]int64{int64(len(c.sequence(0)))}, []int64{}...))
}

// lowerConcatFromSequence joins along an axis, with new_axis=1 along one that it makes.
func lowerConcatFromSequence(c *call) []*operand {
	seq := c.sequence(0)
	axis := c.int("axis", 0)
	if !c.flag("new_axis", false) {
		return one(c.concat(seq, axis))
	}
	var parts []*operand
	for _, x := range seq {
		a := c.axis(axis, len(x.typ.Shape)+1)
		s := append(ir.Shape{}, x.typ.Shape[:a]...)
		s = append(append(s, 1), x.typ.Shape[a:]...)
		parts = append(parts, c.reshape(x, s...))
	}
	return one(c.concat(parts, axis))
}

func lowerSequenceEmpty(c *call) []*operand {
	c.args(0, 0)
	c.ignore("dtype")
	return one(&operand{isSeq: true})
}

// place is the position that operand k names in a sequence of n, of which the one behind the last is legal; n where the operand is left out.
func (c *call) place(k int, n int) int {
	if !c.has(k) {
		return n
	}
	i := c.constInt(k, "position")
	if i < 0 {
		i += int64(n)
	}
	if i < 0 || i > int64(n) {
		c.invalid("position %d in a sequence of %d", i, n)
	}
	return int(i)
}

func lowerSequenceInsert(c *call) []*operand {
	seq := c.sequence(0)
	return one(&operand{isSeq: true, seq: slices.Insert(slices.Clone(seq), c.place(2, len(seq)), c.arg(1))})
}

func lowerSequenceErase(c *call) []*operand {
	seq := c.sequence(0)
	if len(seq) == 0 {
		c.invalid("nothing to erase")
	}
	i := len(seq) - 1
	if c.has(1) {
		i = c.place(1, len(seq))
	}
	if i == len(seq) {
		c.invalid("position %d in a sequence of %d", i, len(seq))
	}
	return one(&operand{isSeq: true, seq: slices.Delete(slices.Clone(seq), i, i+1)})
}

// lowerSequenceMap applies its body to each tensor of a sequence, with the others of the same place in further sequences, or whole tensors.
func lowerSequenceMap(c *call) []*operand {
	g := c.graph("body")
	first := c.sequence(0)
	outs := make([]*operand, len(g.Output))
	for k := range outs {
		outs[k] = &operand{isSeq: true}
	}
	c.unrollLimit(int64(len(first)), "tensors of a sequence")
	for i := range first {
		var in []*operand
		for _, x := range c.in {
			if x != nil && x.isSeq {
				if len(x.seq) != len(first) {
					c.invalid("sequences of %d and %d tensors", len(first), len(x.seq))
				}
				x = x.seq[i]
			}
			in = append(in, x)
		}
		made := c.body(g, in)
		if made == nil {
			return c.failed()
		}
		for k, y := range made {
			outs[k].seq = append(outs[k].seq, y)
		}
	}
	return outs
}

// Optionals exist while lowering only, like sequences: one that holds something is that something.

func lowerOptional(c *call) []*operand {
	c.ignore("type")
	if len(c.in) != 1 || c.in[0] == nil {
		c.unsupported("an empty optional")
	}
	x := *c.in[0]
	return one(&x)
}

func lowerOptionalHasElement(c *call) []*operand {
	return one(filled(ir.T(ir.Bool), float64(boolInt(c.has(0)))))
}
