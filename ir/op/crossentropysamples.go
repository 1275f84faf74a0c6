package op

import "aitk/ir"

// lossSamples try the loss, or with grad its gradient, at every class axis, with smoothing, ignored labels (some, all), both reductions,
// no labels, and wrong operands.
func lossSamples(make func(SoftmaxCrossEntropy) ir.Op, grad bool) []ir.Sample {
	var all []ir.Sample
	add := func(o SoftmaxCrossEntropy, d, td ir.DType, logits ir.Shape, labels []int64, noDiff ...int) {
		target := append(logits[:o.Axis].Clone(), logits[o.Axis+1:]...)
		s := ir.Sample{Op: make(o), In: []ir.Tensor{sampleFloats(uint64(len(all)), d, logits...), sampleInts(td, target, labels...)}, NoDiff: noDiff}
		if grad {
			s.In = append(s.In, sampleScalar(d, 0.75))
		}
		all = append(all, s)
	}
	mean := SoftmaxCrossEntropy{Axis: 1, Reduction: "mean"}
	with := func(change func(*SoftmaxCrossEntropy)) SoftmaxCrossEntropy {
		o := mean
		change(&o)
		return o
	}
	ignore := func(i int64) SoftmaxCrossEntropy {
		return with(func(o *SoftmaxCrossEntropy) { o.HasIgnore, o.IgnoreIndex = true, i })
	}
	add(mean, ir.F32, ir.I64, ir.Shape{3, 5}, []int64{0, 4, 2})
	add(mean, ir.F32, ir.I32, ir.Shape{3, 5}, []int64{1, 1, 3})
	add(with(func(o *SoftmaxCrossEntropy) { o.Reduction = "sum" }), ir.F32, ir.I64, ir.Shape{3, 5}, []int64{0, 4, 2})
	add(with(func(o *SoftmaxCrossEntropy) { o.LabelSmoothing = 0.1 }), ir.F32, ir.I64, ir.Shape{3, 5}, []int64{0, 4, 2})
	add(with(func(o *SoftmaxCrossEntropy) { o.LabelSmoothing = 1 }), ir.F32, ir.I64, ir.Shape{2, 4}, []int64{0, 3})
	add(ignore(-100), ir.F32, ir.I64, ir.Shape{4, 3}, []int64{0, -100, 2, -100})
	add(ignore(1), ir.F32, ir.I32, ir.Shape{4, 3}, []int64{0, 1, 2, 1})
	add(with(func(o *SoftmaxCrossEntropy) {
		o.HasIgnore, o.IgnoreIndex, o.Reduction, o.LabelSmoothing = true, 9, "sum", 0.2
	}), ir.F32, ir.I64, ir.Shape{4, 3}, []int64{0, 9, 2, 1})
	add(ignore(-1), ir.F32, ir.I64, ir.Shape{2, 3}, []int64{-1, -1}, 0) // the mean over nothing is NaN, its gradient 0
	add(with(func(o *SoftmaxCrossEntropy) {
		o.HasIgnore, o.IgnoreIndex, o.Reduction = true, -1, "sum"
	}), ir.F32, ir.I64, ir.Shape{2, 3}, []int64{-1, -1})
	add(mean, ir.F32, ir.I64, ir.Shape{2, 3, 2, 2}, []int64{0, 1, 2, 0, 1, 1, 0, 2})
	add(with(func(o *SoftmaxCrossEntropy) { o.Axis = 0 }), ir.F32, ir.I64, ir.Shape{3, 4}, []int64{0, 1, 2, 0})
	add(with(func(o *SoftmaxCrossEntropy) { o.Axis = 2 }), ir.F32, ir.I64, ir.Shape{2, 2, 3}, []int64{0, 1, 2, 0})
	add(with(func(o *SoftmaxCrossEntropy) { o.Axis = 0 }), ir.F32, ir.I64, ir.Shape{4}, []int64{3})
	add(mean, ir.F32, ir.I64, ir.Shape{0, 3}, nil, 0)
	add(with(func(o *SoftmaxCrossEntropy) { o.Reduction = "sum" }), ir.F32, ir.I64, ir.Shape{0, 3}, nil)
	add(mean, ir.F32, ir.I64, ir.Shape{2, 1}, []int64{0, 0})
	add(mean, ir.F64, ir.I64, ir.Shape{3, 5}, []int64{0, 4, 2})
	add(mean, ir.BF16, ir.I64, ir.Shape{3, 5}, []int64{0, 4, 2})
	add(ignore(0), ir.F16, ir.I32, ir.Shape{3, 5}, []int64{0, 4, 2})

	wrong := func(o SoftmaxCrossEntropy, want string, types ...ir.Type) {
		if grad {
			types = append(types, ir.T(types[0].DType))
		}
		all = append(all, bad(make(o), want, types...))
	}
	x, t := ir.T(ir.F32, 3, 5), ir.T(ir.I64, 3)
	wrong(mean, "target must have shape [3]", x, ir.T(ir.I64, 3, 5))
	wrong(mean, "target must hold class labels of dtype i64 or i32", x, ir.T(ir.F32, 3))
	wrong(mean, "want floats", ir.T(ir.I64, 3, 5), t)
	wrong(mean, "no classes along axis 1", ir.T(ir.F32, 3, 0), t)
	wrong(mean, "takes", x)
	wrong(with(func(o *SoftmaxCrossEntropy) { o.Axis = 2 }), "axis 2 is outside rank 2", x, t)
	wrong(with(func(o *SoftmaxCrossEntropy) { o.LabelSmoothing = 1.5 }), "label smoothing must lie in [0,1]", x, t)
	wrong(with(func(o *SoftmaxCrossEntropy) { o.Reduction = "none" }), `reduction must be mean or sum, got "none"`, x, t)
	if grad {
		all = append(all, bad(make(mean), "dloss must be f32[]", x, t, ir.T(ir.F32, 1)))
	}
	return all
}
