package importer

import (
	"fmt"
	"math"
	"strconv"

	"aitk/importer/onnxpb"
	"aitk/ir"
)

// Attributes and constant operands of a call. Each accessor marks its attribute as read; what no lowering asked for is refused, so
// that a new attribute of a later opset is never silently ignored.

func (c *call) attr(name string, types ...onnxpb.AttributeProto_AttributeType) *onnxpb.AttributeProto {
	c.read[name] = true
	for _, a := range c.n.Attribute {
		if a.GetName() != name {
			continue
		}
		if a.GetRefAttrName() != "" {
			c.unsupported("attribute %q refers to a function's attribute %q", name, a.GetRefAttrName())
		}
		for _, t := range types {
			if a.GetType() == t || a.GetType() == onnxpb.AttributeProto_UNDEFINED {
				return a
			}
		}
		c.invalid("attribute %q has type %v, want %v", name, a.GetType(), types[0])
	}
	return nil
}

// ignore accepts attributes that change nothing here.
func (c *call) ignore(names ...string) {
	for _, n := range names {
		c.read[n] = true
	}
}

func (c *call) int(name string, def int64) int64 {
	if a := c.attr(name, onnxpb.AttributeProto_INT); a != nil {
		return a.GetI()
	}
	return def
}

func (c *call) flag(name string, def bool) bool {
	v := int64(0)
	if def {
		v = 1
	}
	return c.int(name, v) != 0
}

// float reads a float attribute. The file holds a float32; the author wrote 1e-05, and that is what the shortest decimal that gives
// this float32 says. It makes no difference in float32 and brings float64 evaluation nearer to the author's formula.
func (c *call) float(name string, def float64) float64 {
	if a := c.attr(name, onnxpb.AttributeProto_FLOAT); a != nil {
		return decimal(a.GetF())
	}
	return def
}

func decimal(f float32) float64 {
	if math.IsNaN(float64(f)) || math.IsInf(float64(f), 0) {
		return float64(f)
	}
	x, err := strconv.ParseFloat(strconv.FormatFloat(float64(f), 'g', -1, 32), 64)
	if err != nil {
		return float64(f)
	}
	return x
}

func (c *call) string(name, def string) string {
	if a := c.attr(name, onnxpb.AttributeProto_STRING); a != nil {
		return string(a.S)
	}
	return def
}

// ints reads a list; ok is false where it is not given.
func (c *call) ints(name string) (xs []int64, ok bool) {
	if a := c.attr(name, onnxpb.AttributeProto_INTS); a != nil {
		return a.Ints, true
	}
	return nil, false
}

// intsN reads a list of n entries, by default all def.
func (c *call) intsN(name string, n int, def int64) []int64 {
	xs, ok := c.ints(name)
	if !ok || len(xs) == 0 {
		xs = make([]int64, n)
		for i := range xs {
			xs[i] = def
		}
	}
	if len(xs) != n {
		c.invalid("attribute %q has %d entries, want %d", name, len(xs), n)
	}
	return xs
}

// has tells whether operand k is given.
func (c *call) has(k int) bool { return k < len(c.in) && c.in[k] != nil }

// arg is operand k, which must be a given tensor.
func (c *call) arg(k int) *operand {
	if !c.has(k) {
		c.invalid("operand %d is missing", k)
	}
	if c.in[k].isSeq {
		c.invalid("operand %d is a sequence of tensors", k)
	}
	return c.in[k]
}

// args checks the number of operands: at least lo, at most hi. All of the first lo are given.
func (c *call) args(lo, hi int) {
	if len(c.in) > hi {
		c.invalid("has %d operands, takes at most %d", len(c.in), hi)
	}
	for k := range lo {
		c.arg(k)
	}
}

// constant is the content of operand k, which must be known.
func (c *call) constant(k int, what string) ir.Tensor {
	x := c.arg(k)
	if x.known == nil {
		c.unsupported("%w", &DataError{What: fmt.Sprintf("%s (operand %d, %q)", what, k, c.n.Input[k]), Inputs: c.src.inputsBehind(c.n.Input[k])})
	}
	t := *x.known
	t.Type = x.typ
	return t
}

// constInts is the content of integer operand k.
func (c *call) constInts(k int, what string) []int64 {
	t := c.constant(k, what)
	if !t.Type.DType.IsInt() {
		c.invalid("%s (operand %d) is %v, want integers", what, k, t.Type)
	}
	return t.I
}

// constInt is the content of operand k, one integer.
func (c *call) constInt(k int, what string) int64 {
	xs := c.constInts(k, what)
	if len(xs) != 1 {
		c.invalid("%s (operand %d) has %d elements, want 1", what, k, len(xs))
	}
	return xs[0]
}

// constFloat is the content of operand k, one number.
func (c *call) constFloat(k int, what string) float64 {
	t := c.constant(k, what)
	switch {
	case len(t.F) == 1:
		return t.F[0]
	case len(t.I) == 1:
		return float64(t.I[0])
	}
	c.invalid("%s (operand %d) is %v, want one number", what, k, t.Type)
	return 0
}

// axis makes an axis count from the front; rank axes are legal.
func (c *call) axis(a int64, rank int) int64 {
	r := int64(rank)
	if a < -r || a >= r {
		c.invalid("axis %d is outside rank %d", a, rank)
	}
	if a < 0 {
		a += r
	}
	return a
}

// axes is axis for a list without repetition, sorted.
func (c *call) axes(list []int64, rank int) []int64 {
	seen := make([]bool, rank)
	for _, a := range list {
		a = c.axis(a, rank)
		if seen[a] {
			c.invalid("axis %d is given twice", a)
		}
		seen[a] = true
	}
	var out []int64
	for a, s := range seen {
		if s {
			out = append(out, int64(a))
		}
	}
	return out
}

// one wraps the result of a lowering with one output.
func one(x *operand) []*operand { return []*operand{x} }
