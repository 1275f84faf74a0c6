package op

import (
	"math"

	"aitk/ir"
)

// Softmax is exp(x - max) / sum(exp(x - max)) along Axis (0 <= Axis < rank).
//
//	x [...] -> like x
//
// Exponentials are summed in index order. A row of -inf alone gives NaN, as in PyTorch.
type Softmax struct {
	over0
	Axis int64
}

// SoftmaxGrad is the gradient of Softmax from its output: y * (dy - sum(y*dy)) along Axis.
//
//	y [...], dy like y -> dx like y
type SoftmaxGrad struct {
	over01
	Axis int64
}

// LogSoftmax is x - max - log(sum(exp(x - max))) along Axis (0 <= Axis < rank).
//
//	x [...] -> like x
type LogSoftmax struct {
	over0
	Axis int64
}

// LogSoftmaxGrad is the gradient of LogSoftmax from its output: dy - exp(y) * sum(dy) along Axis.
//
//	y [...], dy like y -> dx like y
type LogSoftmaxGrad struct {
	over01
	Axis int64
}

// inferAlong is the shape rule of ops that keep the type of their operands, which are all alike, and work along one axis.
func inferAlong(in []ir.Type, axis int64, names ...string) ([]ir.Type, error) {
	if err := wantOperands(in, names...); err != nil {
		return nil, err
	}
	for i, name := range names {
		if err := wantFloats(in, 0, i); err != nil {
			return nil, err
		}
		if err := wantShape(in, i, name, in[0].Shape); err != nil {
			return nil, err
		}
	}
	if err := wantAxis(axis, len(in[0].Shape)); err != nil {
		return nil, err
	}
	return []ir.Type{in[0]}, nil
}

// Infer gives x's type.
func (o Softmax) Infer(in []ir.Type) ([]ir.Type, error) { return inferAlong(in, o.Axis, "x") }

// Infer gives y's type.
func (o SoftmaxGrad) Infer(in []ir.Type) ([]ir.Type, error) { return inferAlong(in, o.Axis, "y", "dy") }

// Infer gives x's type.
func (o LogSoftmax) Infer(in []ir.Type) ([]ir.Type, error) { return inferAlong(in, o.Axis, "x") }

// Infer gives y's type.
func (o LogSoftmaxGrad) Infer(in []ir.Type) ([]ir.Type, error) {
	return inferAlong(in, o.Axis, "y", "dy")
}

// logSumExp is the largest element of a line and the log of the sum of exp(x - largest).
func logSumExp(x []float64, l line) (largest, log float64) {
	largest = math.Inf(-1)
	for i := range l.n {
		if v := x[l.first+i*l.step]; v > largest || math.IsNaN(v) {
			largest = v
		}
	}
	var sum float64
	for i := range l.n {
		sum += math.Exp(x[l.first+i*l.step] - largest)
	}
	return largest, math.Log(sum)
}

// Eval normalises line by line.
func (o Softmax) Eval(in, out []ir.Tensor) {
	x, y := in[0].F, out[0].F
	for _, l := range lines(in[0].Type.Shape, o.Axis) {
		largest, log := logSumExp(x, l)
		for i := range l.n {
			at := l.first + i*l.step
			y[at] = math.Exp(x[at] - largest - log)
		}
	}
}

// Eval takes line by line.
func (o LogSoftmax) Eval(in, out []ir.Tensor) {
	x, y := in[0].F, out[0].F
	for _, l := range lines(in[0].Type.Shape, o.Axis) {
		largest, log := logSumExp(x, l)
		for i := range l.n {
			at := l.first + i*l.step
			y[at] = x[at] - largest - log
		}
	}
}

// Eval takes line by line.
func (o SoftmaxGrad) Eval(in, out []ir.Tensor) {
	y, dy, dx := in[0].F, in[1].F, out[0].F
	for _, l := range lines(in[0].Type.Shape, o.Axis) {
		var dot float64
		for i := range l.n {
			dot += y[l.first+i*l.step] * dy[l.first+i*l.step]
		}
		for i := range l.n {
			at := l.first + i*l.step
			dx[at] = y[at] * (dy[at] - dot)
		}
	}
}

// Eval takes line by line.
func (o LogSoftmaxGrad) Eval(in, out []ir.Tensor) {
	y, dy, dx := in[0].F, in[1].F, out[0].F
	for _, l := range lines(in[0].Type.Shape, o.Axis) {
		var sum float64
		for i := range l.n {
			sum += dy[l.first+i*l.step]
		}
		for i := range l.n {
			at := l.first + i*l.step
			dx[at] = dy[at] - math.Exp(y[at])*sum
		}
	}
}

// Grad is SoftmaxGrad of the output.
func (o Softmax) Grad(b *ir.Builder, n *ir.Node, dOut []*ir.Value) []*ir.Value {
	return []*ir.Value{b.Add(SoftmaxGrad{Axis: o.Axis}, n.Out[0], dOut[0])}
}

// Grad is LogSoftmaxGrad of the output.
func (o LogSoftmax) Grad(b *ir.Builder, n *ir.Node, dOut []*ir.Value) []*ir.Value {
	return []*ir.Value{b.Add(LogSoftmaxGrad{Axis: o.Axis}, n.Out[0], dOut[0])}
}

// NoGradReason says why gradients stop here.
func (SoftmaxGrad) NoGradReason() string { return noSecond }

// NoGradReason says why gradients stop here.
func (LogSoftmaxGrad) NoGradReason() string { return noSecond }

// shifted is x - max(x) along an axis, wide, and the sum of its exponentials.
func shifted(b *ir.Builder, x *ir.Value, axis int64) (c, exp, sum *ir.Value) {
	x = wide(b, x)
	c = b.Add(Sub{}, x, b.Add(ReduceMax{Axes: []int64{axis}, KeepDims: true}, x))
	exp = b.Add(Exp{}, c)
	return c, exp, b.Add(ReduceSum{Axes: []int64{axis}, KeepDims: true}, exp)
}

// Decompose is the definition.
func (o Softmax) Decompose(b *ir.Builder, in []*ir.Value) []*ir.Value {
	_, exp, sum := shifted(b, in[0], o.Axis)
	return []*ir.Value{narrow(b, b.Add(Div{}, exp, sum), in[0].Type.DType)}
}

// Decompose is the definition.
func (o LogSoftmax) Decompose(b *ir.Builder, in []*ir.Value) []*ir.Value {
	c, _, sum := shifted(b, in[0], o.Axis)
	return []*ir.Value{narrow(b, b.Add(Sub{}, c, b.Add(Log{}, sum)), in[0].Type.DType)}
}

// Cost: maximum, difference, exponential, sum, quotient.
func (Softmax) Cost(in, out []ir.Type) ir.Work { return perElement(5, in, out) }

// Cost: maximum, difference, exponential, sum, difference.
func (LogSoftmax) Cost(in, out []ir.Type) ir.Work { return perElement(5, in, out) }

// Cost: two for the sum of products, difference, product.
func (SoftmaxGrad) Cost(in, out []ir.Type) ir.Work { return perElement(4, in, out) }

// Cost: sum, exponential, product, difference.
func (LogSoftmaxGrad) Cost(in, out []ir.Type) ir.Work { return perElement(4, in, out) }

// Samples are softmaxSamples.
func (Softmax) Samples() []ir.Sample {
	return softmaxSamples(func(axis int64) ir.Op { return Softmax{Axis: axis} }, "x")
}

// Samples are softmaxSamples.
func (LogSoftmax) Samples() []ir.Sample {
	return softmaxSamples(func(axis int64) ir.Op { return LogSoftmax{Axis: axis} }, "x")
}

// Samples are softmaxSamples.
func (SoftmaxGrad) Samples() []ir.Sample {
	return softmaxSamples(func(axis int64) ir.Op { return SoftmaxGrad{Axis: axis} }, "y", "dy")
}

// Samples are softmaxSamples.
func (LogSoftmaxGrad) Samples() []ir.Sample {
	return softmaxSamples(func(axis int64) ir.Op { return LogSoftmaxGrad{Axis: axis} }, "y", "dy")
}

// softmaxSamples try every axis, large numbers, no rows and one class, with as many operands as there are names.
func softmaxSamples(along func(axis int64) ir.Op, names ...string) []ir.Sample {
	tensors := func(d ir.DType, scale float64, shape ...int64) []ir.Tensor {
		var in []ir.Tensor
		for i := range names {
			t := sampleFloats(uint64(i), d, shape...)
			for k := range t.F {
				t.F[k] *= scale
			}
			t.Round()
			in = append(in, t)
		}
		return in
	}
	types := func(n int, t ir.Type) []ir.Type {
		var in []ir.Type
		for range n {
			in = append(in, t)
		}
		return in
	}
	n := len(names)
	return []ir.Sample{
		good(along(0), tensors(ir.F32, 1, 3, 4, 2)...),
		good(along(1), tensors(ir.F32, 3, 3, 4, 2)...),
		good(along(2), tensors(ir.F32, 1, 3, 2, 5)...),
		good(along(0), tensors(ir.F32, 1, 7)...),
		good(along(1), tensors(ir.F32, 6, 3, 1)...),
		good(along(1), tensors(ir.F32, 1, 0, 4)...),
		good(along(1), tensors(ir.F64, 1, 2, 600)...),
		good(along(1), tensors(ir.BF16, 1, 3, 5)...),
		good(along(0), tensors(ir.F16, 1, 3, 5)...),
		bad(along(3), "axis 3 is outside rank 3", types(n, ir.T(ir.F32, 3, 4, 2))...),
		bad(along(-1), "axis -1 is outside rank 3", types(n, ir.T(ir.F32, 3, 4, 2))...),
		bad(along(0), "axis 0 is outside rank 0", types(n, ir.T(ir.F32))...),
		bad(along(0), "want floats", types(n, ir.T(ir.I64, 3))...),
		bad(along(0), "takes", types(n+1, ir.T(ir.F32, 3))...),
	}
}
