package importer

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"aitk/importer/onnxpb"
	"aitk/ir"
)

// This file decides which tensors of the file are parameters, and what the author called them.
//
// An ONNX file knows no parameters, only initializers. The rule is Decision 1 of the house plan:
//
//	1. What the exporter says wins: PARAMETER is a trainable weight, BUFFER and CONSTANT_TENSOR are not.
//	2. Where it says nothing, a float tensor is a weight if it has an axis, stands where an op takes a weight, a bias or a scale,
//	   and is not named like a buffer (*inv_freq*, *running_*, *freqs_cos*, *cos_cached*) or an exporter's temporary (val_7, onnx::MatMul_12, div_3).
//	3. A temporary that metadata, the scope of its reader or the bias that is added to its product maps to a module's parameter is that parameter. An exporter stores the
//	   weight of a linear layer transposed; here it gets the author's name and orientation back, and the graph a Transpose.
//	4. Means and variances of batch normalization are statistics.
//
// Ties: a tensor that stands for several parameters of the module is one parameter with aliases if the exporter merged the names
// because they are one object, and several parameters if it merged them because their values were equal when it ran.

// ParamInfo is a persistent tensor of the model: a weight, a statistic or a buffer.
type ParamInfo struct {
	Name      string // the author's
	Type      ir.Type
	Role      ir.Role
	Trainable bool
	Reason    string   // why it was classified so
	Aliases   []string // other names of it, in the module or in the file
	Init      ir.Init
}

// param is a ParamInfo while the graph is built.
type param struct {
	ParamInfo
	value *ir.Param // made when the first reader asks
}

// view says how a tensor of the file relates to a parameter: the same bytes, transposed, or under another shape.
type view struct {
	param      *param
	transposed bool
	shape      ir.Shape // of the tensor in the file
}

// weights is the result for a whole file.
type weights struct {
	src    *source
	params []*param
	named  map[string]*param // by name and alias
	views  map[string]*view  // by tensor of the file; tensors without one are constants
	byUse  map[use]*view     // overrides views where one tensor stands for several parameters
	ties   []tie             // lost and false ones, in the order they were found
}

func classify(s *source) (*weights, error) {
	w := &weights{src: s, named: map[string]*param{}, views: map[string]*view{}, byUse: map[use]*view{}}
	// Tensors that carry a parameter's own name go first: copies of them are recognised by it.
	for _, own := range []bool{true, false} {
		for _, name := range s.order {
			if t := s.tensors[name]; t.elem == 0 && t.typ.DType.IsFloat() && own == (s.meta.kind[name] == "PARAMETER") {
				w.tensor(t)
			}
		}
	}
	w.identities()
	if err := w.retie(); err != nil {
		return nil, err
	}
	if err := w.retieNameless(); err != nil {
		return nil, err
	}
	w.splitTies()
	w.sort()
	return w, nil
}

// add records a parameter under which a tensor of the file is found. Where the name it would have is taken, it keeps the tensor's own,
// which is unique.
func (w *weights) add(t *tensor, p param, v view) {
	if p.Name != t.name && w.taken(p.Name) {
		p.Name = t.name
	}
	q := &p
	v.param, v.shape = q, t.typ.Shape
	q.Init = t.init
	if v.transposed {
		q.Type = ir.T(t.typ.DType, t.typ.Shape[1], t.typ.Shape[0])
		q.Init = transposedInit(t)
	}
	if p.Name != t.name {
		q.Aliases = append(q.Aliases, t.name)
	}
	w.params = append(w.params, q)
	w.named[q.Name] = q
	w.views[t.name] = &v
}

// taken tells whether a parameter, a tensor of the file or an input has this name.
func (w *weights) taken(name string) bool {
	return w.named[name] != nil || w.src.tensors[name] != nil ||
		slices.ContainsFunc(w.src.inputs, func(in *onnxpb.ValueInfoProto) bool { return in.GetName() == name })
}

// transposedInit is the first content of the transpose of a rank-2 tensor.
func transposedInit(t *tensor) ir.Init {
	init := t.init
	switch init.Kind {
	case ir.InitFile:
		init.File.Transposed = true
	case ir.InitLiteral:
		init.Literal = transposeBytes(init.Literal, t.typ)
	}
	return init
}

func transposeBytes(raw []byte, t ir.Type) []byte {
	rows, cols, width := t.Shape[0], t.Shape[1], t.DType.Bits()/8
	out := make([]byte, 0, len(raw))
	for c := range cols {
		for r := range rows {
			at := (r*cols + c) * width
			out = append(out, raw[at:at+width]...)
		}
	}
	return out
}

// tensor classifies one float tensor.
func (w *weights) tensor(t *tensor) {
	info := param{ParamInfo: ParamInfo{Name: t.name, Type: t.typ}}
	weight := func(reason string) param {
		info.Role, info.Trainable, info.Reason = ir.Weight, true, reason
		return info
	}
	slots := w.slots(t.name)
	meta := w.src.meta
	switch {
	case slots.statistic:
		info.Role, info.Reason = ir.Statistic, "running statistic of a batch normalization"
		w.add(t, info, view{})
	case meta.kind[t.name] == "PARAMETER":
		w.add(t, weight("the exporter says PARAMETER"), view{})
	case meta.kind[t.name] != "":
		w.buffer(t, "the exporter says "+meta.kind[t.name]+": no parameter of the module")
	case len(meta.parameters(meta.foldedFrom[t.name])) > 0:
		w.folded(t, info, meta.parameters(meta.foldedFrom[t.name]), slots)
	case w.foldedBias(t.name):
		w.add(t, weight("bias that the exporter made when it folded a batch norm"), view{})
	case meta.known():
		w.buffer(t, "not in the exporter's list of parameters")
	default:
		w.guess(t, info, slots)
	}
}

// folded handles a tensor that the exporter's optimizer computed from parameters.
func (w *weights) folded(t *tensor, info param, from []string, slots slots) {
	info.Role, info.Trainable = ir.Weight, true
	name := from[0]
	if w.named[name] != nil && !slots.linear && w.uniform(t) {
		w.buffer(t, "computed by the exporter from the shape of "+name)
		return
	}
	only := len(w.src.meta.foldedFrom[t.name]) == 1
	switch flat, isVector := vectorOf(t.typ); {
	case len(from) > 1:
		info.Reason = "folded by the exporter from " + strings.Join(from, ", ")
		w.add(t, info, view{})
	case only && len(t.typ.Shape) == 2 && slots.linear:
		info.Name, info.Reason = name, "folded by the exporter: transpose of "+name
		w.add(t, info, view{transposed: true})
	case isVector && len(t.typ.Shape) > 1 && (strings.HasSuffix(name, ".weight") || strings.HasSuffix(name, ".bias")):
		info.Name, info.Type, info.Reason = name, flat, "folded by the exporter: reshape of "+name
		w.add(t, info, view{})
	case len(t.typ.Shape) <= 2:
		info.Name, info.Reason = name, "folded by the exporter from "+name+", of which it may be a part"
		w.add(t, info, view{})
	default:
		info.Reason = "folded by the exporter from a part of " + name
		w.add(t, info, view{})
	}
}

// uniform tells whether all elements of a small tensor are equal: what is made from a parameter that the file has in full, and has nothing of its
// values, was made from its shape.
func (w *weights) uniform(t *tensor) bool {
	if t.typ.Bytes() > 1<<20 || t.init.Kind != ir.InitFile && t.init.Kind != ir.InitLiteral {
		return false
	}
	raw, err := w.src.file.bytes(t.init)
	return err == nil && uniform(raw, int(t.typ.DType.Bits()/8))
}

// foldedBias tells whether a tensor is the bias of a node into which a batch norm was folded.
func (w *weights) foldedBias(name string) bool {
	return slices.ContainsFunc(w.src.uses[name], func(u use) bool {
		return u.operand == 2 && foldsBatchNorm(w.src.graph.Node[u.node])
	})
}

// foldsBatchNorm tells whether an optimizer merged a batch norm into a node. Its scope is then that of the batch norm.
func foldsBatchNorm(n *onnxpb.NodeProto) bool {
	return strings.Contains(prop(n.MetadataProps, keyRule), "BatchNorm")
}

// vectorOf is the type without axes of extent 1, if one axis is left.
func vectorOf(t ir.Type) (ir.Type, bool) {
	n := int64(1)
	for _, d := range t.Shape {
		if d != 1 && n != 1 {
			return t, false
		}
		n *= d
	}
	return ir.T(t.DType, n), n != 1
}

// guess applies the rule for files without metadata.
func (w *weights) guess(t *tensor, info param, slots slots) {
	temp := isTemporary(t.name)
	isConstant := w.fromNode(t.name)
	info.Role, info.Trainable = ir.Weight, true
	switch mapped := slots.scopeName(); {
	case len(t.typ.Shape) == 0:
		// A scalar is a constant of the formula.
	case namedLikeBuffer(t.name):
		w.buffer(t, "named like a buffer")
	case slots.kind == "":
		w.buffer(t, "no op takes it as a weight, bias or scale")
	case temp && !slots.linear && w.uniform(t):
		// The scale that a norm without one gets where the format wants one. A parameter of the module would have kept its name.
		w.buffer(t, "named like an exporter's temporary, and all its elements are equal")
	case (temp || isConstant) && mapped != "" && slots.strong:
		info.Name, info.Reason = mapped, "operand "+slots.kind+" of a node in module "+slots.module
		w.add(t, info, view{transposed: slots.linear && len(t.typ.Shape) == 2})
	case temp:
		if bias, turned := w.besideBias(t); bias != "" {
			info.Name, info.Reason = strings.TrimSuffix(bias, "bias")+"weight", fmt.Sprintf("%q is added to its product", bias)
			w.add(t, info, view{transposed: turned})
			break
		}
		w.buffer(t, "named like an exporter's temporary, and no scope says which parameter it is")
	case isConstant && !slots.strong:
		// A constant that is added or multiplied is as likely a mask or a normalisation of the input.
	case isConstant && t.typ.Elems() < 2:
	default:
		info.Reason = "stands where " + slots.kind
		w.add(t, info, view{})
	}
}

// namedLikeBuffer tells names of statistics and of the tables of rotary embeddings.
func namedLikeBuffer(name string) bool {
	return slices.ContainsFunc([]string{"inv_freq", "running_", "freqs_cos", "freqs_sin", "freqs_cis", "cos_cached", "sin_cached"}, func(part string) bool {
		return strings.Contains(name, part)
	})
}

// buffer records that a tensor is no weight. It stays a constant, which may be folded; what is left of it becomes a buffer.
func (w *weights) buffer(t *tensor, reason string) {
	if _, made := w.src.def[t.name]; made || len(t.typ.Shape) == 0 {
		return
	}
	p := &param{ParamInfo: ParamInfo{Name: t.name, Type: t.typ, Role: ir.Buffer, Reason: reason, Init: t.init}}
	w.params = append(w.params, p)
	if w.named[t.name] == nil {
		w.named[t.name] = p
	}
}

// fromNode tells tensors that a Constant or ConstantOfShape makes from initializers and their second names.
func (w *weights) fromNode(name string) bool {
	i, ok := w.src.def[name]
	return ok && w.src.graph.Node[i].GetOpType() != "Identity"
}

// identities parts parameters that PyTorch's older exporter merged because their values were equal when it ran: it keeps the first and
// writes an Identity for each of the others, under the other's name. (A weight that the module really shares has one name there.)
func (w *weights) identities() {
	if w.src.meta.known() {
		return
	}
	for _, n := range w.src.graph.Node {
		if n.GetOpType() != "Identity" || domainOf(n.GetDomain()) != "" || len(n.Input) != 1 || len(n.Output) != 1 {
			continue
		}
		v, of := w.views[n.Input[0]], w.src.tensors[n.Input[0]]
		if v == nil || of == nil || v.param.Role != ir.Weight || w.named[n.Output[0]] != nil || len(w.src.uses[of.name]) < 2 {
			continue
		}
		t := *of
		t.name = n.Output[0]
		w.tensor(&t)
		if own := w.views[t.name]; own != nil {
			own.param.Reason += fmt.Sprintf("; shares the tensor of %q because the values were equal when exported", v.param.Name)
			w.ties = append(w.ties, tie{param: own.param, tensor: of.name, of: v.param})
		}
	}
}

// isTemporary tells names that exporters make up: val_7, onnx::MatMul_12, _v_3, and those of what a traced call gave: unsqueeze_1, div_3.
func isTemporary(name string) bool {
	base := strings.TrimRight(name, "0123456789")
	if isCall(strings.TrimSuffix(base, "_")) && (base == name || strings.HasSuffix(base, "_")) {
		return true
	}
	if base == name {
		return false
	}
	switch base {
	case "val_", "_val_", "tmp_", "_v_", "convert_element_type_default_":
		return true
	}
	return strings.HasPrefix(base, "onnx::")
}

// isCall tells names of PyTorch's operations that compute a tensor. A traced program names each result after its operation and numbers the
// further ones; the exporter's optimizer leaves that name to what it folds: a table of frequencies is unsqueeze_1. No module calls a parameter so.
func isCall(name string) bool {
	switch name {
	case "abs", "add", "addmm", "arange", "bitwise_not", "bmm", "cat", "ceil", "chunk", "clamp", "clone", "concat", "convert_element_type", "convert_element_type_default",
		"copy", "cos", "cumsum", "detach", "div", "einsum", "empty", "eq", "exp", "exp2", "expand", "eye", "flatten", "flip", "floor", "floor_divide", "full", "full_like",
		"gather", "ge", "getitem", "gt", "index_select", "iota", "item", "le", "lift_fresh_copy", "linspace", "log", "log2", "logical_not", "lt", "masked_fill", "matmul",
		"max", "maximum", "mean", "min", "minimum", "mm", "mul", "ne", "neg", "new_zeros", "ones", "ones_like", "outer", "permute", "pow", "prod", "reciprocal", "remainder",
		"repeat", "repeat_interleave", "reshape", "roll", "rsqrt", "rsub", "scalar_tensor", "select", "sigmoid", "sin", "slice", "softmax", "split", "sqrt", "squeeze",
		"stack", "sub", "sum", "t", "tan", "tanh", "tile", "to", "_to_copy", "transpose", "tril", "triu", "true_divide", "type_as", "unbind", "unsqueeze", "unsqueeze_copy",
		"view", "where", "zeros", "zeros_like":
		return true
	}
	return false
}

// splitTies looks at parameters of the module for which the file has no tensor: their module's node reads another parameter's
// tensor. If the call behind the node names the missing parameter, the exporter merged equal values, and they part again here;
// else the two are one object with two names.
func (w *weights) splitTies() {
	meta := w.src.meta
	byModule := map[string][]int{}
	for i, n := range w.src.graph.Node {
		m := scopeOf(n).module
		byModule[m] = append(byModule[m], i)
	}
	for _, name := range meta.order {
		if meta.kind[name] != "PARAMETER" || w.taken(name) {
			continue
		}
		module, leaf := name, ""
		if i := strings.LastIndexByte(name, '.'); i >= 0 {
			module, leaf = name[:i], name[i+1:]
		}
		for _, i := range byModule[module] {
			n := w.src.graph.Node[i]
			if foldsBatchNorm(n) {
				continue
			}
			for k, operand := range n.Input {
				v := w.views[operand]
				if v == nil || v.param.Role != ir.Weight || strings.HasPrefix(v.param.Name, module+".") || !strings.HasSuffix(v.param.Name, leaf) {
					continue
				}
				if mentions(n, meta.input[name]) {
					w.part(name, use{i, k}, v)
				} else if w.named[name] == nil {
					v.param.Aliases = append(v.param.Aliases, name)
					w.named[name] = v.param
				}
			}
		}
	}
	w.firstNames()
}

// part gives one use of a shared tensor a parameter of its own.
func (w *weights) part(name string, u use, v *view) {
	p := w.named[name]
	if p == nil {
		p = &param{ParamInfo: v.param.ParamInfo}
		p.Name, p.Aliases = name, nil
		p.Reason = fmt.Sprintf("a parameter of its own that shares the tensor of %q because the values were equal when exported", v.param.Name)
		w.params = append(w.params, p)
		w.named[name] = p
		w.ties = append(w.ties, tie{param: p, tensor: w.src.graph.Node[u.node].Input[u.operand], of: v.param})
	}
	w.byUse[u] = &view{param: p, transposed: v.transposed, shape: v.shape}
}

// firstNames calls a tied weight by the name that comes first in the module.
func (w *weights) firstNames() {
	rank := map[string]int{}
	for i, name := range w.src.meta.order {
		rank[name] = i + 1
	}
	order := func(rank int) int { // names that the module has not come last
		if rank == 0 {
			return math.MaxInt
		}
		return rank
	}
	for _, p := range w.params {
		for i, alias := range p.Aliases {
			if r := rank[alias]; r > 0 && (rank[p.Name] == 0 || r < rank[p.Name]) {
				p.Name, p.Aliases[i] = alias, p.Name
			}
		}
		slices.SortStableFunc(p.Aliases, func(a, b string) int { return cmp.Compare(order(rank[a]), order(rank[b])) })
	}
}

// sort orders parameters as the module has them, then as the file has them.
func (w *weights) sort() {
	rank := map[string]int{}
	for i, name := range w.src.meta.order {
		rank[name] = i - len(w.src.meta.order)
	}
	slices.SortStableFunc(w.params, func(a, b *param) int { return rank[a.Name] - rank[b.Name] })
}
