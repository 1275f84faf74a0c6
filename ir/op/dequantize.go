package op

import (
	"fmt"

	"aitk/internal/quant"
	"aitk/ir"
)

// Dequantize turns codes of 8 or 4 bits back into floats of type To: value(code)*scale, or (value(code)-value(zero))*scale.
//
//	q [shape], scale                                -> To [shape]
//	q [shape], scale, zero (like q, shape of scale) -> To [shape]
//	q [shape], scale i8, steps f32[...], offset f32[] -> To [shape]
//
// Format says what a code means (package quant): int8 and uint8 in i8 and u8, fp8 in u8, int4, uint4 and nf4 in i4. With Block 0 all elements
// of one index along Axis share a scale, which has the shape [shape[Axis]], or [] for one scale for all. Else Block neighbours along Axis
// do, and scale has q's shape with the extent of Axis divided by Block and rounded up. Four operands mean that the scales are packed again:
// scale i is float32(scale[i]*steps[i/256]) + offset.
//
// All of it is float32 arithmetic, each operation rounded, then a conversion to To: every device gives the same bits.
//
// The float copy should live for one op, in forward and again in backward, so readers do not share one: see pass "dequantize".
type Dequantize struct {
	Format string
	To     ir.DType
	Axis   int64
	Block  int64
}

// NoGradReason says that nothing trains behind it.
func (Dequantize) NoGradReason() string { return "codes are frozen" }

// storage is the element type of the format's codes.
func (o Dequantize) storage() ir.DType {
	switch quant.Format(o.Format) {
	case quant.Int8:
		return ir.I8
	case quant.UInt8, quant.FP8:
		return ir.U8
	case quant.Int4, quant.UInt4, quant.NF4:
		return ir.I4
	}
	return ir.Invalid
}

// Infer gives To with q's shape.
func (o Dequantize) Infer(in []ir.Type) ([]ir.Type, error) {
	if len(in) < 2 || len(in) > 4 {
		return nil, fmt.Errorf("takes 2 to 4 operands (q, scale, zero; or q, scale, steps, offset), got %d", len(in))
	}
	d := o.storage()
	if d == ir.Invalid {
		return nil, fmt.Errorf("format %q is unknown", o.Format)
	}
	if !o.To.IsFloat() {
		return nil, fmt.Errorf("cannot dequantize to %v", o.To)
	}
	for i, t := range in {
		if t.Space != ir.Device {
			return nil, fmt.Errorf("operand %d is in %v memory", i, t.Space)
		}
		if err := t.Shape.Check(); err != nil {
			return nil, fmt.Errorf("operand %d: %w", i, err)
		}
	}
	if in[0].DType != d {
		return nil, fmt.Errorf("q of format %s must be %v, got %v", o.Format, d, in[0].DType)
	}
	if err := o.checkScale(in); err != nil {
		return nil, err
	}
	out := one(o.To, in[0].Shape)
	return out, out[0].Shape.Check() // floats are wider than codes
}

func (o Dequantize) checkScale(in []ir.Type) error {
	want, err := o.scaleShape(in[0].Shape, in[1].Shape)
	if err != nil {
		return err
	}
	if err := wantShape(in, 1, "scale", want); err != nil {
		return err
	}
	scale := in[1]
	switch len(in) {
	case 2, 3:
		if !scale.DType.IsFloat() {
			return fmt.Errorf("scale must be floats, got %v", scale.DType)
		}
		if len(in) == 3 && (in[2].DType != in[0].DType || o.Format == string(quant.NF4) || o.Format == string(quant.FP8)) {
			return fmt.Errorf("zero must be integers like q, got %v for %v of format %s", in[2].DType, in[0].DType, o.Format)
		}
		if len(in) == 3 {
			return wantShape(in, 2, "zero", want)
		}
	case 4:
		steps := (want.Elems() + quant.DoubleBlock - 1) / quant.DoubleBlock
		if scale.DType != ir.I8 || !in[2].Equal(ir.T(ir.F32, steps)) || !in[3].Equal(ir.T(ir.F32)) {
			return fmt.Errorf("scale, steps and offset must be i8, f32[%d] and f32[], got %v, %v and %v", steps, scale, in[2], in[3])
		}
	}
	return nil
}

// scaleShape is what the scale of a q must have; a scalar serves where Block is 0 and the caller has one.
func (o Dequantize) scaleShape(q, have ir.Shape) (ir.Shape, error) {
	if o.Block == 0 && len(have) == 0 && o.Axis == 0 {
		return ir.Shape{}, nil
	}
	if err := wantAxis(o.Axis, len(q)); err != nil {
		return nil, err
	}
	switch {
	case o.Block < 0:
		return nil, fmt.Errorf("block must be 0 or more, got %d", o.Block)
	case o.Block == 0:
		return ir.Shape{q[o.Axis]}, nil
	}
	s := q.Clone()
	if s[o.Axis] > 0 {
		s[o.Axis] = (s[o.Axis]-1)/o.Block + 1
	}
	return s, nil
}

// Groups maps the index of an element to that of its scale: an element is [outer, k, inner].
func (o Dequantize) Groups(q, scale ir.Shape) ScaleIndex {
	if len(scale) == 0 {
		return ScaleIndex{}
	}
	x := ScaleIndex{axis: q[o.Axis], inner: q[o.Axis+1:].Elems(), block: o.Block}
	if o.Block > 0 {
		x.blocks = scale[o.Axis]
	}
	return x
}

// ScaleIndex is the map that Groups gives.
type ScaleIndex struct{ axis, inner, block, blocks int64 }

// At is the scale of element i. The next run elements, i among them, have the scales scale, scale+step, scale+2*step ...
func (x ScaleIndex) At(i int64) (scale, step, run int64) {
	if x.axis == 0 {
		return 0, 0, 1 << 40 // one scale for all
	}
	outer, at := i/(x.axis*x.inner), i%(x.axis*x.inner)
	k, c := at/x.inner, at%x.inner
	switch {
	case x.block == 0 && x.inner == 1:
		return k, 1, x.axis - k
	case x.block == 0:
		return k, 0, x.inner - c
	}
	g := (outer*x.blocks+k/x.block)*x.inner + c
	if x.inner > 1 {
		return g, 1, x.inner - c
	}
	return g, 0, min(x.block-k%x.block, x.axis-k)
}

// Eval is the formula, rounded as it says.
func (o Dequantize) Eval(in, out []ir.Tensor) {
	table := quant.Table(quant.Format(o.Format))
	q, y := in[0], out[0]
	groups := o.Groups(q.Type.Shape, in[1].Type.Shape)
	for i, code := range q.I {
		g, _, _ := groups.At(int64(i))
		v := table[byte(code)]
		var s float32
		switch len(in) {
		case 4:
			s = quant.UnpackScale(int8(in[1].I[g]), float32(in[2].F[g/quant.DoubleBlock]), float32(in[3].F[0]))
		case 3:
			v -= table[byte(in[2].I[g])]
			s = float32(in[1].F[g])
		default:
			s = float32(in[1].F[g])
		}
		y.F[i] = float64(float32(v * s))
	}
}

// Cost is a lookup and a product for each element.
func (Dequantize) Cost(in, out []ir.Type) ir.Work {
	w := moved(in, out)
	w.FLOPs = 2 * out[0].Elems()
	return w
}

// Samples take every format, both ways to group, zero points, scales packed again, odd numbers of nibbles, and what is wrong.
func (Dequantize) Samples() []ir.Sample {
	codes := func(d ir.DType, seed float64, shape ...int64) ir.Tensor {
		t := ramp(d, seed, -8, 8, shape...)
		if d != ir.I4 {
			t = ramp(d, seed, -120, 120, shape...)
		}
		return t
	}
	scale := func(shape ...int64) ir.Tensor { return ramp(ir.F32, 3, 0, 2, shape...) }
	fp8 := codes(ir.U8, 1, 3, 5)
	for i := range fp8.I {
		if fp8.I[i]&127 == 127 { // NaN
			fp8.I[i] ^= 1
		}
	}
	channel := func(f quant.Format, axis int64) Dequantize {
		return Dequantize{Format: string(f), To: ir.F32, Axis: axis}
	}
	block := func(f quant.Format, axis, n int64) Dequantize {
		return Dequantize{Format: string(f), To: ir.F32, Axis: axis, Block: n}
	}
	i8, s := ir.T(ir.I8, 4, 6), ir.T(ir.F32, 4)
	list := []ir.Sample{
		kinked(channel(quant.Int8, 0), codes(ir.I8, 1, 4, 6), scale(4)),
		kinked(channel(quant.Int8, 1), codes(ir.I8, 2, 4, 6), scale(6)),
		kinked(channel(quant.Int8, 1), codes(ir.I8, 2, 2, 3, 5), scale(3)),
		kinked(channel(quant.Int8, 0), codes(ir.I8, 3, 4, 6), scale()),
		kinked(channel(quant.UInt8, 0), codes(ir.U8, 3, 4, 6), scale(4), codes(ir.U8, 4, 4)),
		kinked(channel(quant.Int8, 0), codes(ir.I8, 3, 7), scale(), codes(ir.I8, 4)),
		kinked(channel(quant.FP8, 0), fp8, scale(3)),
		kinked(channel(quant.Int4, 0), codes(ir.I4, 1, 3, 5), scale(3)),
		kinked(block(quant.Int4, 1, 2), codes(ir.I4, 1, 3, 5), scale(3, 3)),
		kinked(block(quant.NF4, 1, 4), codes(ir.I4, 2, 5, 8), scale(5, 2)),
		kinked(block(quant.NF4, 0, 2), codes(ir.I4, 3, 5, 3), scale(3, 3)),
		kinked(block(quant.UInt4, 1, 32), codes(ir.I4, 3, 3, 7), scale(3, 1), codes(ir.I4, 5, 3, 1)),
		kinked(block(quant.Int8, 1, 2), codes(ir.I8, 3, 2, 3, 4), scale(2, 2, 4)),
		kinked(block(quant.NF4, 1, 4), codes(ir.I4, 6, 80, 16), codes(ir.I8, 2, 80, 4), scale(2), scale()),
		kinked(block(quant.Int4, 1, 64), codes(ir.I4, 6, 0, 16), scale(0, 1)),
		kinked(channel(quant.Int8, 0), codes(ir.I8, 7, 300, 11), scale(300)),
		bad(channel(quant.Int8, 0), "takes 2 to 4 operands", i8),
		bad(channel("int3", 0), `format "int3" is unknown`, i8, s),
		bad(Dequantize{Format: "int8"}, "cannot dequantize to invalid", i8, s),
		bad(channel(quant.Int8, 0), "q of format int8 must be i8, got u8", ir.T(ir.U8, 4, 6), s),
		bad(channel(quant.Int8, 1), "scale must have shape [6], got [4]", i8, s),
		bad(channel(quant.Int8, 2), "axis 2 is outside rank 2", i8, s),
		bad(block(quant.Int8, 1, -1), "block must be 0 or more", i8, s),
		bad(block(quant.Int8, 1, 4), "scale must have shape [4,2]", i8, s),
		bad(channel(quant.Int8, 0), "scale must be floats", i8, ir.T(ir.I8, 4)),
		bad(channel(quant.Int8, 0), "zero must be integers like q", i8, s, s),
		bad(channel(quant.Int8, 0), "zero must have shape [4]", i8, s, ir.T(ir.I8, 6)),
		bad(channel(quant.Int8, 0), "must be i8, f32[1] and f32[]", i8, s, ir.T(ir.F32, 1), ir.T(ir.F32)),
		bad(channel(quant.Int8, 0), "operand 0 is in pinned memory", ir.Type{DType: ir.I8, Shape: ir.Shape{4, 6}, Space: ir.Pinned}, s),
	}
	for _, d := range []ir.DType{ir.BF16, ir.F16, ir.F64} {
		list = append(list, kinked(Dequantize{Format: "nf4", To: d, Axis: 1, Block: 4}, codes(ir.I4, 2, 5, 8), scale(5, 2)))
	}
	return list
}
