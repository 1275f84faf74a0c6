package op

import "aitk/ir"

// wide is v, or v in f32 where its dtype is narrower: decompositions compute as kernels do, in a wider type than f16 and bf16.
func wide(b *ir.Builder, v *ir.Value) *ir.Value {
	if d := v.Type.DType; d == ir.F16 || d == ir.BF16 {
		return b.Add(Cast{To: ir.F32}, v)
	}
	return v
}

// narrow is v rounded to d, once.
func narrow(b *ir.Builder, v *ir.Value, d ir.DType) *ir.Value {
	if v.Type.DType == d {
		return v
	}
	return b.Add(Cast{To: d}, v)
}

// shaped is v under another shape of as many elements.
func shaped(b *ir.Builder, v *ir.Value, s ir.Shape) *ir.Value {
	if v.Type.Shape.Equal(s) {
		return v
	}
	return b.Add(Reshape{Shape: s.Clone()}, v)
}

// axesFrom lists the axes from first to the last of rank.
func axesFrom(first int64, rank int) []int64 {
	var axes []int64
	for a := first; a < int64(rank); a++ {
		axes = append(axes, a)
	}
	return axes
}

// line is one row along an axis: n elements step apart.
type line struct{ first, n, step int64 }

// lines cuts a tensor into its rows along axis, in row-major order of the other axes.
func lines(s ir.Shape, axis int64) []line {
	inner, n := s[axis+1:].Elems(), s[axis]
	var all []line
	for o := range s[:axis].Elems() {
		for i := range inner {
			all = append(all, line{o*n*inner + i, n, inner})
		}
	}
	return all
}
