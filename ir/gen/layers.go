package gen

import (
	"math"

	"aitk/ir"
	"aitk/ir/op"
)

// layers are the ops that neural networks are made of.
func layers() []maker {
	return []maker{matmul, matmul, matmul, conv, conv, pool, pool, softmax, softmax, layerNorm, rmsNorm, batchNorm, batchNormInference, crossEntropy, attention, attention}
}

func matmul(g *generator) {
	x := g.float(2)
	if x == nil {
		return
	}
	o := op.MatMul{TransA: g.rand.IntN(3) == 0, TransB: g.rand.IntN(2) == 0}
	s := x.Type.Shape
	k := s[len(s)-1]
	if o.TransA {
		k = s[len(s)-2]
	}
	w := ir.Shape{k, g.extent()}
	if o.TransB {
		w[0], w[1] = w[1], w[0]
	}
	if len(s) > 2 && g.rand.IntN(3) == 0 { // batch axes on both sides
		w = append(s[:len(s)-2].Clone(), w...)
		if g.rand.IntN(2) == 0 {
			w[0] = 1
		}
	}
	y := g.of(ir.Type{DType: g.DType, Shape: w})
	g.add(o, around(g.span(x).size()*g.span(y).size()*float64(k)), x, y)
}

// window is attributes of a convolution or pool that fits an image.
func (g *generator) window(spatial []int64) (kernel, strides, dilations, pads []int64) {
	pads = make([]int64, 2*len(spatial))
	for i, d := range spatial {
		k := 1 + g.rand.Int64N(min(3, d))
		kernel, strides = append(kernel, k), append(strides, 1+g.rand.Int64N(2))
		dil := int64(1)
		if k > 1 && 2*(k-1)+1 <= d && g.rand.IntN(3) == 0 {
			dil = 2
		}
		dilations = append(dilations, dil)
		if k > 1 { // less than the kernel, so that no window lies outside
			pads[i], pads[len(spatial)+i] = g.rand.Int64N(2), g.rand.Int64N(2)
		}
	}
	return kernel, strides, dilations, pads
}

func conv(g *generator) {
	x := g.pick(func(v *ir.Value) bool { return g.isFloat(v) && (len(v.Type.Shape) == 4 || len(v.Type.Shape) == 3) })
	if x == nil {
		return
	}
	s := x.Type.Shape
	k, strides, dilations, pads := g.window(s[2:])
	o := op.Conv{Strides: strides, Dilations: dilations, Pads: pads, Group: 1}
	outs := g.extent()
	if s[1]%2 == 0 && g.rand.IntN(3) == 0 {
		o.Group, outs = 2, 2*outs
	}
	w := g.of(ir.Type{DType: g.DType, Shape: append(ir.Shape{outs, s[1] / o.Group}, k...)})
	n := w.Type.Elems() / outs
	g.add(o, around(g.span(x).size()*g.span(w).size()*float64(n)), x, w)
}

func pool(g *generator) {
	x := g.pick(func(v *ir.Value) bool { return g.isFloat(v) && (len(v.Type.Shape) == 4 || len(v.Type.Shape) == 3) })
	if x == nil {
		return
	}
	k, strides, _, pads := g.window(x.Type.Shape[2:])
	ones := make([]int64, len(k))
	for i := range ones {
		ones[i] = 1
	}
	if g.rand.IntN(2) == 0 {
		g.add(op.MaxPool{Kernel: k, Strides: strides, Dilations: ones, Pads: pads}, g.span(x), x)
		return
	}
	g.add(op.AvgPool{Kernel: k, Strides: strides, Dilations: ones, Pads: pads, CountPad: g.rand.IntN(2) == 0}, join(g.span(x), span{0, 0}), x)
}

func softmax(g *generator) {
	x := g.float(1)
	if x == nil {
		return
	}
	a := g.axis(x)
	if g.rand.IntN(2) == 0 {
		g.add(op.Softmax{Axis: a}, span{0, 1}, x)
		return
	}
	g.add(op.LogSoftmax{Axis: a}, span{-2*g.span(x).size() - math.Log(float64(x.Type.Shape[a])), 0}, x)
}

// eps of the norms is large, so that rounding is not blown up where a row is constant.
const eps = 0.125

func layerNorm(g *generator) {
	x := g.float(1)
	if x == nil {
		return
	}
	a := g.axis(x)
	t := ir.Type{DType: g.DType, Shape: x.Type.Shape[a:].Clone()}
	scale := g.of(t)
	s := math.Sqrt(float64(t.Elems())) * g.span(scale).size() // no element is further than sqrt(n) deviations from the mean
	if g.rand.IntN(3) == 0 {
		g.add(op.LayerNorm{Axis: a, Eps: eps}, around(s), x, scale)
		return
	}
	bias := g.of(t)
	g.add(op.LayerNorm{Axis: a, Eps: eps}, around(s+g.span(bias).size()), x, scale, bias)
}

func rmsNorm(g *generator) {
	x := g.float(1)
	if x == nil {
		return
	}
	a := g.axis(x)
	t := ir.Type{DType: g.DType, Shape: x.Type.Shape[a:].Clone()}
	scale := g.of(t)
	g.add(op.RMSNorm{Axis: a, Eps: eps}, around(math.Sqrt(float64(t.Elems()))*g.span(scale).size()), x, scale)
}

// batchNorm normalises by the batch and, where there are parameters, averages its statistics into a running mean.
// attention takes any image for its queries; keys, values and mask are made to fit.
func attention(g *generator) {
	q := g.pick(func(v *ir.Value) bool { return g.isFloat(v) && len(v.Type.Shape) == 4 })
	if q == nil {
		return
	}
	s := q.Type.Shape
	groups, keys, width := s[1], g.extent(), g.extent()
	if g.rand.IntN(3) == 0 {
		groups = 1
	}
	k := g.of(ir.T(g.DType, s[0], groups, keys, s[3]))
	v := g.of(ir.T(g.DType, s[0], groups, keys, width))
	in := []*ir.Value{q, k, v}
	const scale = 0.25
	score := scale * float64(s[3]) * g.span(q).size() * g.span(k).size()
	if g.rand.IntN(2) == 0 {
		mask := g.of(ir.T(g.DType, 1, 1, s[2], keys))
		score += g.span(mask).size()
		in = append(in, mask)
	}
	if score > most || s[0]*s[1]*s[2]*width > g.MaxElems {
		return
	}
	out := g.b.Multi(op.Attention{Scale: scale}, in...)
	g.keep(out[0], around(g.span(v).size())) // a mean of values
	g.keep(out[1], around(score+math.Log(float64(keys))))
}

func batchNorm(g *generator) {
	x := g.float(2)
	if x == nil {
		return
	}
	c := ir.T(g.DType, x.Type.Shape[1])
	scale, bias := g.of(c), g.of(c)
	s, size := g.span(x), g.span(x).size()
	n := float64(x.Type.Elems() / x.Type.Shape[1])
	y := around(math.Sqrt(n)*g.span(scale).size() + g.span(bias).size())
	if y.size() > most || size*size > most {
		return
	}
	out := g.b.Multi(op.BatchNorm{Eps: eps}, x, scale, bias)
	g.keep(out[0], y)
	mean := g.keep(out[1], s)
	g.keep(out[2], span{0, size * size})
	if g.Params && g.Updates && s.size() <= 50 {
		p := g.param(c)
		p.Role, p.Trainable = ir.Statistic, false
		p.Next = g.b.Add(op.MovingAverage{Momentum: 0.75}, p.Value, mean)
	}
}

func batchNormInference(g *generator) {
	x := g.float(2)
	if x == nil {
		return
	}
	c := ir.T(g.DType, x.Type.Shape[1])
	scale, bias, mean := g.of(c), g.of(c), g.of(c)
	variance := g.above(g.of(c), 0.5)
	if variance == nil {
		return
	}
	s := (g.span(x).size()+g.span(mean).size())*g.span(scale).size()*1.5 + g.span(bias).size()
	g.add(op.BatchNormInference{Eps: eps}, around(s), x, scale, bias, mean, variance)
}

// crossEntropy wants labels that are not negative, unlike indices.
func crossEntropy(g *generator) {
	x, a := g.rows(1)
	if x == nil {
		return
	}
	t := ir.Type{DType: ir.I64, Shape: append(x.Type.Shape[:a:a].Clone(), x.Type.Shape[a+1:]...)}
	labels := content(g.rand, t)
	for i := range labels.I {
		labels.I[i] &= 1
	}
	target := g.keep(g.g.AddConst(t, labels.Encode()), span{0, 1})
	o := op.SoftmaxCrossEntropy{Axis: a, Reduction: "mean", LabelSmoothing: float64(g.rand.IntN(2)) / 8}
	size := 2*g.span(x).size() + math.Log(float64(x.Type.Shape[a]))
	if g.rand.IntN(3) == 0 {
		o.Reduction = "sum"
		size *= float64(t.Elems())
	}
	if g.rand.IntN(3) == 0 {
		o.HasIgnore, o.IgnoreIndex = true, -100
	}
	g.add(o, span{-size, size}, x, target)
}
