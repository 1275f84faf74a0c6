package passes

import (
	"fmt"
	"strings"

	"aitk/ir"
	"aitk/ir/op"
)

// loss appends the loss to a forward graph whose results are the model's outputs.
//
//	%9 = MatMul %7 %8 : f32[32,10]
//	result "logits" %9
//
// becomes, with --loss cross-entropy,
//
//	%10 = input "target" : i64[32]
//	%11 = SoftmaxCrossEntropy{axis=1,reduction="mean"} %9 %10 : f32[]
//	result "logits" %9
//	result "loss" %11
//
// The target is i64 and without the class axis for losses over classes, else of the output's type. The loss is f32, or f64 for an f64
// output; f16 and bf16 outputs are widened first.
func loss() Pass {
	return Pass{
		Name:      "loss",
		Doc:       "append the loss and its target",
		Gives:     HasLoss,
		Preserves: Extends,
		Required:  true,
		Run: func(ctx *Context, g *ir.Graph) error {
			l, err := resolveLoss(ctx, g)
			if err != nil {
				return err
			}
			ctx.Options.Loss = l
			return appendLoss(g, &ctx.Options, false)
		},
	}
}

// resolveLoss is the loss to use: the one given, or the one that the data fixes, of which the user is told.
func resolveLoss(ctx *Context, g *ir.Graph) (LossSpec, error) {
	l := ctx.Options.Loss
	if l.Name != "" {
		return l, nil
	}
	out, err := lossOutput(g, &ctx.Options)
	if err != nil {
		return l, err
	}
	target := ctx.Options.Target
	if target.DType == ir.Invalid {
		return l, ir.Errorf(ir.Usage, ir.Origin{}, "no loss is given and there is no data to choose it by: give --loss %s", strings.Join(lossNames(), "|"))
	}
	l, ok := ChooseLoss(out.Value.Type, target)
	if !ok {
		return l, ir.Errorf(ir.Usage, ir.Origin{}, "no loss follows from output %q %v and target %v: give --loss %s",
			out.Name, out.Value.Type, target, strings.Join(lossNames(), "|"))
	}
	ctx.Note(fmt.Sprintf("loss %v: output %q is %v and the target %v", l, out.Name, out.Value.Type, target))
	return l, nil
}

// lossOutput is the graph output that feeds the loss.
func lossOutput(g *ir.Graph, o *Options) (ir.Result, error) {
	if len(g.Results) == 0 {
		return ir.Result{}, ir.Errorf(ir.Usage, ir.Origin{}, "the model has no output")
	}
	name, flag := o.Output, "--output"
	if o.Loss.Name == "output" && o.Loss.Output != "" {
		name, flag = o.Loss.Output, "--loss output"
	}
	if name == "" {
		return g.Results[0], nil
	}
	names := make([]string, len(g.Results))
	for i, r := range g.Results {
		if r.Name == name {
			return r, nil
		}
		names[i] = r.Name
	}
	return ir.Result{}, ir.Errorf(ir.Usage, ir.Origin{}, "%s: the model has no output %q; it has %s", flag, name, strings.Join(names, ", "))
}

// appendLoss builds the loss that o.Loss names. With masked, samples from number "$valid" on do not count, and where batches of equal size may
// count differently (labels are ignored) or are summed, two more results say what the mean over a whole data set is made of: "$sum" over all
// that counts in the batch, and "$count", how much that is; both scalars of the loss's dtype.
func appendLoss(g *ir.Graph, o *Options, masked bool) error {
	out, err := lossOutput(g, o)
	if err != nil {
		return err
	}
	if !out.Value.Type.DType.IsFloat() {
		return ir.Errorf(ir.Usage, ir.Origin{}, "output %q is %v: a loss needs floats; choose another with --output", out.Name, out.Value.Type)
	}
	l := &lossBuilder{
		b:    &ir.Builder{G: g, Origin: ir.Origin{Node: "loss"}},
		spec: o.Loss, name: out.Name, out: out.Value, masked: masked,
	}
	v, err := l.build()
	if err != nil {
		return err
	}
	if r := g.Result("loss"); r != nil {
		if o.Loss.Name != "output" || out.Name != "loss" {
			return ir.Errorf(ir.Usage, ir.Origin{}, "the model has an output of its own named \"loss\": train on it with --loss output:loss")
		}
		for i := range g.Results {
			if g.Results[i].Name == "loss" {
				g.Results[i].Value = v
			}
		}
		return nil
	}
	g.Results = append(g.Results, ir.Result{Name: "loss", Value: v})
	if masked && l.count != nil && (o.Loss.HasIgnore || o.Loss.Reduction == "sum") {
		sum := v
		if o.Loss.Reduction != "sum" {
			sum = l.b.Add(op.Mul{}, v, l.count)
		}
		g.Results = append(g.Results, ir.Result{Name: "$sum", Value: sum}, ir.Result{Name: "$count", Value: l.count})
	}
	return nil
}

// lossBuilder holds what the losses share while one is built.
type lossBuilder struct {
	b      *ir.Builder
	spec   LossSpec
	name   string    // of the output
	out    *ir.Value // as the model gives it, then widened
	masked bool
	count  *ir.Value // masked: how many labels or elements count, a scalar of the loss's dtype; nil: not asked for
}

func (l *lossBuilder) build() (*ir.Value, error) {
	switch l.spec.Name {
	case "output":
		return l.ownScalar()
	case "cross-entropy", "nll":
		return l.overClasses()
	case "mse", "l1", "huber", "bce-logits":
		return l.elementwise()
	}
	return nil, ir.Errorf(ir.Usage, ir.Origin{}, "--loss %q is unknown: want one of %s", l.spec.Name, strings.Join(lossNames(), ", "))
}

// refuse is an error about the output.
func (l *lossBuilder) refuse(format string, args ...any) error {
	return ir.Errorf(ir.Usage, ir.Origin{}, "loss %s: output %q is %v: %s", l.spec.Name, l.name, l.out.Type, fmt.Sprintf(format, args...))
}

// target adds the input that the loss compares with.
func (l *lossBuilder) target(t ir.Type) (*ir.Value, error) {
	if v := l.b.G.Input("target"); v != nil {
		return nil, ir.Errorf(ir.Usage, ir.Origin{}, "the model has an input of its own named \"target\" (%v), so loss %s cannot add one", v.Type, l.spec.Name)
	}
	if l.b.G.Param("target") != nil {
		return nil, ir.Errorf(ir.Usage, ir.Origin{}, "the model has a parameter named \"target\", so loss %s cannot add an input of that name", l.spec.Name)
	}
	return l.b.G.AddInput("target", t), nil
}

// widen gives floats of 32 bits or more.
func (l *lossBuilder) widen(v *ir.Value) *ir.Value {
	if d := v.Type.DType; d == ir.F16 || d == ir.BF16 {
		return l.b.Add(op.Cast{To: ir.F32}, v)
	}
	return v
}

// valid adds the input that says how many leading samples count.
func (l *lossBuilder) valid() *ir.Value {
	if v := l.b.G.Input("$valid"); v != nil {
		return v
	}
	return l.b.G.AddInput("$valid", ir.T(ir.I64))
}

// ownScalar takes an output as it is.
func (l *lossBuilder) ownScalar() (*ir.Value, error) {
	if l.out.Type.Elems() != 1 {
		return nil, l.refuse("it must be a scalar to be the loss itself")
	}
	v := l.widen(l.out)
	if len(v.Type.Shape) > 0 {
		v = l.b.Add(op.Reshape{Shape: ir.Shape{}}, v)
	}
	return v, nil
}

// elementwise builds the losses that compare element by element: mean or sum over all elements.
func (l *lossBuilder) elementwise() (*ir.Value, error) {
	target, err := l.target(ir.T(l.out.Type.DType, l.out.Type.Shape...))
	if err != nil {
		return nil, err
	}
	b := l.b
	x, t := l.widen(l.out), l.widen(target)
	var e *ir.Value
	switch l.spec.Name {
	case "mse":
		d := b.Add(op.Sub{}, x, t)
		e = b.Add(op.Mul{}, d, d)
	case "l1":
		e = b.Add(op.Abs{}, b.Add(op.Sub{}, x, t))
	case "huber": // with q = min(|d|, delta): q*(|d| - q/2) is d*d/2 inside delta and delta*(|d|-delta/2) outside
		a := b.Add(op.Abs{}, b.Add(op.Sub{}, x, t))
		q := b.Add(op.Clip{Min: 0, Max: l.spec.Delta}, a)
		half := b.Add(op.Mul{}, q, b.Scalar(x.Type.DType, 0.5))
		e = b.Add(op.Mul{}, q, b.Add(op.Sub{}, a, half))
	case "bce-logits": // -t*log(s(x)) - (1-t)*log(1-s(x)), which neither overflows nor takes a logarithm of 0
		e = b.Add(op.Sub{}, b.Add(op.Softplus{}, x), b.Add(op.Mul{}, x, t))
	}
	return l.reduce(e), nil
}

// reduce takes the mean or sum over all elements that count.
func (l *lossBuilder) reduce(e *ir.Value) *ir.Value {
	b, s := l.b, e.Type.Shape
	axes := allAxes(s)
	if !l.masked || len(s) == 0 || s[0] == 0 {
		switch {
		case len(s) == 0:
			return e
		case l.spec.Reduction == "sum":
			return b.Add(op.ReduceSum{Axes: axes}, e)
		}
		return b.Add(op.ReduceMean{Axes: axes}, e)
	}
	valid := l.valid()
	samples := make(ir.Shape, len(s)) // [N,1,1...]
	for i := range samples {
		samples[i] = 1
	}
	samples[0] = s[0]
	counts := b.Add(op.Less{}, b.Add(op.Iota{DType: ir.I64, Shape: samples, Step: 1}), valid)
	sum := b.Add(op.ReduceSum{Axes: axes}, b.Add(op.Where{}, counts, e, b.Scalar(e.Type.DType, 0)))
	l.count = b.Add(op.Mul{}, b.Add(op.Cast{To: e.Type.DType}, valid), b.Scalar(e.Type.DType, float64(s.Elems()/s[0])))
	if l.spec.Reduction == "sum" {
		return sum
	}
	return b.Add(op.Div{}, sum, l.count)
}

// allAxes of a shape.
func allAxes(s ir.Shape) []int64 {
	axes := make([]int64, len(s))
	for i := range axes {
		axes[i] = int64(i)
	}
	return axes
}
