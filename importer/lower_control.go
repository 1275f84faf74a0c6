package importer

import (
	"math"

	"aitk/importer/onnxpb"
	"aitk/ir"
)

// Control flow is decided while lowering. If takes the branch that its condition, which must be known, says; Loop and Scan lower their body once for
// each turn, of which the number must be known. So a graph never holds control flow, and gradients through a loop are those of its turns.

// graph is the attribute that holds a body.
func (c *call) graph(name string) *onnxpb.GraphProto {
	a := c.attr(name, onnxpb.AttributeProto_GRAPH)
	if a == nil || a.G == nil {
		c.invalid("attribute %q is missing", name)
	}
	return a.G
}

// body lowers the nodes of a graph with operands for its inputs, and gives its outputs; nil where one failed, which has been reported.
func (c *call) body(g *onnxpb.GraphProto, in []*operand) []*operand {
	if len(in) != len(g.Input) {
		c.invalid("its body takes %d inputs, has %d", len(g.Input), len(in))
	}
	origin := c.b.Origin
	defer func() { c.b.Origin = origin }()
	ids := c.src.bodies[g]
	for _, id := range ids {
		for _, name := range c.src.reads(id) {
			c.left[name]++
		}
	}
	for _, out := range g.Output {
		c.left[out.GetName()]++
	}
	for k, v := range g.Input {
		c.bind(v.GetName(), in[k])
	}
	for _, id := range ids {
		c.unrollLimit(0, "")
		c.lowering.node(id)
	}
	outs := make([]*operand, len(g.Output))
	failed := false
	for k, v := range g.Output {
		x := c.lookup(v.GetName(), use{-1, -1})
		failed = failed || x.bad
		y := *x
		outs[k] = &y
	}
	for _, v := range g.Output {
		c.drop(v.GetName())
	}
	if failed {
		return nil
	}
	return outs
}

// failed is the result of a node whose body failed.
func (c *call) failed() []*operand {
	outs := make([]*operand, len(c.n.Output))
	for k := range outs {
		outs[k] = &operand{bad: true}
	}
	return outs
}

// condition is the content of a boolean operand that decides; name is what it is called in the file.
func (c *call) condition(x *operand, name string) bool {
	if x.known == nil {
		c.unsupported("%w", &DataError{What: "the condition", Inputs: c.src.inputsBehind(name)})
	}
	if len(x.known.I) != 1 {
		c.invalid("the condition is %v", x.typ)
	}
	return x.known.I[0] != 0
}

func lowerIf(c *call) []*operand {
	c.args(1, 1)
	then, other := c.graph("then_branch"), c.graph("else_branch")
	g := other
	if c.condition(c.arg(0), c.n.Input[0]) {
		g = then
	}
	if outs := c.body(g, nil); outs != nil {
		return outs
	}
	return c.failed()
}

// lowerLoop runs while the count lasts and the condition holds. What the body gives beyond condition and states is collected along a new first axis.
func lowerLoop(c *call) []*operand {
	g := c.graph("body")
	if len(c.in) < 2 || len(g.Input) != len(c.in) || len(g.Output) < len(c.in)-1 {
		c.invalid("%d operands for a body of %d inputs and %d outputs", len(c.in), len(g.Input), len(g.Output))
	}
	count := int64(math.MaxInt64)
	if c.has(0) {
		count = c.constInt(0, "trip count")
	}
	going := true
	if c.has(1) {
		going = c.condition(c.arg(1), c.n.Input[1])
	}
	states := c.in[2:]
	scans := make([][]*operand, len(g.Output)-1-len(states))
	for i := int64(0); i < count && going; i++ {
		c.unrollLimit(i+1, "turns of a loop")
		truth := filled(ir.T(ir.Bool), 1)
		outs := c.body(g, append([]*operand{ints([]int64{i}, []int64{}...), truth}, states...))
		if outs == nil {
			return c.failed()
		}
		if count == math.MaxInt64 || outs[0].known != nil {
			going = c.condition(outs[0], g.Output[0].GetName())
		} else {
			c.unsupported("%w", &DataError{What: "the condition of its body", Inputs: c.src.inputsBehind(g.Output[0].GetName())})
		}
		states = outs[1 : 1+len(states)]
		for k := range scans {
			scans[k] = append(scans[k], outs[1+len(states)+k])
		}
	}
	outs := append([]*operand{}, states...)
	for k, list := range scans {
		outs = append(outs, c.stacked(list, 0, g.Output[1+len(states)+k]))
	}
	return outs
}

// stacked joins tensors of one shape along a new axis. Without any, the type is what the body declares.
func (c *call) stacked(list []*operand, axis int64, declared *onnxpb.ValueInfoProto) *operand {
	if len(list) == 0 {
		t := declared.GetType().GetTensorType()
		d, err := wantDType(t.GetElemType())
		if err != nil {
			c.unsupported("%w", err)
		}
		s := ir.Shape{0}
		for _, dim := range t.GetShape().GetDim() {
			s = append(s, dim.GetDimValue())
		}
		return filled(ir.Type{DType: d, Shape: s}, 0)
	}
	parts := make([]*operand, len(list))
	for i, x := range list {
		if x.isSeq {
			c.unsupported("a sequence of sequences")
		}
		a := c.axis(axis, len(x.typ.Shape)+1)
		s := append(ir.Shape{}, x.typ.Shape[:a]...)
		parts[i] = c.reshape(x, append(append(s, 1), x.typ.Shape[a:]...)...)
	}
	return c.concat(parts, axis)
}

// lowerScan runs its body over slices of its last operands. In opset 8 operands have a batch axis first, and lengths for each of the batch.
func lowerScan(c *call) []*operand {
	g := c.graph("body")
	m := int(c.int("num_scan_inputs", 0))
	in := c.in
	if c.ver < 9 {
		if len(in) < 1 || in[0] != nil {
			c.unsupported("sequence lengths of a Scan of opset 8")
		}
		in = in[1:]
	}
	if m < 1 || m > len(in) || len(g.Input) != len(in) || len(g.Output) < len(in)-m {
		c.invalid("%d scanned operands of %d, a body of %d inputs and %d outputs", m, len(in), len(g.Input), len(g.Output))
	}
	states, scanned := in[:len(in)-m], in[len(in)-m:]
	outputs := len(g.Output) - len(states)
	s := &scan{call: c, body: g, inAxes: c.intsN("scan_input_axes", m, 0), outAxes: c.intsN("scan_output_axes", outputs, 0)}
	if c.ver < 9 {
		s.inBack = c.intsN("directions", m, 0)
		s.outBack = make([]int64, outputs)
		return s.batched(states, scanned)
	}
	s.inBack, s.outBack = c.intsN("scan_input_directions", m, 0), c.intsN("scan_output_directions", outputs, 0)
	if outs := s.run(states, scanned); outs != nil {
		return outs
	}
	return c.failed()
}

type scan struct {
	*call
	body            *onnxpb.GraphProto
	inAxes, outAxes []int64
	inBack, outBack []int64 // 1: backwards
}

// run gives the last states and the collected outputs; nil where the body failed.
func (s *scan) run(states, scanned []*operand) []*operand {
	n := int64(-1)
	axes := make([]int64, len(scanned))
	for k, x := range scanned {
		axes[k] = s.axis(s.inAxes[k], len(x.typ.Shape))
		if d := x.typ.Shape[axes[k]]; n < 0 {
			n = d
		} else if n != d {
			s.invalid("scanned axes have extents %d and %d", n, d)
		}
	}
	s.unrollLimit(n, "turns of a scan")
	collected := make([][]*operand, len(s.body.Output)-len(states))
	for t := range n {
		in := append([]*operand{}, states...)
		for k, x := range scanned {
			at := t
			if s.inBack[k] != 0 {
				at = n - 1 - t
			}
			shape := append(append(ir.Shape{}, x.typ.Shape[:axes[k]]...), x.typ.Shape[axes[k]+1:]...)
			in = append(in, s.reshape(s.slice(x, axes[k], at, at+1, 1), shape...))
		}
		outs := s.call.body(s.body, in)
		if outs == nil {
			return nil
		}
		states = outs[:len(states)]
		for k := range collected {
			collected[k] = append(collected[k], outs[len(states)+k])
		}
	}
	outs := append([]*operand{}, states...)
	for k, list := range collected {
		if s.outBack[k] != 0 {
			for i, j := 0, len(list)-1; i < j; i, j = i+1, j-1 {
				list[i], list[j] = list[j], list[i]
			}
		}
		outs = append(outs, s.stacked(list, s.outAxes[k], s.body.Output[len(states)+k]))
	}
	return outs
}

// batched runs once for each of the batch.
func (s *scan) batched(states, scanned []*operand) []*operand {
	all := append(append([]*operand{}, states...), scanned...)
	if len(all) == 0 || len(all[0].typ.Shape) == 0 {
		s.invalid("no batch axis")
	}
	n := all[0].typ.Shape[0]
	s.unrollLimit(n, "members of a batch")
	var parts [][]*operand
	for b := range n {
		var st, sc []*operand
		for k, x := range all {
			if len(x.typ.Shape) == 0 || x.typ.Shape[0] != n {
				s.invalid("operand %v has no batch axis of extent %d", x.typ, n)
			}
			if y := s.part(x, b); k < len(states) {
				st = append(st, y)
			} else {
				sc = append(sc, y)
			}
		}
		outs := s.run(st, sc)
		if outs == nil {
			return s.failed()
		}
		parts = append(parts, outs)
	}
	outs := make([]*operand, len(s.body.Output))
	for k := range outs {
		var list []*operand
		for _, p := range parts {
			list = append(list, p[k])
		}
		outs[k] = s.stacked(list, 0, s.body.Output[k])
	}
	return outs
}
