package importer

import (
	"math"

	"aitk/ir"
	"aitk/ir/op"
)

// Fourier transforms as products with matrices of cosines and sines: quadratic, exact to rounding, and linear, so that gradients are theirs.

// dft transforms axis of x, whose last axis has extent 1 (real) or 2 (complex), to n points; onesided keeps the first half.
func (c *call) dft(x *operand, axis, n int64, onesided, inverse bool) *operand {
	s := x.typ.Shape
	last := len(s) - 1
	if axis >= int64(last) || s[last] != 1 && s[last] != 2 || n < 1 {
		c.invalid("transform of %d points along axis %d of %v", n, axis, x.typ)
	}
	have := min(s[axis], n)
	x = c.slice(x, axis, 0, have, 1) // what is beyond is cut, what is missing is 0
	points := n
	if onesided {
		points = n/2 + 1
	}
	if have*points > indexElems {
		c.unsupported("a transform of %d points", n)
	}
	d := x.typ.DType
	re, im := ir.NewTensor(ir.T(d, have, points)), ir.NewTensor(ir.T(d, have, points))
	for i := range have {
		for k := range points {
			angle := -2 * math.Pi * float64(i*k%n) / float64(n)
			if inverse {
				angle = -angle
			}
			re.F[i*points+k], im.F[i*points+k] = math.Cos(angle), math.Sin(angle)
			if inverse {
				re.F[i*points+k] /= float64(n)
				im.F[i*points+k] /= float64(n)
			}
		}
	}
	re.Round()
	im.Round()
	perm := allAxes(len(s)) // the axis becomes the last
	perm[axis], perm[last] = int64(last), axis
	y := c.transpose(x, perm...)
	part := func(k int64) *operand { // real or imaginary part, [..., have]
		p := c.slice(y, axis, k, k+1, 1)
		return p
	}
	times := func(a *operand, m ir.Tensor) *operand {
		sh := a.typ.Shape.Clone()
		z := c.emit(op.MatMul{}, c.reshape(a, sh[:last].Elems(), have), &operand{typ: m.Type, known: &m})
		sh[last] = points
		return c.reshape(z, sh...)
	}
	a := part(0)
	real, imag := times(a, re), times(a, im)
	if s[last] == 2 {
		b := part(1)
		real = c.emit(op.Sub{}, real, times(b, im))
		imag = c.emit(op.Add{}, imag, times(b, re))
	}
	return c.transpose(c.concat([]*operand{real, imag}, axis), perm...)
}

func lowerDFT(c *call) []*operand {
	c.args(1, 3)
	x := c.arg(0)
	axis := int64(-2)
	if c.ver < 20 {
		axis = c.int("axis", 1)
	} else if c.has(2) {
		axis = c.constInt(2, "axis")
	}
	axis = c.axis(axis, len(x.typ.Shape))
	onesided, inverse := c.flag("onesided", false), c.flag("inverse", false)
	n := x.typ.Shape[axis]
	last := len(x.typ.Shape) - 1
	if onesided && inverse {
		// Half of a spectrum that is conjugate-symmetric: the other half is made, and the result is real.
		if !c.has(1) {
			n = 2 * (n - 1)
		}
	}
	if c.has(1) {
		n = c.constInt(1, "dft_length")
	}
	if !(onesided && inverse) {
		return one(c.dft(x, axis, n, onesided, inverse))
	}
	half := n/2 + 1
	x = c.slice(x, axis, 0, min(half, x.typ.Shape[axis]), 1)
	rest := n - half
	if rest > 0 && x.typ.Shape[axis] > rest {
		mirror := c.slice(x, axis, rest, 0, -1)
		if x.typ.Shape[last] == 2 {
			sign := ir.NewTensor(ir.T(x.typ.DType, 2))
			sign.F[0], sign.F[1] = 1, -1
			mirror = c.emit(op.Mul{}, mirror, &operand{typ: sign.Type, known: &sign})
		}
		x = c.concat([]*operand{x, mirror}, axis)
	}
	return one(c.slice(c.dft(x, axis, n, false, true), int64(last), 0, 1, 1))
}

// lowerSTFT cuts a signal into frames, weighs each with a window and transforms it.
func lowerSTFT(c *call) []*operand {
	c.args(2, 4)
	x := c.arg(0)
	step := c.constInt(1, "frame_step")
	onesided := c.flag("onesided", true)
	s := x.typ.Shape
	if len(s) == 2 {
		x = c.reshape(x, s[0], s[1], 1)
		s = x.typ.Shape
	}
	var length int64
	switch {
	case c.has(3):
		length = c.constInt(3, "frame_length")
	case c.has(2):
		length = c.arg(2).typ.Elems()
	default:
		c.invalid("neither window nor frame_length")
	}
	if len(s) != 3 || step < 1 || length < 1 || length > s[1] || s[2] == 2 && onesided {
		c.invalid("frames of %d every %d of %v", length, step, x.typ)
	}
	frames := (s[1]-length)/step + 1
	if frames*length > indexElems {
		c.unsupported("%d frames of %d", frames, length)
	}
	index := make([]int64, 0, frames*length)
	for f := range frames {
		for i := range length {
			index = append(index, f*step+i)
		}
	}
	y := c.reshape(c.emit(op.Gather{Axis: 1}, x, ints(index)), s[0], frames, length, s[2])
	if c.has(2) {
		y = c.emit(op.Mul{}, y, c.reshape(c.arg(2), length, 1))
	}
	return one(c.dft(y, 2, length, onesided, false))
}

// lowerMelWeightMatrix makes the triangles that sum the bins of a spectrum to bands of equal width on the mel scale.
func lowerMelWeightMatrix(c *call) []*operand {
	c.args(5, 5)
	bands, length, rate := c.constInt(0, "num_mel_bins"), c.constInt(1, "dft_length"), c.constInt(2, "sample_rate")
	low, high := c.constFloat(3, "lower_edge_hertz"), c.constFloat(4, "upper_edge_hertz")
	d, err := wantDType(int32(c.int("output_datatype", 1)))
	if err != nil {
		c.unsupported("%w", err)
	}
	bins := length/2 + 1
	if bands < 1 || length < 1 || rate < 1 || bands > indexElems || bins > indexElems || bands*bins > indexElems {
		c.invalid("%d bands of %d points", bands, length)
	}
	mel := func(hz float64) float64 { return 2595 * math.Log10(1+hz/700) }
	lo, hi := mel(low), mel(high)
	edges := make([]int64, bands+2)
	for i := range edges {
		m := float64(i)*((hi-lo)/float64(len(edges))) + lo
		hz := 700 * (math.Pow(10, m/2595) - 1)
		edges[i] = int64(math.Floor(float64(length+1) * hz / float64(rate)))
	}
	t := ir.NewTensor(ir.T(d, bins, bands))
	set := func(bin, band int64, v float64) {
		if bin >= 0 && bin < bins && t.F != nil {
			t.F[bin*bands+band] = v
		}
	}
	for b := range bands {
		l, m, h := edges[b], edges[b+1], edges[b+2]
		if m == l {
			set(m, b, 1)
		}
		for j := l; j <= m && m > l; j++ {
			set(j, b, float64(j-l)/float64(m-l))
		}
		for j := m; j < h; j++ {
			set(j, b, float64(h-j)/float64(h-m))
		}
	}
	t.Round()
	return one(&operand{typ: t.Type, known: &t})
}
