package importer

import (
	"math"
	"strings"

	"aitk/ir"
	"aitk/ir/op"
)

// Recurrent layers are unrolled: the product of all steps with the input weights is one matrix product, then each step of the sequence becomes ops
// of its own. So gradients, recomputation and planning need nothing special. A limit on the number of steps keeps a long sequence from making
// a graph that no planner finishes.
const (
	maxSteps    = 4096    // of one loop or sequence
	maxUnrolled = 1 << 20 // ops that all of them together may make
)

// unrollLimit refuses what would become too long.
func (c *call) unrollLimit(steps int64, what string) {
	if steps > maxSteps {
		c.unsupported("%d %s: at most %d are unrolled", steps, what, maxSteps)
	}
	if c.opcount > maxUnrolled {
		c.unsupported("unrolling made more than %d ops", maxUnrolled)
	}
}

// rnn is what the three recurrent layers have in common. Tensors are laid out with time first (layout 0).
type rnn struct {
	*call
	gates, hidden    int64
	directions       int64
	steps, batch     int64
	reverse          []bool // by direction
	x                *operand
	lens             *operand // sequence lengths, i64 [batch,1]; nil: all are whole
	batchFirst       bool
	clip             float64
	functions        []activation // those of direction 0, then those of direction 1
	perDirection     int
	initialH, initC  *operand
	peephole         *operand
	weights, recur   *operand
	bias             *operand
	outY, outH, outC []*operand // by direction
}

// newRNN reads operands and attributes. gates is the number of gates, functions the default activations of a direction.
func (c *call) newRNN(gates int64, functions ...string) *rnn {
	c.args(3, 8)
	r := &rnn{call: c, gates: gates, x: c.arg(0), weights: c.arg(1), recur: c.arg(2), bias: c.optional(3), initialH: c.optional(5), perDirection: len(functions)}
	r.batchFirst = c.int("layout", 0) != 0
	switch dir := c.string("direction", "forward"); dir {
	case "forward":
		r.reverse = []bool{false}
	case "reverse":
		r.reverse = []bool{true}
	case "bidirectional":
		r.reverse = []bool{false, true}
	default:
		c.invalid("direction=%q", dir)
	}
	r.directions = int64(len(r.reverse))
	if r.batchFirst {
		r.x = c.swapFirst(r.x)
	}
	r.checkShapes()
	r.clip = c.float("clip", math.Inf(1))
	r.readFunctions(functions)
	if c.has(4) {
		r.lens = c.reshape(c.cast(c.arg(4), ir.I64), r.batch, 1)
		if k := r.lens.known; k != nil {
			whole := true
			for _, n := range k.I {
				if n < 0 || n > r.steps {
					c.invalid("sequence length %d for %d steps", n, r.steps)
				}
				whole = whole && n == r.steps
			}
			if whole {
				r.lens = nil
			}
		}
	}
	return r
}

func (r *rnn) checkShapes() {
	x, w, u := r.x.typ.Shape, r.weights.typ.Shape, r.recur.typ.Shape
	if len(x) != 3 || len(w) != 3 || len(u) != 3 {
		r.invalid("operands %v, %v and %v are not all of rank 3", r.x.typ, r.weights.typ, r.recur.typ)
	}
	r.steps, r.batch, r.hidden = x[0], x[1], u[2]
	r.unrollLimit(r.steps, "steps of a sequence")
	if h := r.int("hidden_size", r.hidden); h != r.hidden || w[0] != r.directions || u[0] != r.directions || w[1] != r.gates*r.hidden || u[1] != w[1] || w[2] != x[2] {
		r.invalid("weights %v and %v for %d directions, %d gates, hidden size %d and operand %v", w, u, r.directions, r.gates, h, x)
	}
	if r.bias != nil && !r.bias.typ.Shape.Equal(ir.Shape{r.directions, 2 * r.gates * r.hidden}) {
		r.invalid("bias %v", r.bias.typ)
	}
}

// swapFirst exchanges the first two axes of a tensor of rank 3.
func (c *call) swapFirst(x *operand) *operand {
	if len(x.typ.Shape) != 3 {
		c.invalid("%v is not of rank 3", x.typ)
	}
	return c.transpose(x, 1, 0, 2)
}

// activation is one of the functions of a gate.
type activation struct {
	name        string
	alpha, beta float64
}

// readFunctions gives each gate of each direction its activation. Parameters are handed out in order to those that take one.
func (r *rnn) readFunctions(defaults []string) {
	var names []string
	for _, a := range r.n.Attribute {
		if a.GetName() == "activations" {
			for _, s := range a.Strings {
				names = append(names, string(s))
			}
		}
	}
	alphas, betas := r.floats("activation_alpha"), r.floats("activation_beta")
	r.read["activations"] = true
	if names == nil {
		for range r.reverse {
			names = append(names, defaults...)
		}
	}
	if len(names) != len(defaults)*len(r.reverse) {
		r.invalid("%d activations for %d directions of %d", len(names), len(r.reverse), len(defaults))
	}
	take := func(list *[]float64, def float64) float64 {
		if len(*list) > 0 {
			def = (*list)[0]
			*list = (*list)[1:]
		}
		return def
	}
	for _, n := range names {
		f := activation{name: strings.ToLower(n)}
		switch f.name {
		case "relu", "tanh", "sigmoid", "softsign", "softplus":
		case "leakyrelu":
			f.alpha = take(&alphas, 0.01)
		case "thresholdedrelu", "elu":
			f.alpha = take(&alphas, 1)
		case "affine", "scaledtanh":
			f.alpha, f.beta = take(&alphas, 1), take(&betas, affineBeta(f.name))
		case "hardsigmoid":
			f.alpha, f.beta = take(&alphas, 0.2), take(&betas, 0.5)
		default:
			r.unsupported("activation %q", n)
		}
		r.functions = append(r.functions, f)
	}
}

func affineBeta(name string) float64 {
	if name == "scaledtanh" {
		return 1
	}
	return 0
}

// floats reads a list of floats.
func (c *call) floats(name string) []float64 {
	c.read[name] = true
	var out []float64
	for _, a := range c.n.Attribute {
		if a.GetName() == name {
			for _, f := range a.Floats {
				out = append(out, decimal(f))
			}
		}
	}
	return out
}

// gate applies activation k of a direction.
func (r *rnn) gate(dir, k int, x *operand) *operand {
	if !math.IsInf(r.clip, 1) {
		x = r.emit(op.Clip{Min: -r.clip, Max: r.clip}, x)
	}
	return r.apply(r.functions[dir*r.perDirection+k], x)
}

func (c *call) apply(f activation, x *operand) *operand {
	switch f.name {
	case "relu":
		return c.emit(op.Relu{}, x)
	case "tanh":
		return c.emit(op.Tanh{}, x)
	case "sigmoid":
		return c.emit(op.Sigmoid{}, x)
	case "softplus":
		return c.emit(op.Softplus{}, x)
	case "softsign":
		return c.emit(op.Div{}, x, c.plus(c.emit(op.Abs{}, x), 1))
	case "leakyrelu":
		return c.emit(op.LeakyRelu{Alpha: f.alpha}, x)
	case "thresholdedrelu":
		return c.emit(op.Where{}, c.emit(op.Less{}, scalar(x.typ.DType, f.alpha), x), x, scalar(x.typ.DType, 0))
	case "elu":
		return c.elu(x, f.alpha, 1)
	case "affine":
		return c.plus(c.scale(x, f.alpha), f.beta)
	case "scaledtanh":
		return c.scale(c.emit(op.Tanh{}, c.scale(x, f.beta)), f.alpha)
	}
	return c.hardSigmoid(x, f.alpha, f.beta)
}

// part takes index i of the first axis and drops the axis.
func (c *call) part(x *operand, i int64) *operand {
	return c.reshape(c.slice(x, 0, i, i+1, 1), x.typ.Shape[1:]...)
}

// block is gate k of a tensor whose last axis holds all gates.
func (r *rnn) block(x *operand, k int64) *operand {
	return r.slice(x, int64(len(x.typ.Shape)-1), k*r.hidden, (k+1)*r.hidden, 1)
}

// direction is one direction being unrolled.
type direction struct {
	*rnn
	d      int
	w, u   *operand // weights [gates*hidden, input] and [gates*hidden, hidden]
	wb, ub *operand // biases [gates*hidden], nil without
	inputs *operand // x*w [steps, batch, gates*hidden], biases not yet added
}

func (r *rnn) direction(d int) *direction {
	x := &direction{rnn: r, d: d, w: r.part(r.weights, int64(d)), u: r.part(r.recur, int64(d))}
	if r.bias != nil {
		b := r.part(r.bias, int64(d))
		n := r.gates * r.hidden
		x.wb, x.ub = r.slice(b, 0, 0, n, 1), r.slice(b, 0, n, 2*n, 1)
	}
	flat := r.reshape(r.x, r.steps*r.batch, r.x.typ.Shape[2])
	x.inputs = r.reshape(r.emit(op.MatMul{TransB: true}, flat, x.w), r.steps, r.batch, r.gates*r.hidden)
	return x
}

// start is the initial content of a state that operand v gives, or zeros.
func (x *direction) start(v *operand) *operand {
	if v == nil {
		return x.fill(ir.T(x.x.typ.DType, x.batch, x.hidden), 0)
	}
	if x.batchFirst {
		v = x.swapFirst(v)
	}
	if !v.typ.Shape.Equal(ir.Shape{x.directions, x.batch, x.hidden}) {
		x.invalid("initial state %v", v.typ)
	}
	return x.part(v, int64(x.d))
}

// run unrolls a step over the sequence. step takes the input's product of a time and the states, and gives the new ones, the output first.
func (x *direction) run(states []*operand, step func(xt *operand, states []*operand) []*operand) []*operand {
	outputs := make([]*operand, x.steps)
	zero := scalar(x.x.typ.DType, 0)
	for i := range x.steps {
		x.unrollLimit(0, "")
		t := i
		if x.reverse[x.d] {
			t = x.steps - 1 - i
		}
		next := step(x.part(x.inputs, t), states)
		outputs[t] = next[0]
		if x.lens != nil { // beyond a sequence's end states stay and the output is 0
			live := x.emit(op.Less{}, scalar(ir.I64, float64(t)), x.lens)
			for k := range next {
				next[k] = x.emit(op.Where{}, live, next[k], states[k])
			}
			outputs[t] = x.emit(op.Where{}, live, outputs[t], zero)
		}
		states = next
	}
	for t, y := range outputs {
		outputs[t] = x.reshape(y, 1, 1, x.batch, x.hidden)
	}
	if len(outputs) > 0 {
		x.outY = append(x.outY, x.concat(outputs, 0))
	} else {
		x.outY = append(x.outY, x.fill(ir.T(x.x.typ.DType, 0, 1, x.batch, x.hidden), 0))
	}
	x.outH = append(x.outH, x.reshape(states[0], 1, x.batch, x.hidden))
	if len(states) > 1 {
		x.outC = append(x.outC, x.reshape(states[1], 1, x.batch, x.hidden))
	}
	return states
}

// outputs joins the directions: Y [steps, directions, batch, hidden], the last states [directions, batch, hidden]; batch first where the layout says so.
func (r *rnn) outputs() []*operand {
	y := r.concat(r.outY, 1)
	outs := []*operand{y, r.concat(r.outH, 0)}
	if r.outC != nil {
		outs = append(outs, r.concat(r.outC, 0))
	}
	if r.batchFirst {
		outs[0] = r.transpose(y, 2, 0, 1, 3)
		for k := 1; k < len(outs); k++ {
			outs[k] = r.swapFirst(outs[k])
		}
	}
	return outs
}

// lowerRNN is h = f(x*W + h*R + biases).
func lowerRNN(c *call) []*operand {
	r := c.newRNN(1, "Tanh")
	for d := range r.reverse {
		x := r.direction(d)
		xs := x.inputs
		if x.wb != nil {
			xs = r.emit(op.Add{}, xs, r.emit(op.Add{}, x.wb, x.ub))
		}
		x.inputs = xs
		x.run([]*operand{x.start(r.initialH)}, func(xt *operand, s []*operand) []*operand {
			return []*operand{r.gate(d, 0, r.emit(op.Add{}, xt, r.emit(op.MatMul{TransB: true}, s[0], x.u)))}
		})
	}
	return r.outputs()
}
