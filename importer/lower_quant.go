package importer

import (
	"slices"
	"strings"

	"aitk/importer/onnxpb"
	"aitk/internal/quant"
	"aitk/ir"
	"aitk/ir/op"
)

// Weights that come quantized. A tensor of integers or 8-bit floats that nothing but dequantization reads stays as the file has it: a frozen
// parameter of i8, u8 or packed i4, with a Dequantize where it is read. Its floats never exist as a whole in memory, neither here nor when it is
// loaded. Adapters can train beside it.

// packedElems is the least number of elements that is worth that: fewer are dequantized here and become constants.
const packedElems = 512

// packedFormat is how a tensor of the file packs numbers; ok is false for types that are no storage of weights.
func packedFormat(t *tensor) (quant.Format, bool) {
	switch onnxpb.TensorProto_DataType(t.elem) {
	case onnxpb.TensorProto_INT4:
		return quant.Int4, true
	case onnxpb.TensorProto_UINT4:
		return quant.UInt4, true
	case onnxpb.TensorProto_FLOAT8E4M3FN:
		return quant.FP8, true
	case onnxpb.TensorProto_UNDEFINED:
		switch t.typ.DType {
		case ir.I8:
			return quant.Int8, true
		case ir.U8:
			return quant.UInt8, true
		}
	}
	return "", false
}

// isPacked tells whether a tensor is a weight that only dequantization reads, with scales and zero points that stand in the file too.
func (l *lowering) isPacked(t *tensor) bool {
	f, ok := packedFormat(t)
	if !ok || len(t.typ.Shape) < 2 || t.typ.Elems() < packedElems || len(l.src.uses[t.name]) == 0 {
		return false
	}
	if slices.ContainsFunc(l.src.graph.Output, func(v *onnxpb.ValueInfoProto) bool { return v.GetName() == t.name }) {
		return false
	}
	for _, u := range l.src.uses[t.name] {
		if u.node < 0 {
			return false
		}
		n := l.src.graph.Node[u.node]
		switch {
		case n.GetOpType() == "MatMulNBits" && u.operand == 1:
			if t.typ.DType != ir.U8 || t.elem != 0 {
				return false
			}
		case n.GetOpType() == "DequantizeLinear" && u.operand == 0:
			if len(n.Input) < 2 || l.src.tensors[n.Input[1]] == nil || len(n.Input) > 2 && n.Input[2] != "" && (f == quant.FP8 || l.src.tensors[n.Input[2]] == nil) {
				return false
			}
		default:
			return false
		}
	}
	return true
}

// authorName is what a weight was called before a quantizer renamed it.
func (l *lowering) authorName(name string) string {
	for _, suffix := range []string{"_quantized", "_Q4", "_Q8", "_DQ_Q4"} {
		if s, ok := strings.CutSuffix(name, suffix); ok && s != "" && l.w.named[s] == nil && l.src.tensors[s] == nil {
			return s
		}
	}
	return name
}

// frozen is the operand for a part of a quantized weight, as the file has it.
func (l *lowering) frozen(name string, t ir.Type, init ir.Init, reason string) *operand {
	p := l.w.named[name]
	if p == nil {
		p = &param{ParamInfo: ParamInfo{Name: name, Type: t, Role: ir.Weight, Reason: reason, Init: init}}
		l.w.params = append(l.w.params, p)
		l.w.named[name] = p
	}
	return l.parameter(&view{param: p, shape: p.Type.Shape})
}

// codes is the operand for the codes of t under another shape of as many elements.
func (c *call) codes(t *tensor, f quant.Format, shape ir.Shape) *operand {
	d := ir.U8
	switch {
	case f.Bits() == 4:
		d = ir.I4
	case f == quant.Int8:
		d = ir.I8
	}
	return c.frozen(c.authorName(t.name), ir.Type{DType: d, Shape: shape.Clone()}, t.init, "frozen: the file has it quantized as "+string(f))
}

// zeroPoints is the operand for zero points in the storage of the codes, nil where all are zero. xs are their values.
func (c *call) zeroPoints(name string, f quant.Format, xs ir.Tensor, shape ir.Shape) *operand {
	if !slices.ContainsFunc(xs.I, func(x int64) bool { return x != 0 }) {
		return nil
	}
	t := ir.Type{DType: ir.U8, Shape: shape.Clone()}
	switch {
	case f.Bits() == 4:
		t.DType = ir.I4
	case f == quant.Int8:
		t.DType = ir.I8
	}
	raw := ir.Tensor{Type: t, I: xs.I}.Encode()
	return c.frozen(name, t, ir.Init{Kind: ir.InitLiteral, Literal: raw}, "zero points of a weight that the file has quantized")
}

// packedDequantize is DequantizeLinear of a weight.
func (c *call) packedDequantize(t *tensor, axis, block int64, to ir.DType) *operand {
	f, _ := packedFormat(t)
	x := t.typ.Shape
	scale := c.arg(1)
	o := op.Dequantize{Format: string(f), To: to, Block: block}
	shape := scale.typ.Shape
	switch {
	case shape.Elems() == 1:
		shape, o.Block = ir.Shape{}, 0
	default:
		o.Axis = c.axis(axis, len(x))
	}
	in := []*operand{c.codes(t, f, x), c.reshape(scale, shape...)}
	if c.has(2) {
		if !c.arg(2).typ.Shape.Equal(scale.typ.Shape) && c.arg(2).typ.Elems() != shape.Elems() {
			c.invalid("scale %v and zero point %v", scale.typ, c.arg(2).typ)
		}
		if z := c.zeroPoints(c.n.Input[2], f, c.constant(2, "zero point"), shape); z != nil {
			in = append(in, z)
		}
	}
	return c.emit(o, in...)
}

// lowerMatMulNBits is A times the transpose of a weight [N, K] in 4 or 8 bits: blocks of block_size along K, each with a scale and a zero point, which is the
// middle of the codes' range where the file gives none.
func lowerMatMulNBits(c *call) []*operand {
	c.args(3, 6)
	a, b, scale := c.arg(0), c.arg(1), c.arg(2)
	n, k, bits, block := c.int("N", 0), c.int("K", 0), c.int("bits", 4), c.int("block_size", 0)
	c.ignore("accuracy_level")
	switch {
	case bits != 4 && bits != 8:
		c.unsupported("%d bits", bits)
	case n < 1 || k < 1 || block < 1 || n > 1<<31 || k > 1<<31 || block > 1<<31:
		c.invalid("N=%d, K=%d, block_size=%d", n, k, block)
	case c.has(4):
		c.unsupported("g_idx, a reordering of the weight's columns")
	case b.stored == nil:
		c.unsupported("a weight that is computed, or has fewer than %d bytes", packedElems)
	}
	blocks := (k + block - 1) / block
	if b.stored.typ.Elems() != n*blocks*block*bits/8 || block*bits%8 != 0 {
		c.invalid("weight %v for N=%d, K=%d, block_size=%d, bits=%d", b.stored.typ, n, k, block, bits)
	}
	f, middle := quant.UInt4, int64(8)
	if bits == 8 {
		f, middle = quant.UInt8, 128
	}
	shape := ir.Shape{n, blocks}
	if scale.typ.Elems() != shape.Elems() {
		c.invalid("scales %v for %v blocks", scale.typ, shape)
	}
	in := []*operand{c.codes(b.stored, f, ir.Shape{n, blocks * block}), c.reshape(scale, shape...)}
	if zero := c.blockZeros(f, middle, shape, bits); zero != nil {
		in = append(in, zero)
	}
	w := c.emit(op.Dequantize{Format: string(f), To: a.typ.DType, Axis: 1, Block: block}, in...)
	if blocks*block != k {
		w = c.emit(op.Slice{Starts: []int64{0, 0}, Ends: []int64{n, k}, Steps: []int64{1, 1}}, w)
	}
	y := c.emit(op.MatMul{TransB: true}, a, w)
	if c.has(5) {
		y = c.emit(op.Add{}, y, c.arg(5))
	}
	return one(y)
}

// blockZeros is the operand for the zero points of MatMulNBits: input 3, or the middle of the range for all blocks.
func (c *call) blockZeros(f quant.Format, middle int64, shape ir.Shape, bits int64) *operand {
	if !c.has(3) {
		d := ir.U8
		if bits == 4 {
			d = ir.I4
		}
		return c.frozen(c.n.Input[1]+"$zero", ir.Type{DType: d, Shape: shape}, ir.Init{Kind: ir.InitFill, Fill: float64(middle)}, "the middle of the codes' range")
	}
	if c.arg(3).typ.DType != ir.U8 {
		c.unsupported("zero points of type %v", c.arg(3).typ.DType)
	}
	zeros := unpackZeros(c.constant(3, "zero points"), shape[0], shape[1], bits)
	if zeros.I == nil {
		c.invalid("zero points %v for %v blocks", c.arg(3).typ, shape)
	}
	return c.zeroPoints(c.n.Input[3], f, zeros, shape)
}

// unpackZeros takes zero points apart, which the file packs like codes, each row from a byte of its own. I is nil where their number is wrong.
func unpackZeros(raw ir.Tensor, n, blocks, bits int64) ir.Tensor {
	line := (blocks*bits + 7) / 8
	if int64(len(raw.I)) != n*line {
		return ir.Tensor{}
	}
	out := ir.Tensor{I: make([]int64, 0, n*blocks)}
	for r := range n {
		for j := range blocks {
			at := j * bits
			out.I = append(out.I, raw.I[r*line+at/8]>>(at%8)&(1<<bits-1))
		}
	}
	return out
}
