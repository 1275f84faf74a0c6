package importer

import (
	"math"

	"aitk/importer/onnxpb"
	"aitk/ir"
	"aitk/ir/op"
)

// Random ops draw from the run's counters, each from a stream of its own, like dropout: the seed of the node is not used, and a recomputation draws the
// same numbers again.

// uniform is a new tensor of f32 spread evenly over [0,1).
func (c *call) uniform(shape ir.Shape) *operand {
	c.dropouts++
	return c.emit(op.Uniform{DType: ir.F32, Shape: shape.Clone(), StreamID: c.dropouts}, c.reservedInput("$seed"), c.reservedInput("$step"), c.reservedInput("$micro"))
}

// drawnType is the shape and type of the result: attributes, or those of the operand that it is to be like.
func (c *call) drawnType(like bool) (ir.Shape, ir.DType) {
	c.ignore("seed")
	def := int64(onnxpb.TensorProto_FLOAT)
	var shape ir.Shape
	if like {
		c.args(1, 1)
		shape = c.arg(0).typ.Shape
		def = int64(elemOf(c.arg(0)))
	} else {
		c.args(0, 0)
		list, _ := c.ints("shape")
		shape = ir.Shape(list)
		if err := shape.Check(); err != nil {
			c.invalid("%w", err)
		}
	}
	d, err := wantDType(int32(c.int("dtype", def)))
	if err != nil {
		c.unsupported("%w", err)
	}
	return shape, d
}

func randomUniform(like bool) lowerFunc {
	return func(c *call) []*operand {
		shape, d := c.drawnType(like)
		low, high := c.float("low", 0), c.float("high", 1)
		return one(c.cast(c.plus(c.scale(c.uniform(shape), high-low), low), d))
	}
}

// randomNormal is sqrt(-2 log u) cos(2 pi v), of u and v spread evenly (Box and Muller).
func randomNormal(like bool) lowerFunc {
	return func(c *call) []*operand {
		shape, d := c.drawnType(like)
		radius := c.emit(op.Sqrt{}, c.scale(c.emit(op.Log{}, c.minus(1, c.uniform(shape))), -2))
		angle := c.emit(op.Cos{}, c.scale(c.uniform(shape), 2*math.Pi))
		x := c.emit(op.Mul{}, radius, angle)
		return one(c.cast(c.plus(c.scale(x, c.float("scale", 1)), c.float("mean", 0)), d))
	}
}

// lowerBernoulli is 1 with the probability that the operand says.
func lowerBernoulli(c *call) []*operand {
	x := c.arg(0)
	_, d := c.drawnType(true)
	p := c.cast(x, ir.F32)
	return one(c.cast(c.emit(op.Less{}, c.uniform(x.typ.Shape), p), d))
}

// lowerMultinomial draws class numbers from unnormalised log-probabilities: how many cumulative probabilities a uniform number exceeds.
func lowerMultinomial(c *call) []*operand {
	c.args(1, 1)
	c.ignore("seed")
	x := c.arg(0)
	n := c.int("sample_size", 1)
	d, err := wantDType(int32(c.int("dtype", int64(onnxpb.TensorProto_INT32))))
	if err != nil {
		c.unsupported("%w", err)
	}
	s := x.typ.Shape
	if len(s) != 2 || s[1] < 1 || n < 1 || n > indexElems {
		c.invalid("%d samples of %v", n, x.typ)
	}
	sums := c.emit(op.CumSum{Axis: 1}, c.emit(op.Softmax{Axis: 1}, c.cast(x, ir.F32)))
	sums = c.slice(sums, 1, 0, s[1]-1, 1) // the last one is 1
	above := c.emit(op.LessEqual{}, c.reshape(sums, s[0], 1, s[1]-1), c.reshape(c.uniform(ir.Shape{s[0], n}), s[0], n, 1))
	return one(c.cast(c.emit(op.ReduceSum{Axes: []int64{2}}, c.cast(above, ir.I64)), d))
}
