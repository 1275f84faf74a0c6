package importer

import (
	"slices"
	"strings"

	"aitk/ir"
	"aitk/ir/op"
)

// lowerEinsum contracts operands from the left, two at a time: an axis that only one of them has and nobody needs later is summed away, axes that
// both have and nobody needs later are contracted by a matrix product, axes that both have and somebody needs are its batch.
func lowerEinsum(c *call) []*operand {
	for k := range c.in {
		c.arg(k)
	}
	terms, result := c.einsumTerms(c.string("equation", ""))
	d := c.in[0].typ.DType
	wide := d
	if !d.IsFloat() {
		wide = ir.F64 // exact for what integer models hold
	}
	var acc *labelled
	for k := range terms {
		x := &labelled{c.cast(c.in[k], wide), terms[k]}
		c.diagonals(x)
		later := slices.Clone(result)
		for _, t := range terms[k+1:] {
			later = append(later, t...)
		}
		if acc == nil {
			acc = x
			c.sumAway(acc, later)
			continue
		}
		acc = c.contract(acc, x, later)
	}
	c.sumAway(acc, result)
	y := c.arrange(acc, result)
	return one(c.cast(y, d))
}

// labelled is an operand whose axes have labels: letters of the equation, and upper numbers for the axes of the ellipsis.
type labelled struct {
	x      *operand
	labels []int
}

// ellipsisLabel begins the labels of the axes behind "..."; they count from the last.
const ellipsisLabel = 1 << 16

// einsumTerms parses an equation: the labels of each operand and of the result.
func (c *call) einsumTerms(equation string) (terms [][]int, result []int) {
	equation = strings.ReplaceAll(equation, " ", "")
	left, right, explicit := strings.Cut(equation, "->")
	parts := strings.Split(left, ",")
	if len(parts) != len(c.in) {
		c.invalid("equation %q for %d operands", equation, len(c.in))
	}
	widest := 0
	for k, p := range parts {
		letters := len(strings.ReplaceAll(p, "...", ""))
		dots := len(c.in[k].typ.Shape) - letters
		if dots < 0 || dots > 0 && !strings.Contains(p, "...") {
			c.invalid("term %q for operand %v", p, c.in[k].typ)
		}
		widest = max(widest, dots)
		terms = append(terms, c.einsumLabels(p, dots))
	}
	if explicit {
		result = c.einsumLabels(right, widest)
		for i, l := range result {
			if slices.Contains(result[:i], l) || !slices.ContainsFunc(terms, func(t []int) bool { return slices.Contains(t, l) }) {
				c.invalid("the result %q of the equation has a label twice, or one that no term has", right)
			}
		}
		return terms, result
	}
	count := map[int]int{}
	var all []int
	for _, t := range terms {
		for _, l := range t {
			if count[l]++; count[l] == 1 {
				all = append(all, l)
			}
		}
	}
	slices.Sort(all)
	for i := range widest {
		result = append(result, ellipsisLabel+widest-1-i)
	}
	for _, l := range all {
		if l < ellipsisLabel && count[l] == 1 {
			result = append(result, l)
		}
	}
	return terms, result
}

func (c *call) einsumLabels(term string, dots int) []int {
	var labels []int
	for i := 0; i < len(term); i++ {
		switch ch := term[i]; {
		case strings.HasPrefix(term[i:], "..."):
			for k := range dots {
				labels = append(labels, ellipsisLabel+dots-1-k)
			}
			i += 2
		case ch >= 'a' && ch <= 'z' || ch >= 'A' && ch <= 'Z':
			labels = append(labels, int(ch))
		default:
			c.invalid("term %q of the equation", term)
		}
	}
	return labels
}

// diagonals leaves of two axes with one label their diagonal: both are brought to the end and seen as one, of which every n+1st element is taken.
func (c *call) diagonals(v *labelled) {
	for {
		i, j := -1, -1
		for a, l := range v.labels {
			if b := slices.Index(v.labels[a+1:], l); b >= 0 {
				i, j = a, a+1+b
				break
			}
		}
		if i < 0 {
			return
		}
		n := v.x.typ.Shape[i]
		if v.x.typ.Shape[j] != n {
			c.invalid("axes of extents %d and %d have one label", n, v.x.typ.Shape[j])
		}
		var perm []int64
		var labels []int
		var shape []int64
		for a := range v.labels {
			if a != i && a != j {
				perm, labels, shape = append(perm, int64(a)), append(labels, v.labels[a]), append(shape, v.x.typ.Shape[a])
			}
		}
		labels = append(labels, v.labels[i])
		x := c.transpose(v.x, append(perm, int64(i), int64(j))...)
		x = c.reshape(x, append(slices.Clone(shape), n*n)...)
		if n > 1 {
			x = c.slice(x, int64(len(shape)), 0, n*n, n+1)
		}
		v.x, v.labels = c.reshape(x, append(shape, n)...), labels
	}
}

// sumAway sums over axes that nobody needs.
func (c *call) sumAway(v *labelled, needed []int) {
	var axes []int64
	var labels []int
	for a, l := range v.labels {
		if slices.Contains(needed, l) {
			labels = append(labels, l)
		} else {
			axes = append(axes, int64(a))
		}
	}
	if axes != nil {
		v.x, v.labels = c.emit(op.ReduceSum{Axes: axes}, v.x), labels
	}
}

// contract multiplies two operands and sums over what only they have.
func (c *call) contract(a, b *labelled, later []int) *labelled {
	c.sumAway(a, append(slices.Clone(later), b.labels...))
	c.sumAway(b, append(slices.Clone(later), a.labels...))
	var batch, inner, left, right []int
	for _, l := range a.labels {
		switch {
		case !slices.Contains(b.labels, l):
			left = append(left, l)
		case slices.Contains(later, l):
			batch = append(batch, l)
		default:
			inner = append(inner, l)
		}
	}
	for _, l := range b.labels {
		if !slices.Contains(a.labels, l) {
			right = append(right, l)
		}
	}
	extent := func(l int) int64 {
		n := int64(1)
		for _, v := range []*labelled{a, b} {
			if i := slices.Index(v.labels, l); i >= 0 {
				if m := v.x.typ.Shape[i]; n == 1 {
					n = m
				} else if m != 1 && m != n {
					c.invalid("a label stands for extents %d and %d", n, m)
				}
			}
		}
		return n
	}
	extents := func(labels []int) (s ir.Shape) {
		for _, l := range labels {
			s = append(s, extent(l))
		}
		return s
	}
	bs, is, ls, rs := extents(batch), extents(inner), extents(left), extents(right)
	whole := func(v *labelled, order []int, s ir.Shape) *operand { return c.expand(c.arrange(v, order), s...) }
	labels := slices.Concat(batch, left, right)
	x := whole(a, slices.Concat(batch, left, inner), slices.Concat(bs, ls, is))
	if len(inner) == 0 { // an outer product
		ones := func(n int) []int64 { return slices.Repeat([]int64{1}, n) }
		y := whole(b, slices.Concat(batch, right), slices.Concat(bs, rs))
		x = c.reshape(x, slices.Concat(bs, ls, ones(len(rs)))...)
		y = c.reshape(y, slices.Concat(bs, ones(len(ls)), rs)...)
		return &labelled{c.emit(op.Mul{}, x, y), labels}
	}
	y := whole(b, slices.Concat(batch, inner, right), slices.Concat(bs, is, rs))
	n, k := bs.Elems(), is.Elems()
	z := c.emit(op.MatMul{}, c.reshape(x, n, ls.Elems(), k), c.reshape(y, n, k, rs.Elems()))
	return &labelled{c.reshape(z, slices.Concat(bs, ls, rs)...), labels}
}

// arrange orders axes by label. Labels that v has not become axes of extent 1.
func (c *call) arrange(v *labelled, order []int) *operand {
	var perm, shape []int64
	for _, l := range order {
		if a := slices.Index(v.labels, l); a >= 0 {
			perm = append(perm, int64(a))
			shape = append(shape, v.x.typ.Shape[a])
		} else {
			shape = append(shape, 1)
		}
	}
	if len(perm) != len(v.labels) {
		c.invalid("the result names a label twice")
	}
	return c.reshape(c.transpose(v.x, perm...), shape...)
}
