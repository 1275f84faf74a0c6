package importer

import (
	"aitk/importer/onnxpb"
	"aitk/ir"
	"aitk/ir/op"
)

// lowering turns the nodes of a source into core ops, in the file's order, one function an ONNX op (lowererOf). While it goes it
// evaluates what is known: a lowering asks for ops through call.emit, and where all operands of an op have known content, the op is
// run instead of added to the graph. So a chain of shape arithmetic leaves nothing behind but the attribute it led to.
type lowering struct {
	src      *source
	w        *weights
	opt      *Options
	b        *ir.Builder
	env      map[string]*operand // by ONNX name
	left     map[string]int      // readers that are still to come; content is dropped with the last one
	reserved map[string]*ir.Value
	folder   folder
	dropouts uint64
	opcount  int
	errs     []error
}

// operand is what an ONNX name stands for: a value of the graph, content that is known, or both; or a sequence of operands; or
// nothing, where the node that should have made it failed and has been reported.
type operand struct {
	typ    ir.Type
	value  *ir.Value  // nil until a node of the graph needs it
	known  *ir.Tensor // nil where only run time can tell
	elem   int32      // ONNX type, where typ only holds its values (narrow.go)
	real   *operand   // of quantized content: the floats that it was rounded from, after rounding; gradients pass through them
	stored *tensor    // a weight that the file has quantized and only dequantization reads (lower_quant.go)
	buffer *param     // the file's tensor that known is a copy of, if it is too large for a literal
	seq    []*operand
	isSeq  bool
	bad    bool
}

// call is one node under lowering.
type call struct {
	*lowering
	n    *onnxpb.NodeProto
	i    int
	ver  int64 // opset of the node's domain
	in   []*operand
	read map[string]bool // attributes that the lowering asked for
}

// lowerFunc lowers a node to as many operands as it has outputs; nil entries are outputs that nobody reads.
type lowerFunc func(*call) []*operand

// refusal carries an error from deep inside a lowering to lowerNode, where it is recovered. Nothing else panics with it.
type refusal struct{ err error }

// refuse ends the lowering of the node: the file is wrong, or asks for something that is not there yet.
func (c *call) refuse(kind ir.Kind, format string, args ...any) {
	panic(refusal{ir.Errorf(kind, c.src.origin(c.i), format, args...)})
}

func (c *call) unsupported(format string, args ...any) { c.refuse(ir.Unsupported, format, args...) }
func (c *call) invalid(format string, args ...any)     { c.refuse(ir.Failed, format, args...) }

// run lowers all needed nodes and names the results.
func (l *lowering) run(results []string) {
	need := l.src.needed(results)
	for i, ok := range need {
		if ok {
			for _, name := range l.src.reads(i) {
				l.left[name]++
			}
		}
	}
	for _, name := range results {
		l.left[name]++
	}
	for i, ok := range need {
		if ok {
			l.node(i)
		}
	}
	for _, name := range results {
		x := l.lookup(name, use{-1, -1})
		switch {
		case x.bad:
		case x.isSeq:
			l.errs = append(l.errs, l.src.fail(ir.Unsupported, "output %q is a sequence of tensors", name))
		default:
			if err := l.try(func() { l.b.G.Results = append(l.b.G.Results, ir.Result{Name: name, Value: l.valueOf(x)}) }); err != nil {
				l.errs = append(l.errs, err)
			}
		}
	}
}

// try runs f and returns the refusal that it ends in.
func (l *lowering) try(f func()) (err error) {
	defer func() {
		switch r := recover().(type) {
		case nil:
		case refusal:
			err = r.err
		default:
			panic(r)
		}
	}()
	f()
	return nil
}

// node lowers node i and files its outputs.
func (l *lowering) node(i int) {
	n := l.src.graph.Node[i]
	c := &call{lowering: l, n: n, i: i, ver: l.src.version(i, domainOf(n.GetDomain())), read: map[string]bool{}}
	var outs []*operand
	var err error
	if v := l.w.views[first(n.Output)]; v != nil { // a weight that a Constant holds, or an Identity gives a name of its own
		l.b.Origin = l.src.origin(i)
		outs = one(l.parameter(v))
	} else if outs, err = c.lower(); err != nil {
		l.errs = append(l.errs, err)
	}
	for k, name := range n.Output {
		if name == "" {
			continue
		}
		x := &operand{bad: true}
		switch {
		case k < len(outs) && outs[k] != nil:
			x = outs[k]
		case outs != nil && l.left[name] > 0:
			l.errs = append(l.errs, l.src.errorAt(i, ir.Unsupported, "output %d (%q) is not supported", k, name))
		}
		if from, ok := keepsElem(n.GetOpType()); ok && from < len(c.in) && c.in[from] != nil && !x.bad {
			x.elem = c.in[from].elem
		}
		l.bind(name, x)
		if x.value != nil && x.value.Def != nil && x.value.Name == "" {
			x.value.Name = name
		}
	}
	for _, name := range l.src.reads(i) {
		l.drop(name)
	}
}

// drop notes that one reader of a name is done.
func (l *lowering) drop(name string) {
	if l.left[name]--; l.left[name] == 0 {
		l.folder.release(l.env[name])
		delete(l.env, name)
	}
}

// bind files an operand under its ONNX name, if somebody will read it.
func (l *lowering) bind(name string, x *operand) {
	if l.left[name] > 0 {
		l.env[name] = x
		l.folder.hold(x)
	}
}

// lower gathers operands and runs the node's lowering. It returns nil without an error where an operand is bad, or the op is not known:
// both were reported.
func (c *call) lower() (outs []*operand, err error) {
	f := lowererOf(domainOf(c.n.GetDomain()), c.n.GetOpType())
	if f == nil && c.i >= c.src.main {
		return nil, c.src.errorAt(c.i, ir.Unsupported, "the op is not supported")
	}
	if f == nil {
		return nil, nil
	}
	for k, name := range c.n.Input {
		x := c.lookup(name, use{c.i, k})
		if x != nil && x.bad {
			return nil, nil
		}
		c.in = append(c.in, x)
	}
	c.b.Origin = c.src.origin(c.i)
	err = c.try(func() {
		outs = f(c)
		for _, a := range c.n.Attribute {
			if !c.read[a.GetName()] {
				c.unsupported("attribute %q is not known at opset %d", a.GetName(), c.ver)
			}
		}
	})
	if err != nil {
		return nil, err
	}
	return outs, nil
}

// lookup finds the operand behind a name; nil for an operand left out.
func (l *lowering) lookup(name string, u use) *operand {
	if name == "" {
		return nil
	}
	if v := l.w.byUse[u]; v != nil {
		return l.parameter(v)
	}
	if x := l.env[name]; x != nil {
		return x
	}
	var x *operand
	if v := l.w.views[name]; v != nil {
		x = l.parameter(v)
	} else if t := l.src.tensors[name]; t != nil {
		x = l.constant(t)
	} else {
		panic(ir.Bugf("%q is not lowered yet", name))
	}
	l.bind(name, x)
	return x
}

// parameter is the operand for a parameter, turned to how the file has it.
func (l *lowering) parameter(v *view) *operand {
	p := v.param
	if p.value == nil {
		p.value = l.b.G.AddParam(p.Name, p.Type)
		p.value.Role, p.value.Trainable, p.value.Init = p.Role, p.Trainable, p.Init
		p.value.Reason, p.value.Aliases = p.Reason, p.Aliases
	}
	x := p.value.Value
	if v.transposed {
		x = l.b.Add(op.Transpose{Perm: []int64{1, 0}}, x)
	}
	if !x.Type.Shape.Equal(v.shape) {
		x = l.b.Add(op.Reshape{Shape: v.shape.Clone()}, x)
	}
	return &operand{typ: x.Type, value: x}
}

// constant is the operand for a tensor that is no parameter: known if it is small enough to compute with.
func (l *lowering) constant(t *tensor) *operand {
	x := &operand{typ: t.typ, elem: t.elem}
	if l.isPacked(t) {
		x.stored = t
		return x
	}
	fold := l.folder.room(t.typ) && t.init.Kind != ir.InitAbsent
	if t.elem != 0 && !fold {
		l.errs = append(l.errs, l.src.fail(ir.Unsupported, "tensor %q: %d elements of type %v are too many for a constant", t.name, t.typ.Elems(), onnxpb.TensorProto_DataType(t.elem)))
		return &operand{bad: true}
	}
	if t.elem == 0 && (t.typ.Bytes() > literalBytes || !fold) {
		x.buffer = l.bufferFor(t)
	}
	if fold {
		raw, err := l.src.file.bytes(t.init)
		if err == nil {
			var known ir.Tensor
			known, err = t.decode(raw)
			x.known = &known
		}
		if err != nil {
			l.errs = append(l.errs, l.src.fail(ir.Failed, "tensor %q: %w", t.name, err))
			return &operand{bad: true}
		}
	}
	return x
}

// bufferFor is the parameter that keeps a constant too large for a literal in its file.
func (l *lowering) bufferFor(t *tensor) *param {
	if p := l.w.named[t.name]; p != nil && p.Role == ir.Buffer {
		return p
	}
	p := &param{ParamInfo: ParamInfo{Name: t.name, Type: t.typ, Role: ir.Buffer, Reason: "a constant of the graph", Init: t.init}}
	l.w.params = append(l.w.params, p)
	l.w.named[t.name] = p
	return p
}
